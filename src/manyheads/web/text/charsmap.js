/* The normalisation rules of a SentencePiece model: a double-array trie over the UTF-8 bytes of the
   texts to replace. */

import { characterAt } from "./unicode.js";
import { decodeUtf8, fromBase64, utf8Bytes } from "./utf8.js";

/** @type {(unit: number) => number} */
const labelOf = (unit) => unit & 0x800000ff;
/** @type {(unit: number) => number} */
const hasLeaf = (unit) => (unit >>> 8) & 1;
/** @type {(unit: number) => number} */
const offsetOf = (unit) => (unit >>> 10) << ((unit & 0x200) >>> 6);
/** @type {(unit: number) => number} */
const valueOf = (unit) => unit & 0x7fffffff;

/** The rules of a model: each replaces a text by another. */
export class Charsmap {
  /** Read the rules from base64: the size of the trie, the trie, and the replacements, each
      terminated by a zero byte.
      @param {string} base64 */
  constructor(base64) {
    const bytes = fromBase64(base64);
    const view = new DataView(bytes.buffer);
    const size = view.getUint32(0, true);
    this.units = Uint32Array.from({ length: size >>> 2 }, (_, index) =>
      view.getUint32(4 + 4 * index, true),
    );
    this.replacements = bytes.subarray(4 + size);
  }

  /** Return the replacement by the longest matching rule at an offset of a text, and the length of
      the text it replaces; null if no rule matches.
      @type {(text: string, index: number) => [string, number] | null} */
  longestRule(text, index) {
    const { units } = this;
    let node = offsetOf(units[0]);
    let end = index;
    /** @type {[number, number] | null} */
    let match = null;
    while (end < text.length) {
      const character = characterAt(text, end);
      end += character.length;
      for (const byte of utf8Bytes(character)) {
        node ^= byte;
        const unit = units[node];
        if (labelOf(unit) !== byte) return this.replacement(match);
        node ^= offsetOf(unit);
        if (hasLeaf(unit)) match = [valueOf(units[node]), end - index];
      }
    }
    return this.replacement(match);
  }

  /** Return the text of a replacement and the length of the text it replaces, from a match [offset
      of the replacement, length]; null for null.
      @type {(match: [number, number] | null) => [string, number] | null} */
  replacement(match) {
    return (
      match && [
        decodeUtf8(this.replacements.subarray(match[0], this.replacements.indexOf(0, match[0]))),
        match[1],
      ]
    );
  }
}
