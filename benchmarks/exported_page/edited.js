/* The model of an exported page with edited texts, in a worker of its own, as web/page/engine.js starts it. */

let originalTexts = null;

/** Set the texts of the page before edits: { worker, head, tensors }. */
function setOriginalTexts(texts) { originalTexts = texts; }

/** Open the model with edits and translate a text; returns "translation ...", "hang ...", or a message.

   Edits: { head: splices, tensors: { index: splices }, order: indices of the tensors to send }; a splice is [start, end, replacement]. */
function translateEdited({ head: headSplices, tensors: tensorSplices, order }, text, milliseconds) {
  const applySplices = (original, splices) => (splices ?? []).reduce((edited, [start, end, replacement]) => edited.slice(0, start) + replacement + edited.slice(end), original);
  const url = URL.createObjectURL(new Blob([originalTexts.worker], { type: "text/javascript" }));
  const worker = new Worker(url);
  URL.revokeObjectURL(url);
  return new Promise((resolve) => {
    const finish = (result) => { clearTimeout(timer); worker.terminate(); resolve(result); };
    const timer = setTimeout(() => finish(`hang ${milliseconds} ms`), milliseconds);
    worker.onerror = (event) => finish(event.message);
    worker.onmessage = ({ data }) => {
      if (data.failed || data.error) finish(data.failed ?? data.error);
      else if (data.result) finish(`translation ${data.result.translation}`);
    };
    try {
      worker.postMessage(JSON.parse(applySplices(originalTexts.head, headSplices)));
    } catch (error) {
      finish(error.message);
      return;
    }
    for (const index of order) worker.postMessage({ chunk: applySplices(originalTexts.tensors[index], tensorSplices[index]) });
    worker.postMessage({ ready: true });
    worker.postMessage({ id: 1, path: "line", body: { q: text, beam: 2 } });
  });
}
