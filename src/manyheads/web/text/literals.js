/* Literals: parts of a text that a translation copies unchanged, as in bitext/literals.py and
   manyheads/inference/translation/literals.py. */

import { hasLetters, isBlank, known, strip, stripStart, WHITE } from "./unicode.js";

const BEFORE = "([{<\"'„“‚‘«‹»›「『（【¿¡*_~`|="; // marks before a literal that are copied with it
const AFTER = new RegExp(`[^\\p{L}\\p{N}_${WHITE}<{@$%]*`, "uy"); // marks after a literal, likewise
// what begins, parts or ends the branches of a message
const BRANCH = /,[^{}\\]*\{|\}[^{}\\]*[{}]/u;

/** The kinds of literals, from bitext/literals.toml: a list of { pattern, needs, layout }. */
export class Literals {
  /** @param {LiteralKind[]} kinds */
  constructor(kinds) {
    this.kinds = kinds.map(({ pattern, needs }) => ({
      pattern,
      needs: needs && new RegExp(needs, "u"),
    }));
    const layout = kinds.filter((kind) => kind.layout);
    /** @type {Literals} */
    this.layout = layout.length === kinds.length ? this : new Literals(layout);
    /** @type {Map<string, RegExp>} */
    this.patterns = new Map(); // joined patterns of the kinds -> their expression
  }

  /** Return the expression of all kinds that a text may hold.
      @type {(text: string) => RegExp} */
  patternFor(text) {
    const joined = this.kinds
      .filter(({ needs }) => !needs || needs.test(text))
      .map(({ pattern }) => pattern)
      .join("|");
    const found = this.patterns.get(joined) ?? new RegExp(joined, "gu");
    this.patterns.set(joined, found);
    return found;
  }

  /** Return the spans of the literals of a text.
      @type {(text: string) => Span[]} */
  find(text) {
    return Array.from(text.matchAll(this.patternFor(text)), (match) => [
      match.index,
      match.index + match[0].length,
    ]);
  }

  /** Return the parts of a line between marks of its layout that have literals inside, and letters
      beside them; not the branches of a message.
      @type {(line: string) => Sentence[]} */
  sentences(line) {
    const literals = this.find(line);
    return (literals.length ? this.layout.spansToTranslate(line) : []).flatMap(([start, end]) => {
      /** @type {Span[]} */
      const spans = [];
      for (const [first, last] of literals) {
        // those without a letter between them are one
        if (first >= end || start >= last) continue;
        const joined =
          spans.length && !hasLetters(line.slice(start + spans[spans.length - 1][1], first));
        spans.push([joined ? (spans.pop() ?? [0])[0] : first - start, last - start]);
      }
      const sentence = { start, text: line.slice(start, end), literals: spans };
      if (!spans.length || spans[0][0] < 0 || spans[spans.length - 1][1] > end - start) return [];
      const marks = spans.map((span) => sentence.text.slice(...span));
      const isMessage = marks.some(
        (mark) => mark.split("{").length !== mark.split("}").length && BRANCH.test(mark),
      );
      return !isMessage && hasLetters(textsBeside(sentence).join("")) ? [sentence] : [];
    });
  }

  /** Return the spans of a text between literals that contain letters, without white space at their
      ends.
      @type {(text: string) => Span[]} */
  spansToTranslate(text) {
    /** @type {Span[]} */
    const spans = [];
    let start = 0;
    for (const [literal, after] of [...this.find(text), [text.length, text.length]]) {
      if (start && !isBlank(text[start - 1])) {
        AFTER.lastIndex = start;
        start = Math.min(literal, start + (AFTER.exec(known(text))?.[0].length ?? 0));
      }
      let end = literal;
      while (
        literal < text.length &&
        !isBlank(text[literal]) &&
        end > start &&
        BEFORE.includes(text[end - 1])
      ) {
        end -= 1;
      }
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

/** Return the texts of a sentence before, between and after its literals.
    @type {(sentence: Sentence) => string[]} */
export function textsBeside({ text, literals }) {
  const borders = [0, ...literals.flat(), text.length];
  return Array.from({ length: literals.length + 1 }, (_, index) =>
    text.slice(borders[2 * index], borders[2 * index + 1]),
  );
}
