/* Pauses of a long computation in which the browser or Node.js handles events. */

const MAX_BLOCKING = 40; // milliseconds of computation without a pause

/** Return a function that calls its argument after the pending events were handled.
    @type {() => (call: () => void) => void} */
function makeScheduler() {
  // Node.js, which would handle messages of a port before timers
  if (typeof setImmediate === "function") return setImmediate;
  const { port1, port2 } = new MessageChannel(); // unlike timers, not throttled in a background tab
  let callback = () => {};
  port1.onmessage = () => callback();
  return (call) => {
    callback = call;
    port2.postMessage(0);
  };
}

/** Return a function to await between two steps: it lets events be handled if the last pause was
    long ago; computations may share it.
    @type {() => () => Promise<void> | undefined} */
export function makePause() {
  const schedule = makeScheduler();
  let lastPause = performance.now();
  /** @type {Promise<void> | null} */
  let pending = null;
  return () => {
    if (performance.now() - lastPause < MAX_BLOCKING) return undefined;
    pending ??= new Promise((/** @type {(value: void) => void} */ resolve) =>
      schedule(() => {
        lastPause = performance.now();
        pending = null;
        resolve();
      }),
    );
    return pending;
  };
}
