/* The base class of all tokenizers, as in manyheads/text/interface.py. */

import { lower, normalize, unify } from "./normalize.js";
import { hasLetters } from "./unicode.js";

export const UNK = 0;
export const PAD = 1;
export const BOS = 2;
export const EOS = 3;
export const SPECIALS = ["<unk>", "<pad>", "<s>", "</s>"];

/** Converts text to token ids and back. A subclass has `size`, `encode`, `decode` and `pieces`. */
export class Tokenizer {
  unk = UNK;
  pad = PAD;
  bos = BOS;
  eos = EOS;

  constructor({ kind, lowercase = false, keepSpace = false, mask = UNK, marksBetween = 1, absent = [] }) {
    Object.assign(this, { kind, lowercase, keepSpace, mask, marksBetween, absent });
  }

  /** Whether text with letters can be encoded; not so in a task of numbers alone. */
  get knowsLetters() {
    this.letters ??= this.kind === "bytes" || this.pieces(Array.from({ length: this.size - SPECIALS.length }, (_, i) => SPECIALS.length + i))
      .some((piece) => !piece.startsWith("<0x") && hasLetters(piece));
    return this.letters;
  }

  /** Normalise a text, and lower-case it if the tokenizer was trained so. */
  prepare(text) {
    const normal = this.keepSpace ? unify(text) : normalize(text);
    return this.lowercase ? lower(normal) : normal;
  }

  /** Return a copy of the ids; throw a RangeError if one is outside the vocabulary. */
  check(ids) {
    const invalid = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= this.size);
    if (invalid !== undefined) throw new RangeError(`token id ${invalid} is outside this vocabulary of ${this.size}`);
    return [...ids];
  }

  /** Return the ids without padding, begin and end symbols. */
  textIds(ids) {
    return this.check(ids).filter((id) => id === UNK || id > EOS);
  }

  /** Decode each run of known ids by `decode`, and each run of unknown ids as one "<unk>"; join the texts by blanks. */
  decodeRuns(ids, decode) {
    const runs = [];
    for (const id of this.textIds(ids)) {
      const last = runs.at(-1);
      if (last && (last[0] === UNK) === (id === UNK)) last.push(id);
      else runs.push([id]);
    }
    return runs.map((run) => (run[0] === UNK ? SPECIALS[UNK] : decode(run))).join(" ");
  }
}
