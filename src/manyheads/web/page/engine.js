/* An exported page with a model sends its requests to its own worker instead of a server;
   PageModel in web/html_page.py writes the elements. */

import { byId } from "./elements.js";
import { min } from "./numbers.js";
import { t } from "./strings.js";

const workerText = byId("manyheads-worker");

export const hasWorker = Boolean(workerText);

const modelParts = hasWorker && !isDamaged() ? takeModel() : null;

/** @type {Map<number, { resolve: (result: unknown) => void, reject: (error: Error) => void }>} */
const pending = new Map();

/** null after a failure: the next request starts another.
    @type {Worker | null} */
let worker = null;

let requestCount = 0;

/** Return whether an element of the model was changed: the first one has the Adler-32 checksum of
    all. */
function isDamaged() {
  let low = 1,
    high = 0;
  for (const element of [
    workerText,
    document.getElementById("manyheads-model"),
    ...document.querySelectorAll(".manyheads-tensors"),
  ]) {
    const bytes = new TextEncoder().encode(element?.textContent);
    for (let start = 0; start < bytes.length; start += 2048) {
      // the sums of 2048 bytes fit into 31 bits
      const end = min(start + 2048, bytes.length);
      for (let i = start; i < end; i += 1) {
        low = (low + bytes[i]) | 0;
        high = (high + low) | 0;
      }
      low %= 65521;
      high %= 65521;
    }
  }
  return workerText.dataset.checksum !== String(high * 65536 + low);
}

/** Remove the elements of the model, and return the code of the worker and the messages that load
    the model. */
function takeModel() {
  const elements = [byId("manyheads-model"), ...document.querySelectorAll(".manyheads-tensors")];
  const [description, ...chunks] = elements.map((element) => element.textContent ?? "");
  for (const element of elements) element.remove();
  /* A browser may keep a Blob on its disk; its text is read in the worker. */
  return {
    code: new Blob([workerText.textContent], { type: "text/javascript" }),
    messages: [
      JSON.parse(description),
      ...chunks.map((text) => ({ chunk: new Blob([text]) })),
      { ready: true },
    ],
  };
}

/** Start the worker, and send it the model.
    @type {(parts: { code: Blob, messages: unknown[] }) => Worker} */
function startWorker({ code, messages }) {
  const address = URL.createObjectURL(code);
  const started = new Worker(address);
  URL.revokeObjectURL(address);
  /** @type {(message: string) => void} */
  const fail = (message) => {
    started.terminate();
    worker = null;
    for (const { reject } of pending.values()) reject(new Error(message));
    pending.clear();
  };
  started.onerror = (e) => fail(e.message || t("error.engine"));
  started.onmessage = ({ data }) => {
    if (data.failed) fail(data.failed);
    const request = pending.get(data.id);
    pending.delete(data.id);
    if (data.error) request?.reject(new Error(data.error));
    else request?.resolve(data.result);
  };
  for (const message of messages) started.postMessage(message);
  return started;
}

/** Send a request to the worker; `signal` cancels it.
    @type {(path: string, body: object | undefined, signal?: AbortSignal) => Promise<unknown>} */
export async function computeInWorker(path, body, signal) {
  if (!modelParts) throw new Error(t("error.damaged"));
  worker ??= startWorker(modelParts);
  const running = worker;
  requestCount += 1;
  const id = requestCount;
  return new Promise((resolve, reject) => {
    pending.set(id, { resolve, reject });
    signal?.addEventListener("abort", () => {
      if (!pending.delete(id)) return;
      running.postMessage({ cancel: id });
      reject(new Error(t("error.replaced")));
    });
    running.postMessage({ id, path, body });
  });
}

if (hasWorker) {
  if (modelParts) worker = startWorker(modelParts);
  /** For other scripts: translate a line and align its words. */
  window.manyheads = {
    translate: (text, { beam } = {}) => computeInWorker("line", { q: String(text), beam }),
  };
}
