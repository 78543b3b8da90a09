/* The normalisation rules of a SentencePiece model: a trie (double array) over the UTF-8 of what is replaced. */

import { decodeUtf8, fromBase64, utf8Bytes } from "./utf8.js";

const labelOf = (unit) => unit & 0x800000ff;
const hasLeaf = (unit) => (unit >>> 8) & 1;
const offsetOf = (unit) => (unit >>> 10) << ((unit & 0x200) >>> 6);
const valueOf = (unit) => unit & 0x7fffffff;

export class Charsmap {
  /** Reads the rules from base64: the size of the trie, the trie, and the replacements, each ended by a zero byte. */
  constructor(base64) {
    const bytes = fromBase64(base64), view = new DataView(bytes.buffer);
    const size = view.getUint32(0, true);
    this.units = Uint32Array.from({ length: size >>> 2 }, (_, index) => view.getUint32(4 + 4 * index, true));
    this.replacements = bytes.subarray(4 + size);
  }

  /** The replacement of the longest rule at an offset of a text, and the length of what it replaces; null if there is none. */
  longestRule(text, index) {
    const { units } = this;
    let node = offsetOf(units[0]), end = index, found = null;
    while (end < text.length) {
      const character = String.fromCodePoint(text.codePointAt(end));
      end += character.length;
      for (const byte of utf8Bytes(character)) {
        node ^= byte;
        const unit = units[node];
        if (labelOf(unit) !== byte) return this.replaced(found);
        node ^= offsetOf(unit);
        if (hasLeaf(unit)) found = [valueOf(units[node]), end - index];
      }
    }
    return this.replaced(found);
  }

  /** The text of a replacement found at an offset, and the length of what it replaces. */
  replaced(found) {
    return found && [decodeUtf8(this.replacements.subarray(found[0], this.replacements.indexOf(0, found[0]))), found[1]];
  }
}
