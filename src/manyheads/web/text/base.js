/* The base class of all tokenizers, as in manyheads/text/interface.py. */

import { lower, normalize, normalizeTarget, sourceForm, unify } from "./normalize.js";
import { hasLetters } from "./unicode.js";
import { brokenCharacters, utf8Bytes } from "./utf8.js";

export const UNK = 0;
export const PAD = 1;
export const BOS = 2;
export const EOS = 3;
export const SPECIALS = ["<unk>", "<pad>", "<s>", "</s>"];

/** Converts text to token ids and back. A subclass sets `size`, and has `encode`, `decode` and
    `pieces`. */
export class Tokenizer {
  size = 0;
  /** @type {boolean | undefined} */
  letters;

  /** @param {TokenizerDescription} description */
  constructor({ kind, lowercase = false, keepSpace = false, marksBetween = 1, side = "", marks }) {
    this.kind = kind;
    this.lowercase = lowercase;
    this.keepSpace = keepSpace;
    this.marksBetween = marksBetween;
    this.side = side; // of a translation, "source" or "target", whose normal form the text gets
    /** Patterns of the marks that sources lose. */
    this.marks =
      marks &&
      Object.fromEntries(
        Object.entries(marks).map(([name, pattern]) => [name, new RegExp(pattern, "gu")]),
      );
  }

  /** Return the tokenizer with the normal form of a side.
      @param {"" | "source" | "target"} side */
  forSide(side) {
    return Object.assign(Object.create(Object.getPrototypeOf(this)), this, { side });
  }

  /** Return the token ids of a text.
      @type {(text: string) => number[]} */
  encode() {
    throw new Error("a subclass encodes");
  }

  /** Return the text of token ids.
      @type {(ids: number[]) => string} */
  decode() {
    throw new Error("a subclass decodes");
  }

  /** Return the texts of token ids for display.
      @type {(ids: number[]) => string[]} */
  pieces() {
    throw new Error("a subclass has pieces");
  }

  /** Whether text with letters can be encoded; not so in a task of numbers alone. */
  get knowsLetters() {
    this.letters ??=
      this.kind === "bytes" ||
      this.pieces(
        Array.from({ length: this.size - SPECIALS.length }, (_, i) => SPECIALS.length + i),
      ).some((piece) => !piece.startsWith("<0x") && hasLetters(piece));
    return this.letters;
  }

  /** Return a source without typographic marks; any other text as it is.
      @type {(text: string) => string} */
  formed(text) {
    return this.side === "source" && this.marks ? sourceForm(text, this.marks) : text;
  }

  /** Normalise a text, and lower-case it if the tokenizer was trained so.
      @type {(text: string) => string} */
  prepare(text) {
    const normal = this.keepSpace
      ? unify(text)
      : this.side === "target"
        ? normalizeTarget(text)
        : normalize(this.formed(text));
    return this.lowercase ? lower(normal) : normal;
  }

  /** Return a copy of the ids; throw a RangeError if one is outside the vocabulary.
      @type {(ids: number[]) => number[]} */
  check(ids) {
    const invalid = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= this.size);
    if (invalid !== undefined) {
      throw new RangeError(`token id ${invalid} is outside this vocabulary of ${this.size}`);
    }
    return [...ids];
  }

  /** The byte of UTF-8 of each id that stands for one: a Map.
      @type {Map<number, number>} */
  byteValues = new Map();

  /** Leave out ids of bytes that form no character; if exactly one character of the text `source`
      begins with them, complete it. Returns { whole, broken }: the ids, and the number of broken
      characters.
      @type {(ids: number[], source?: string) => { whole: number[], broken: number }} */
  wholeCharacters(ids, source = "") {
    const values = this.byteValues;
    const whole = [];
    let broken = 0;
    if (!ids.some((id) => values.has(id))) return { whole: [...ids], broken };
    for (let start = 0, end; start < ids.length; start = end) {
      for (end = start; end < ids.length && values.has(ids[end]);) end += 1;
      const bytes = ids.slice(start, end).flatMap((id) => values.get(id) ?? []);
      let kept = 0;
      for (const [first, last] of brokenCharacters(bytes)) {
        whole.push(
          ...ids.slice(start + kept, start + first),
          ...this.completed(bytes.slice(first, last), source),
        );
        kept = last;
        broken += 1;
      }
      whole.push(...ids.slice(start + kept, end));
      for (; end < ids.length && !values.has(ids[end]); end += 1) whole.push(ids[end]);
    }
    return { whole, broken };
  }

  /** The ids of the placeholders of copied texts, all or none (manyheads/text/reserved.py).
      @type {number[]} */
  placeholderIds = [];

  /** Return the text of the output of a model; `source` as in wholeCharacters.
      @type {(ids: number[], source?: string) => string} */
  outputText(ids, source = "") {
    return this.decode(this.wholeCharacters(ids, source).whole);
  }

  /** Return the ids of the only character of a text with this beginning in UTF-8; [] if there is
      not one.
      @type {(beginning: number[], source: string) => number[]} */
  completed(beginning, source) {
    const found = [...new Set(source)].filter((character) =>
      beginning.every((byte, index) => utf8Bytes(character)[index] === byte),
    );
    if (found.length !== 1) return [];
    const ids = new Map([...this.byteValues].map(([id, byte]) => [byte, id]));
    return [...utf8Bytes(found[0])].flatMap((byte) => ids.get(byte) ?? []);
  }

  /** Return the ids without padding, begin and end symbols.
      @type {(ids: number[]) => number[]} */
  textIds(ids) {
    return this.check(ids).filter((id) => id === UNK || id > EOS);
  }

  /** Decode each run of known ids by `decode`, and each run of unknown ids as one "<unk>"; join the
      texts by blanks.
      @type {(ids: number[], decode: (run: number[]) => string) => string} */
  decodeRuns(ids, decode) {
    /** @type {number[][]} */
    const runs = [];
    for (const id of this.textIds(ids)) {
      const last = runs.at(-1);
      if (last && (last[0] === UNK) === (id === UNK)) last.push(id);
      else runs.push([id]);
    }
    return runs.map((run) => (run[0] === UNK ? SPECIALS[UNK] : decode(run))).join(" ");
  }
}
