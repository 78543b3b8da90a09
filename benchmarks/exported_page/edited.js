/* The model of an exported page with edited texts, in a worker of its own, as serving/page/engine.js starts it. */

let original = null;

/** Keep the texts of the page: { worker, head, tensors }. */
function keepOriginal(texts) { original = texts; }

/** Open the model with edits and translate a text; returns "translation ...", "hang ...", or a message.

   Edits: { head: splices, tensors: { index: splices }, order: indices of the tensors to send }; a splice is [start, end, replacement]. */
function translateEdited({ head: headSplices, tensors: tensorSplices, order }, text, milliseconds) {
  const edited = (value, splices) => (splices ?? []).reduce((whole, [start, end, inserted]) => whole.slice(0, start) + inserted + whole.slice(end), value);
  const address = URL.createObjectURL(new Blob([original.worker], { type: "text/javascript" }));
  const worker = new Worker(address);
  URL.revokeObjectURL(address);
  return new Promise((resolve) => {
    const end = (result) => { clearTimeout(timer); worker.terminate(); resolve(result); };
    const timer = setTimeout(() => end(`hang ${milliseconds} ms`), milliseconds);
    worker.onerror = (event) => end(event.message);
    worker.onmessage = ({ data }) => {
      if (data.failed || data.error) end(data.failed ?? data.error);
      else if (data.result) end(`translation ${data.result.translation}`);
    };
    try {
      worker.postMessage(JSON.parse(edited(original.head, headSplices)));
    } catch (error) {
      end(error.message);
      return;
    }
    for (const index of order) worker.postMessage({ chunk: edited(original.tensors[index], tensorSplices[index]) });
    worker.postMessage({ ready: true });
    worker.postMessage({ id: 1, path: "line", body: { q: text, beam: 2 } });
  });
}
