/* Splitting of a line into parts that are translated separately, and joining of their outputs, as
   in manyheads/inference/translation/parts.py. */

import {
  lineSpans,
  piecesWithin,
  sentenceCase,
  sentenceSpans,
  UNSPACED_END,
} from "../text/sentences.js";
import {
  characterAt,
  characterBefore,
  hasLetters,
  hasText,
  isWide,
  known,
  upperCase,
} from "../text/unicode.js";

const CODE = /^(`{3,}|~{3,})[^`]*$/u; // a line that begins a block of code
// characters at the end of a sentence: its mark, quotation marks and brackets
const LONGEST_END = 8;

/** A part of a line: its offset, text and token ids, and whether it is in capitals. */
export class Part {
  /** @param {number} start @param {string} text @param {number[]} ids @param {boolean} capitals */
  constructor(start, text, ids, capitals = false) {
    this.start = start;
    this.text = text;
    this.ids = ids;
    this.capitals = capitals;
  }

  get end() {
    return this.start + this.text.length;
  }

  /** Return the text of tokens of the part or of its output.
      @type {(tokenizer: Tokenizer, tokens: number[]) => string} */
  decode(tokenizer, tokens) {
    return tokenizer.decode(tokens);
  }

  /** Return the text of an output, without broken characters.
      @type {(tokenizer: Tokenizer, tokens: number[]) => string} */
  outputText(tokenizer, tokens) {
    return this.decode(tokenizer, tokenizer.wholeCharacters(tokens, this.text).whole);
  }
}

/** A line cut into parts, with the number of sentences that were cut, and the language of the
    translation. */
export class Line {
  /** @param {{ text: string, parts: Part[], cutSentences?: number, target?: string }} fields */
  constructor({ text, parts, cutSentences = 0, target = "" }) {
    this.text = text;
    this.parts = parts;
    this.cutSentences = cutSentences;
    this.target = target;
  }

  /** The token ids of each part. */
  get rows() {
    return this.parts.map(({ ids }) => ids);
  }

  /** Join the outputs of the parts, with the white space and the copied text around and between
      them.
      @type {(outputs: string[]) => string} */
  join(outputs) {
    let joined = "";
    let last = "";
    outputs.forEach((output, index) => {
      const cased = this.parts[index].capitals ? upperCase(output, this.target) : output;
      joined += this.between(index, last, characterAt(cased, 0)) + cased;
      if (cased) last = characterBefore(cased, cased.length);
    });
    return joined + this.text.slice(this.parts.at(-1)?.end ?? 0);
  }

  /** Return the white space and the copied text before the output of a part; `last` and `first` are
      the characters on its two sides.
      @type {(index: number, last: string, first: string) => string} */
  between(index, last, first) {
    const start = index ? this.parts[index - 1].end : 0;
    const end = this.parts[index].start;
    return (
      this.text.slice(start, end) ||
      blankBetween(this.text.slice(Math.max(0, start - LONGEST_END), start), last, first)
    );
  }
}

/** Return a blank between the outputs of parts that the source does not separate by one, if the
    target language uses blanks there.
    @type {(before: string, last: string, first: string) => string} */
function blankBetween(before, last, first) {
  const wide = [last, first].some((character) => isWide(character));
  return UNSPACED_END.test(before) && !wide && last && first ? " " : "";
}

/** A splitter of lines into parts. `split` is "auto", "sentences" or "none"; `trainedLength` and
    `longest` are the limits of the training data and of the model in tokens; `language` and
    `target` are the two languages; `spansToTranslate` returns the spans of a line that are not
    copied. White space stays as it is, and so do line ends within a line: each of its lines is
    split by itself. A line, a sentence or a piece without a letter is copied, unless the tokenizer
    knows no letters. */
export class Splitter {
  /** @param {SplitterOptions} options */
  constructor({
    tokenizer,
    language,
    split = "auto",
    trainedLength,
    longest,
    spansToTranslate = (line) => [[0, line.length]],
    lowerCapitals = false,
    target = "",
  }) {
    this.tokenizer = tokenizer;
    this.language = language;
    this.split = split;
    this.lowerCapitals = lowerCapitals;
    this.target = target;
    this.spansToTranslate = spansToTranslate;
    this.limit = Math.min(trainedLength, longest);
  }

  /** Split a text into a Line.
      @param {string} text */
  line(text) {
    const sentences = this.stretches(text).flatMap((span) => this.sentences(text, span));
    return new Line({
      text,
      parts: sentences.flat().filter((part) => part.ids.length && this.translates(part.text)),
      cutSentences: sentences.filter((pieces) => pieces.length > 1).length,
      target: this.target,
    });
  }

  /** Return the part of a text in a span.
      @type {(text: string, span: Span) => Part} */
  part(text, [start, end]) {
    const own = text.slice(start, end);
    return new Part(start, own, this.encode(own), this.inCapitals(own));
  }

  /** Return the parts of each sentence of a span: one, or the pieces of a sentence that is too
      long. A span that fits counts as one sentence.
      @type {(text: string, span: Span) => Part[][]} */
  sentences(text, [start, end]) {
    const whole = this.part(text, [start, end]);
    if (this.fits(whole.ids)) return [[whole]];
    return sentenceSpans(whole.text, this.language).map((span) => {
      const sentence = this.part(text, [start + span[0], start + span[1]]);
      if (sentence.ids.length <= this.limit) return [sentence];
      const count = (/** @type {string} */ piece) => this.encode(piece).length;
      return piecesWithin(whole.text, span, this.limit, count).map(([first, last]) =>
        this.part(text, [start + first, start + last]),
      );
    });
  }

  /** Return the token ids of a text; with `lowerCapitals`, a text in capitals is encoded in
      sentence case.
      @type {(text: string) => number[]} */
  encode(text) {
    return this.tokenizer.encode(this.inCapitals(text) ? sentenceCase(text, this.language) : text);
  }

  /** Return whether a text with these tokens is left unsplit.
      @type {(ids: number[]) => boolean} */
  fits(ids) {
    return this.split === "none" || (this.split === "auto" && ids.length <= this.limit);
  }

  /** Return whether a text has at least two letters, all of them capitals; never without
      `lowerCapitals`.
      @type {(text: string) => boolean} */
  inCapitals(text) {
    const letters = this.lowerCapitals ? (known(text).match(/\p{L}/gu) ?? []) : [];
    return letters.length > 1 && letters.every((letter) => /\p{Uppercase}/u.test(letter));
  }

  /** Return the spans that are not copied: the lines of a text, or what lies between copied texts
      in them.
      @type {(text: string) => Span[]} */
  stretches(text) {
    const lines = this.translatedLines(text);
    if (!this.tokenizer.knowsLetters) return lines;
    return lines.flatMap(([start, end]) =>
      this.spansToTranslate(text.slice(start, end)).map(
        ([first, last]) => /** @type {Span} */ ([start + first, start + last]),
      ),
    );
  }

  /** Return the spans of the lines of a text that are not copied as a whole.
      @type {(text: string) => Span[]} */
  translatedLines(text) {
    return outsideCode(text).filter((span) => this.translates(text.slice(...span)));
  }

  /** Return the spans of the translated lines of a text, or of the sentences of a line that is too
      long.
      @type {(text: string) => Span[]} */
  units(text) {
    return this.translatedLines(text).flatMap(([start, end]) => {
      const line = text.slice(start, end);
      return this.fits(this.encode(line))
        ? [[start, end]]
        : sentenceSpans(line, this.language).map(([first, last]) => [start + first, start + last]);
    });
  }

  /** Return whether a text is translated, not copied.
      @type {(text: string) => boolean} */
  translates(text) {
    return hasLetters(text) || (hasText(text) && !this.tokenizer.knowsLetters);
  }
}

/** Return the spans of the lines of a text without blocks of code, which stand between lines of
    three backquotes or tildes.
    @type {(text: string) => Span[]} */
function outsideCode(text) {
  /** @type {Span[]} */
  const outside = [];
  /** Lines since a mark that may begin a block. @type {Span[]} */
  let held = [];
  let mark = "";
  for (const span of lineSpans(text)) {
    const line = text.slice(...span);
    const begin = CODE.exec(line);
    if (mark && line.startsWith(mark) && [...line].every((character) => character === mark[0])) {
      [held, mark] = [[], ""];
    } else if (mark) held.push(span);
    else if (begin) [held, mark] = [[span], begin[1]];
    else outside.push(span);
  }
  return [...outside, ...held];
}
