"use strict";
/* A page with a model inside asks its own worker in place of a server; the elements are those of runs/page.py PageModel. */
const workerText = document.getElementById("manyheads-worker");
const offline = Boolean(workerText);
const pending = new Map();
let worker = null;
let count = 0;

/** Whether the elements of the model are not as they were written: the first states the Adler-32 of all. */
function isDamaged() {
  let low = 1, high = 0;
  for (const element of [workerText, document.getElementById("manyheads-model"), ...document.querySelectorAll(".manyheads-tensors")]) {
    const bytes = new TextEncoder().encode(element?.textContent);
    for (let start = 0; start < bytes.length; start += 2048) { // so many sums fit into 31 bits
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

/** Start the worker, and hand the model over in parts; the file's own copy is given up. */
function startWorker() {
  if (isDamaged()) {
    worker = { failed: "error.damaged" };
    return;
  }
  const address = URL.createObjectURL(new Blob([workerText.textContent], { type: "text/javascript" }));
  const model = document.getElementById("manyheads-model");
  worker = new Worker(address);
  URL.revokeObjectURL(address);
  const failed = (message) => { worker.failed = message; for (const { reject } of pending.values()) reject(new Error(message)); pending.clear(); };
  worker.onerror = (e) => failed(e.message || t("error.engine"));
  worker.onmessage = ({ data }) => {
    if (data.failed) failed(data.failed);
    if (!pending.has(data.id)) return;
    const { resolve, reject } = pending.get(data.id);
    pending.delete(data.id);
    if (data.error) reject(new Error(data.error));
    else resolve(data.result);
  };
  worker.postMessage(JSON.parse(model.textContent));
  model.remove();
  for (const part of document.querySelectorAll(".manyheads-tensors")) {
    worker.postMessage({ chunk: part.textContent });
    part.remove();
  }
  worker.postMessage({ ready: true });
}

/** Ask the worker. A text that is being translated is given up when another one comes. */
function computed(path, body) {
  if (!worker) startWorker();
  if (worker.failed) return Promise.reject(new Error(t(worker.failed)));
  const [id, kind] = [count += 1, path === "api/translate" && `${path} ${JSON.stringify(body.changes)}`];
  for (const [other, waiting] of pending) {
    if (!kind || waiting.kind !== kind) continue;
    worker.postMessage({ cancel: other });
    pending.delete(other);
    waiting.reject(new Error(t("error.replaced")));
  }
  return new Promise((resolve, reject) => {
    pending.set(id, { resolve, reject, kind });
    worker.postMessage({ id, path, body });
  });
}

if (offline) {
  startWorker();
  /** For other scripts: a line with the words of both sides aligned. */
  window.manyheads = { translate: (text, { beam } = {}) => computed("line", { q: String(text), beam }) };
}
