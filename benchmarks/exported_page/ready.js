/* Run before the scripts of an exported page: `pageReady` resolves to the milliseconds from navigation until its worker is ready, or a message;
   `askModel(path, body)` resolves to an answer of this worker. */
window.pageReady = new Promise((resolve) => {
  const OriginalWorker = Worker;
  window.Worker = class extends OriginalWorker {
    constructor(url) {
      super(url);
      window.askModel = (path, body) => new Promise((resolve) => {
        const id = `benchmark ${path}`;
        this.addEventListener("message", ({ data }) => { if (data.id === id) resolve(data.result); });
        this.postMessage({ id, path, body });
      });
      this.addEventListener("message", ({ data }) => {
        if (data.loaded) resolve(performance.now());
        if (data.failed) resolve(data.failed);
      });
    }
  };
});
