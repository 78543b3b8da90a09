/* UTF-8 and base64; invalid bytes are decoded as in the tokenizer libraries. */

const UTF8 = new TextEncoder();
const STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const LENIENT_UTF8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** Return the UTF-8 bytes of a text. */
export const utf8Bytes = (text) => UTF8.encode(text);

/** Decode bytes; each maximal prefix of an incomplete character becomes one U+FFFD. */
export const decodeUtf8 = (bytes) => LENIENT_UTF8.decode(Uint8Array.from(bytes));

/** Decode bytes; return null if they are not valid UTF-8. */
export function decodeStrictUtf8(bytes) {
  try {
    return STRICT_UTF8.decode(Uint8Array.from(bytes));
  } catch {
    return null;
  }
}

/** Decode bytes; each byte that is not part of a valid character becomes one U+FFFD. */
export function decodeUtf8ByByte(bytes) {
  let text = "";
  for (let start = 0; start < bytes.length;) {
    const lead = bytes[start];
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    const character = decodeStrictUtf8(bytes.slice(start, start + length));
    text += character ?? "\ufffd";
    start += character === null ? 1 : length;
  }
  return text;
}

/** Return a byte as a piece such as <0xEA>. */
export const bytePiece = (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;

/** Decode base64. */
export function fromBase64(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let index = 0; index < letters.length; index += 1) bytes[index] = letters.charCodeAt(index);
  return bytes;
}
