/* UTF-8, as the libraries of the tokenizers read it. */

const UTF8 = new TextEncoder();
const STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const LENIENT_UTF8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** The bytes of a text. */
export const utf8Bytes = (text) => UTF8.encode(text);

/** The text of bytes; each longest beginning of a character that is incomplete becomes one U+FFFD. */
export const decodeUtf8 = (bytes) => LENIENT_UTF8.decode(Uint8Array.from(bytes));

/** The text of bytes; null if they are no UTF-8. */
export function decodeStrictUtf8(bytes) {
  try {
    return STRICT_UTF8.decode(Uint8Array.from(bytes));
  } catch {
    return null;
  }
}

/** The text of bytes; each byte that is not part of a character becomes one U+FFFD. */
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

/** A byte as a piece: <0xEA>. */
export const bytePiece = (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;

/** The bytes of a text in base64. */
export function fromBase64(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let index = 0; index < letters.length; index += 1) bytes[index] = letters.charCodeAt(index);
  return bytes;
}
