/* Let the browser handle events between two steps of a computation. */

const LONGEST_TURN = 40; // milliseconds between two looks at the events

/** A function that waits for waiting events, if the last look was some time ago; a message port is not slowed down in a background tab.

   Several computations may share it. */
export function makePause() {
  const { port1, port2 } = new MessageChannel();
  let lastLook = performance.now();
  let waiting = null;
  let handled = null;
  port1.onmessage = () => {
    lastLook = performance.now();
    waiting = null;
    port1.unref?.(); // Node.js waits for open ports
    handled();
  };
  port1.unref?.();
  return () => {
    if (performance.now() - lastLook < LONGEST_TURN) return undefined;
    waiting ??= new Promise((resolve) => {
      handled = resolve;
      port1.ref?.();
      port2.postMessage(0);
    });
    return waiting;
  };
}
