/* Numbers, and arrays of them. */

export const { abs, ceil, floor, max, min, round } = Math;

/** @type {(count: number) => number[]} */
export const range = (count) => [...Array(count).keys()];

/** @type {(value: number, high: number) => number} */
export const clamp = (value, high) => min(high, max(0, value));

/** @type {WeakMap<PackedArray, { shape: number[], data: Float32Array }>} */
const unpacked = new WeakMap();

/** Decode a packed array (base64 of 16-bit numbers) to { shape, data }; results are cached.
    @type {(packed: PackedArray) => { shape: number[], data: Float32Array }} */
export function unpack(packed) {
  const cached = unpacked.get(packed);
  if (cached) return cached;
  const { shape, low, high, uint16 } = packed;
  const view = new DataView(Uint8Array.from(atob(uint16), (letter) => letter.charCodeAt(0)).buffer);
  const data = Float32Array.from(
    { length: view.byteLength / 2 },
    (_, i) => low + ((high - low) * view.getUint16(2 * i, true)) / 65535,
  );
  unpacked.set(packed, { shape, data });
  return { shape, data };
}
