/* The worker of an exported page: it computes, so that the page never waits.

   Messages to it: { wasm, header } and then { chunk } parts of the tensors in base64, in order, and { ready: true }; { id, path, body }
   requests; { cancel: id }. Messages from it: { loaded: true } or { failed: message }; { id, result } or { id, error }. */

import { fromBase64 } from "./text/utf8.js";
import { answerRequest, loadPageModel } from "./tasks/requests.js";

const LONGEST_TURN = 40; // milliseconds between two looks at the messages
const chunks = [];
const running = new Map(); // id -> AbortController
let started = null, loading = null;

/** Let messages in, if the last look was some time ago; a message port is not slowed down in a tab in the background. */
const breather = new MessageChannel();
let lastLook = performance.now();
function pause() {
  if (performance.now() - lastLook < LONGEST_TURN) return undefined;
  return new Promise((resolve) => {
    breather.port1.onmessage = () => { lastLook = performance.now(); resolve(); };
    breather.port2.postMessage(0);
  });
}

async function loadFrom({ wasm, header }) {
  return loadPageModel(fromBase64(wasm), header, (write) => {
    let offset = 0;
    for (const chunk of chunks.splice(0)) {
      const bytes = fromBase64(chunk);
      write(offset, bytes);
      offset += bytes.length;
    }
  });
}

async function answer({ id, path, body }) {
  const control = new AbortController();
  running.set(id, control);
  try {
    const loaded = await loading;
    await new Promise((resolve) => setTimeout(resolve)); // a request that is replaced at once is not begun
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
  if (data.wasm) started = data;
  else if (data.chunk) chunks.push(data.chunk);
  else if (data.ready) {
    loading = loadFrom(started);
    loading.then(() => self.postMessage({ loaded: true }), (error) => self.postMessage({ failed: error.message }));
  } else if (data.cancel) running.get(data.cancel)?.abort();
  else answer(data);
};
