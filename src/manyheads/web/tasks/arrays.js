/* Arrays in the JSON of the page, as in manyheads/views/codec.py, and log-softmax. */

/** Encode an array as 16-bit numbers between its lowest and highest value, in base64.
    @type {(shape: number[], numbers: Float32Array) => PackedArray} */
export function packArray(shape, numbers) {
  let low = 0;
  let high = 1;
  for (const number of numbers) {
    if (number < low) low = number;
    if (number > high) high = number;
  }
  const bytes = new Uint8Array(2 * numbers.length);
  const view = new DataView(bytes.buffer);
  numbers.forEach((number, i) =>
    view.setUint16(2 * i, Math.round(((number - low) / (high - low)) * 65535), true),
  );
  return { shape, low, high, uint16: toBase64(bytes) };
}

/** @type {(bytes: Uint8Array) => string} */
function toBase64(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) {
    text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  }
  return btoa(text);
}

/** Return the log-probabilities of logits divided by the temperature.
    @type {(logits: ArrayLike<number> & Iterable<number>, temperature?: number) => Float64Array} */
export function logSoftmax(logits, temperature = 1) {
  let largest = -Infinity;
  let sum = 0;
  for (const logit of logits) if (logit > largest) largest = logit;
  for (const logit of logits) sum += Math.exp((logit - largest) / temperature);
  const normalizer = Math.log(sum);
  return Float64Array.from(logits, (logit) => (logit - largest) / temperature - normalizer);
}
