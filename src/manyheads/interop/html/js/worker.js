/* The worker of an exported page: it computes, so that the page never waits.

   Messages to it: { wasm, header } and then { chunk } parts of the tensors in base64, in order, and { ready: true }; { id, path, body }
   requests; { cancel: id }. Messages from it: { loaded: true } or { failed: message }; { id, result } or { id, error }. */

import { fromBase64 } from "./text/utf8.js";
import { makePause } from "./tasks/pause.js";
import { answerRequest, loadPageModel } from "./tasks/requests.js";

const chunks = [];
const running = new Map(); // id -> AbortController
const pause = makePause();
let started = null, loading = null;

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
