/* Let the browser handle events between two steps of a computation. */

const LONGEST_TURN = 40; // milliseconds between two looks at the events

/** A function that waits for waiting events, if the last look was some time ago; a message port is not slowed down in a background tab. */
export function makePause() {
  const { port1, port2 } = new MessageChannel();
  port1.unref?.(); // Node.js waits for open ports
  let lastLook = performance.now();
  return () => {
    if (performance.now() - lastLook < LONGEST_TURN) return undefined;
    return new Promise((resolve) => {
      port1.ref?.();
      port1.onmessage = () => {
        lastLook = performance.now();
        port1.unref?.();
        resolve();
      };
      port2.postMessage(0);
    });
  };
}
