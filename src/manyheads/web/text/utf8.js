/* UTF-8 and base64; invalid bytes are decoded as in the tokenizer libraries. */

const UTF8 = new TextEncoder();
const STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Return the UTF-8 bytes of a text.
    @type {(text: string) => Uint8Array} */
export const utf8Bytes = (text) => UTF8.encode(text);

/** Decode bytes; return null if they are not valid UTF-8.
    @type {(bytes: ArrayLike<number>) => string | null} */
export function decodeStrictUtf8(bytes) {
  try {
    return STRICT_UTF8.decode(Uint8Array.from(bytes));
  } catch {
    return null;
  }
}

/** Return [start, end] of each part of some bytes that is no UTF-8: a maximal beginning of a
    character, or a single byte.
    @type {(bytes: number[] | Uint8Array) => Span[]} */
export function brokenCharacters(bytes) {
  /** @type {Span[]} */
  const broken = [];
  if (decodeStrictUtf8(bytes) !== null) return broken;
  for (let start = 0; start < bytes.length;) {
    const lead = bytes[start];
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (decodeStrictUtf8(bytes.slice(start, start + length)) !== null) {
      start += length;
      continue;
    }
    // the bytes that follow belong to the beginning if some last bytes make it a character
    let end = start + 1;
    while (
      end < start + length &&
      end < bytes.length &&
      isBeginning(bytes.slice(start, end + 1), length)
    ) {
      end += 1;
    }
    broken.push([start, end]);
    start = end;
  }
  return broken;
}

/** Return whether bytes are the beginning of a character of `length` bytes.
    @type {(bytes: number[] | Uint8Array, length: number) => boolean} */
function isBeginning(bytes, length) {
  const rest = new Array(length - bytes.length);
  return (
    decodeStrictUtf8([...bytes, ...rest.fill(0x80)]) !== null ||
    decodeStrictUtf8([...bytes, ...rest.fill(0xbf)]) !== null
  );
}

/** Decode bytes, without those that form no character.
    @type {(bytes: number[] | Uint8Array) => string} */
export function decodeUtf8(bytes) {
  const valid = decodeStrictUtf8(bytes);
  if (valid !== null) return valid;
  let text = "";
  let start = 0;
  for (const [first, last] of [...brokenCharacters(bytes), [bytes.length, bytes.length]]) {
    text += decodeStrictUtf8(bytes.slice(start, first));
    start = last;
  }
  return text;
}

/** Return a byte as a piece such as <0xEA>.
    @type {(byte: number) => string} */
export const bytePiece = (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;

/** Decode base64.
    @param {string} text */
export function fromBase64(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let index = 0; index < letters.length; index += 1) bytes[index] = letters.charCodeAt(index);
  return bytes;
}
