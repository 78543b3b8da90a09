/* Runs before the scripts of an exported page: `pageReady` resolves to the milliseconds from navigation until its worker is ready, or a message. */
window.pageReady = new Promise((resolve) => {
  const PlainWorker = Worker;
  window.Worker = class extends PlainWorker {
    constructor(address) {
      super(address);
      this.addEventListener("message", ({ data }) => {
        if (data.loaded) resolve(performance.now());
        if (data.failed) resolve(data.failed);
      });
    }
  };
});
