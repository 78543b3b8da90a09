/* The worker of an exported page: it runs the model off the main thread, so that the page stays
   responsive. Messages to it: { wasm, header } and then { chunk } parts of the tensors in base64,
   Blobs in order, and { ready: true }; { id, path, body } requests; { cancel: id }. Messages from
   it: { loaded: true } or { failed: message }; { id, result } or { id, error }. */

const { answerRequest, fromBase64, loadPageModel, makePause } = manyheads;

/** @type {Blob[]} */
const chunks = [];
/** @type {Map<number, AbortController>} */
const running = new Map(); // id -> AbortController
const pause = makePause();
/** @type {PageDescription} */
let description;
/** @type {Promise<PageModel>} */
let loading;

/** Load the model from its description and the chunks received so far.
    @type {(description: PageDescription) => Promise<PageModel>} */
async function loadModel({ wasm, header }) {
  return loadPageModel(fromBase64(wasm), header, async (write) => {
    let offset = 0;
    for (const chunk of chunks.splice(0)) {
      const bytes = fromBase64(await chunk.text());
      write(offset, bytes);
      offset += bytes.length;
    }
  });
}

/** Answer a request with a message.
    @type {(message: { id: number, path: string, body: PageRequest }) => Promise<void>} */
async function answer({ id, path, body }) {
  const control = new AbortController();
  running.set(id, control);
  try {
    const loaded = await loading;
    // Skip a request that a message already in the queue cancels.
    await new Promise((resolve) => setTimeout(resolve));
    if (control.signal.aborted) return;
    const result = await answerRequest(loaded, path, body, { pause, signal: control.signal });
    self.postMessage({ id, result });
  } catch (error) {
    self.postMessage({ id, error: control.signal.aborted ? "cancelled" : error.message });
  } finally {
    running.delete(id);
  }
}

self.onmessage = ({ data }) => {
  if (data.wasm) description = data;
  else if (data.chunk) chunks.push(data.chunk);
  else if (data.ready) {
    loading = loadModel(description);
    loading.then(
      () => self.postMessage({ loaded: true }),
      (error) => self.postMessage({ failed: error.message }),
    );
  } else if (data.cancel) running.get(data.cancel)?.abort();
  else answer(data);
};
