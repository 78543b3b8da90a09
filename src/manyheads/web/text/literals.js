/* Literals: parts of a text that a translation copies unchanged, as in manyheads/data/literals.py. */

import { hasLetters, isBlank, strip, stripStart, WHITE } from "./unicode.js";

const BEFORE = "([{<\"'„“‚‘«‹»›「『（【¿¡*_~`|="; // marks before a literal that are copied with it
const AFTER = new RegExp(`[^\\p{L}\\p{N}_${WHITE}<{@$%]*`, "uy"); // marks after a literal, likewise

/** The kinds of literals, from manyheads/data/literals.toml: a list of { pattern, needs }. */
export class Literals {
  /** @param {LiteralKind[]} kinds */
  constructor(kinds) {
    this.kinds = kinds.map(({ pattern, needs }) => ({ pattern, needs: needs && new RegExp(needs, "u") }));
    /** @type {Map<string, RegExp>} */
    this.patterns = new Map(); // joined patterns of the kinds -> their expression
  }

  /** Return the expression of all kinds that a text may hold.
      @type {(text: string) => RegExp} */
  patternFor(text) {
    const joined = this.kinds.filter(({ needs }) => !needs || needs.test(text)).map(({ pattern }) => pattern).join("|");
    const found = this.patterns.get(joined) ?? new RegExp(joined, "gu");
    this.patterns.set(joined, found);
    return found;
  }

  /** Return the spans of a text between literals that contain letters, without white space at their ends.
      @type {(text: string) => Span[]} */
  spansToTranslate(text) {
    /** @type {Span[]} */
    const spans = [];
    const literals = Array.from(text.matchAll(this.patternFor(text)), (match) => [match.index, match.index + match[0].length]);
    let start = 0;
    for (const [literal, after] of [...literals, [text.length, text.length]]) {
      if (start && !isBlank(text[start - 1])) {
        AFTER.lastIndex = start;
        start = Math.min(literal, start + (AFTER.exec(text)?.[0].length ?? 0));
      }
      let end = literal;
      while (literal < text.length && !isBlank(text[literal]) && end > start && BEFORE.includes(text[end - 1])) end -= 1;
      const part = text.slice(start, end);
      if (hasLetters(part)) {
        const first = start + part.length - stripStart(part).length;
        spans.push([first, first + strip(part).length]);
      }
      start = after;
    }
    return spans;
  }
}
