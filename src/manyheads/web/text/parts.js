/* Splitting of a line into parts that are translated separately, and joining of their outputs, as
   in manyheads/inference/translation/parts.py. */

import { markedIds } from "./kepttexts.js";
import { Literals, textsBeside } from "./literals.js";
import { lineSpans, piecesWithin, sentenceCase, sentenceSpans, UNSPACED_END } from "./sentences.js";
import {
  characterAt,
  characterBefore,
  hasLetters,
  hasText,
  isWide,
  known,
  strip,
  upperCase,
} from "./unicode.js";

const CODE = /^(`{3,}|~{3,})[^`]*$/u; // a line that begins a block of code
// characters at the end of a sentence: its mark, quotation marks and brackets
const LONGEST_END = 8;

/** Return the texts of spans.
    @type {(text: string, spans: Span[]) => string[]} */
const slicesOf = (text, spans) => spans.map(([start, end]) => text.slice(start, end));

/** A line cut into parts: the span and token ids of each part, whether it is in capitals, and the
    number of sentences that were cut; `kept` has the parts whose literals are symbols in the
    tokens, by their number; `target` is the language of the translation. */
export class Line {
  /** @param {{ text: string, spans: Span[], parts: number[][], cutSentences?: number, capitals?:
        boolean[], kept?: { [part: number]: Sentence }, target?: string }} fields */
  constructor({ text, spans, parts, cutSentences = 0, capitals = [], kept = {}, target = "" }) {
    this.text = text;
    this.spans = spans;
    this.parts = parts;
    this.cutSentences = cutSentences;
    this.capitals = capitals;
    this.kept = kept;
    this.target = target;
  }

  /** Return the text of a part.
      @type {(part: number) => string} */
  partText(part) {
    return this.text.slice(...this.spans[part]);
  }

  /** Join the outputs of the parts, with the white space and the copied text around and between
      them.
      @type {(outputs: string[]) => string} */
  join(outputs) {
    let joined = "";
    let last = "";
    outputs.forEach((output, index) => {
      const cased = this.capitals[index] ? upperCase(output, this.target) : output;
      joined += this.between(index, last, characterAt(cased, 0)) + cased;
      if (cased) last = characterBefore(cased, cased.length);
    });
    return joined + this.text.slice(this.spans.at(-1)?.[1] ?? 0);
  }

  /** Return the white space and the copied text before the output of a part; `last` and `first` are
      the characters on its two sides.
      @type {(part: number, last: string, first: string) => string} */
  between(part, last, first) {
    const start = part ? this.spans[part - 1][1] : 0;
    const end = this.spans[part][0];
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
    `target` are the two languages; `literals` are the kinds of text to copy. White space stays as
    it is, and so do line ends within a line: each of its lines is split by itself. A line, a
    sentence or a piece without a letter is copied, unless the tokenizer knows no letters. */
export class Splitter {
  /** @param {SplitterOptions} options */
  constructor({
    tokenizer,
    language,
    split,
    trainedLength,
    longest,
    literals,
    lowerCapitals = false,
    target = "",
  }) {
    this.tokenizer = tokenizer;
    this.language = language;
    this.split = split;
    this.lowerCapitals = lowerCapitals;
    this.target = target;
    this.literals = new Literals(literals);
    this.limit = Math.min(trainedLength, longest);
  }

  /** Split a text into a Line.
      @param {string} text */
  line(text) {
    /** @type {{ spans: Span[], parts: number[][] }} */
    const { spans, parts } = { spans: [], parts: [] };
    let cutSentences = 0;
    for (const [start, end] of this.stretches(text)) {
      const stretch = text.slice(start, end);
      const row = this.encode(stretch);
      const cut = this.fits(row)
        ? { spans: [[0, stretch.length]], parts: [row], cutSentences: 0 }
        : this.sentences(stretch);
      cut.spans.forEach(([first, last], index) => {
        if (!cut.parts[index].length || !this.translates(stretch.slice(first, last))) return;
        spans.push([start + first, start + last]);
        parts.push(cut.parts[index]);
      });
      cutSentences += cut.cutSentences;
    }
    return new Line({
      text,
      spans,
      parts,
      cutSentences,
      capitals: this.capitals(text, spans),
      target: this.target,
    });
  }

  /** Return a line with one part for each sentence with literals, if it fits with symbols in their
      place.
      @param {Line} line */
  withMarks(line) {
    /** @type {{ span: Span, ids: number[], sentence?: Sentence }[]} */
    let parts = line.spans.map((span, index) => ({ span, ids: line.parts[index] }));
    for (const [offset, end] of this.translatedLines(line.text)) {
      for (const sentence of this.literals
        .sentences(line.text.slice(offset, end))
        .flatMap((found) => this.sentencesWithin(found))) {
        const start = offset + sentence.start;
        const stop = start + sentence.text.length;
        const ids = markedIds(sentence, this.tokenizer);
        if (
          !ids ||
          ids.length > this.limit ||
          (this.lowerCapitals && inCapitals(textsBeside(sentence).join("")))
        ) {
          continue;
        }
        parts = [
          ...parts.filter(({ span }) => span[1] <= start || stop <= span[0]),
          { span: [start, stop], ids, sentence },
        ];
      }
    }
    parts.sort((a, b) => a.span[0] - b.span[0]);
    const spans = parts.map(({ span }) => span);
    const kept = Object.fromEntries(
      parts.flatMap(({ sentence }, index) => (sentence ? [[index, sentence]] : [])),
    );
    return new Line({
      ...line,
      spans,
      parts: parts.map(({ ids }) => ids),
      capitals: this.capitals(line.text, spans),
      kept,
    });
  }

  /** Return the sentences of a text that have literals and letters beside them; the text itself if
      it fits.
      @type {(found: Sentence) => Sentence[]} */
  sentencesWithin(found) {
    const { start, text, literals } = found;
    const ids = markedIds(found, this.tokenizer);
    if (ids && this.fits(ids)) return [found];
    const starts = sentenceSpans(text, this.language)
      .map(([first]) => first)
      .filter((at) => !literals.some(([first, last]) => first < at && at < last));
    return starts
      .map((first, index) => {
        const last = first + strip(text.slice(first, starts[index + 1])).length;
        const own = literals.filter(([from, to]) => first <= from && to <= last);
        return {
          start: start + first,
          text: text.slice(first, last),
          literals: own.map(([from, to]) => /** @type {Span} */ ([from - first, to - first])),
        };
      })
      .filter((part) => part.literals.length && hasLetters(textsBeside(part).join("")));
  }

  /** Return the token ids of a text; with `lowerCapitals`, a text in capitals is encoded in
      sentence case.
      @type {(text: string) => number[]} */
  encode(text) {
    return this.tokenizer.encode(
      this.lowerCapitals && inCapitals(text) ? sentenceCase(text, this.language) : text,
    );
  }

  /** Return whether a text with these tokens is left unsplit.
      @type {(ids: number[]) => boolean} */
  fits(ids) {
    return this.split === "none" || (this.split === "auto" && ids.length <= this.limit);
  }

  /** Return for each span whether its text is in capitals; empty without `lowerCapitals`.
      @type {(text: string, spans: Span[]) => boolean[]} */
  capitals(text, spans) {
    return this.lowerCapitals ? slicesOf(text, spans).map(inCapitals) : [];
  }

  /** Return the spans that are not copied: the lines of a text, or what lies between literals in
      them.
      @type {(text: string) => Span[]} */
  stretches(text) {
    const lines = this.translatedLines(text);
    if (!this.tokenizer.knowsLetters) return lines;
    return lines.flatMap(([start, end]) =>
      this.literals
        .spansToTranslate(text.slice(start, end))
        .map(([first, last]) => [start + first, start + last]),
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

  /** Return the spans and token ids of the sentences of a text, or of their pieces, and how many
      sentences were cut.
      @type {(text: string) => { spans: Span[], parts: number[][], cutSentences: number }} */
  sentences(text) {
    /** @type {{ spans: Span[], parts: number[][] }} */
    const { spans, parts } = { spans: [], parts: [] };
    let cutSentences = 0;
    for (const sentence of sentenceSpans(text, this.language)) {
      const row = this.encode(text.slice(...sentence));
      if (row.length <= this.limit) {
        spans.push(sentence);
        parts.push(row);
        continue;
      }
      const pieces = piecesWithin(text, sentence, this.limit, (piece) => this.encode(piece).length);
      spans.push(...pieces);
      parts.push(...slicesOf(text, pieces).map((piece) => this.encode(piece)));
      if (pieces.length > 1) cutSentences += 1;
    }
    return { spans, parts, cutSentences };
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

/** Return whether a text has at least two letters, all of them capitals.
    @type {(text: string) => boolean} */
function inCapitals(text) {
  const letters = known(text).match(/\p{L}/gu) ?? [];
  return letters.length > 1 && letters.every((letter) => /\p{Uppercase}/u.test(letter));
}
