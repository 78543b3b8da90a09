"use strict";
/* An exported page with a model sends its requests to its own worker instead of a server; PageModel in runs/page.py writes the elements. */
const workerText = document.getElementById("manyheads-worker");
const hasWorker = Boolean(workerText);
const pending = new Map();
let worker = null;
let requestCount = 0;

/** Return whether an element of the model was changed: the first one has the Adler-32 checksum of all. */
function isDamaged() {
  let low = 1, high = 0;
  for (const element of [workerText, document.getElementById("manyheads-model"), ...document.querySelectorAll(".manyheads-tensors")]) {
    const bytes = new TextEncoder().encode(element?.textContent);
    for (let start = 0; start < bytes.length; start += 2048) { // the sums of 2048 bytes fit into 31 bits
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

/** Start the worker, send it the model in parts, and remove the elements of the model. */
function startWorker() {
  if (isDamaged()) {
    worker = { failed: "error.damaged" };
    return;
  }
  const address = URL.createObjectURL(new Blob([workerText.textContent], { type: "text/javascript" }));
  const model = document.getElementById("manyheads-model");
  worker = new Worker(address);
  URL.revokeObjectURL(address);
  const fail = (message) => { worker.failed = message; for (const { reject } of pending.values()) reject(new Error(message)); pending.clear(); };
  worker.onerror = (e) => fail(e.message || t("error.engine"));
  worker.onmessage = ({ data }) => {
    if (data.failed) fail(data.failed);
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

/** Send a request to the worker; a new translation cancels one that is in progress. */
function computeInWorker(path, body) {
  if (!worker) startWorker();
  if (worker.failed) return Promise.reject(new Error(t(worker.failed)));
  const [id, kind] = [requestCount += 1, path === "api/translate" && `${path} ${JSON.stringify(body.changes)}`];
  for (const [pendingId, replaced] of pending) {
    if (!kind || replaced.kind !== kind) continue;
    worker.postMessage({ cancel: pendingId });
    pending.delete(pendingId);
    replaced.reject(new Error(t("error.replaced")));
  }
  return new Promise((resolve, reject) => {
    pending.set(id, { resolve, reject, kind });
    worker.postMessage({ id, path, body });
  });
}

if (hasWorker) {
  startWorker();
  /** For other scripts: translate a line and align its words. */
  window.manyheads = { translate: (text, { beam } = {}) => computeInWorker("line", { q: String(text), beam }) };
}
