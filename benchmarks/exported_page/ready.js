/* Run before the scripts of an exported page: `pageReady` resolves to the milliseconds from navigation until its worker is ready, or a message. */
window.pageReady = new Promise((resolve) => {
  const OriginalWorker = Worker;
  window.Worker = class extends OriginalWorker {
    constructor(url) {
      super(url);
      this.addEventListener("message", ({ data }) => {
        if (data.loaded) resolve(performance.now());
        if (data.failed) resolve(data.failed);
      });
    }
  };
});
