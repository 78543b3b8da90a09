/* Let the browser or Node.js handle events between two steps of a computation. */

const LONGEST_TURN = 40; // milliseconds between two looks at the events

/** A function that calls back once the waiting events were handled. */
function afterEvents() {
  if (typeof setImmediate === "function") return setImmediate; // Node.js, where messages of a port come before timers
  const { port1, port2 } = new MessageChannel(); // unlike a timer, not slowed down in a tab in the background
  let called = null;
  port1.onmessage = () => called();
  return (call) => {
    called = call;
    port2.postMessage(0);
  };
}

/** A function that waits until events were handled, if the last look was some time ago; several computations may share it. */
export function makePause() {
  const later = afterEvents();
  let lastLook = performance.now();
  let waiting = null;
  return () => {
    if (performance.now() - lastLook < LONGEST_TURN) return undefined;
    waiting ??= new Promise((resolve) => later(() => {
      lastLook = performance.now();
      waiting = null;
      resolve();
    }));
    return waiting;
  };
}
