/* Splitting of a line into parts that are translated separately, and joining of their outputs, as in manyheads/tasks/parts.py. */

import { Literals } from "./literals.js";
import { piecesWithin, sentenceCase, sentenceSpans } from "./sentences.js";
import { characterAt, characterBefore, isAlphanumeric, isWide, strip } from "./unicode.js";

/** Return the texts of spans. */
const slicesOf = (text, spans) => spans.map(([start, end]) => text.slice(start, end));
const isWholeText = (spans, text) => spans.length === 1 && spans[0][0] === 0 && spans[0][1] === text.length;

/** A line cut into parts: the span and token ids of each part, whether it is in capitals, and the number of sentences that were cut. */
export class Line {
  constructor({ text, spans, parts, unsplit, cutSentences = 0, capitals = [] }) {
    Object.assign(this, { text, spans, parts, unsplit, cutSentences, capitals });
  }

  /** Return the text of a part. */
  partText(part) {
    return this.text.slice(...this.spans[part]);
  }

  /** Join the outputs of the parts, with the white space of the line around and between them. */
  join(outputs) {
    const { text, spans, capitals } = this;
    if (!this.parts.length && strip(text)) return text;
    const [before, after] = this.unsplit || !spans.length ? ["", ""] : [text.slice(0, spans[0][0]), text.slice(spans.at(-1)[1])];
    let joined = "", last = "";
    outputs.forEach((output, index) => {
      const cased = capitals[index] ? output.toUpperCase() : output;
      if (index) joined += this.between(index, last, characterAt(cased, 0));
      joined += cased;
      if (cased) last = characterBefore(cased, cased.length);
    });
    return before + joined + after;
  }

  /** Return the white space before the output of a part; `last` and `first` are the characters on its two sides. */
  between(part, last, first) {
    const start = this.spans[part - 1][1], end = this.spans[part][0];
    return this.text.slice(start, end) || blankBetween(characterBefore(this.text, start), last, first);
  }
}

/** Return a blank between the outputs of parts that the source does not separate by one, if the target language uses blanks there. */
function blankBetween(mark, last, first) {
  const wide = [last, first].some((character) => isWide(character));
  return isAlphanumeric(mark) || wide || !last || !first ? "" : " ";
}

/**
 * A splitter of lines into parts. `split` is "auto", "sentences" or "none"; `trainedLength` and `longest` are the limits of the
 * training data and of the model in tokens; `language` is the source language; `literals` are the kinds of text to copy, if any.
 */
export class Splitter {
  constructor({ tokenizer, language, split, trainedLength, longest, literals = null, lowerCapitals = false }) {
    Object.assign(this, { tokenizer, language, split, lowerCapitals });
    this.literals = literals && new Literals(literals);
    this.limit = Math.min(trainedLength, longest);
  }

  /** Split a text into a Line. */
  line(text) {
    const segments = this.segments(text);
    const unsplit = isWholeText(segments, text);
    const ids = unsplit ? this.encode(text) : [];
    if (unsplit && this.fits(ids)) return new Line({ text, spans: segments, parts: [ids], unsplit: true, capitals: this.capitals(text, segments) });
    const spans = [], parts = [];
    let cutSentences = 0;
    for (const [start, end] of segments) {
      const segment = text.slice(start, end);
      const row = unsplit ? ids : this.encode(segment);
      const cut = this.fits(row) ? { spans: [[0, end - start]], parts: [row], cutSentences: 0 } : this.sentences(segment);
      spans.push(...cut.spans.map(([first, last]) => [start + first, start + last]));
      parts.push(...cut.parts);
      cutSentences += cut.cutSentences;
    }
    return new Line({ text, spans, parts, unsplit: false, cutSentences, capitals: this.capitals(text, spans) });
  }

  /** Return the token ids of a text; with `lowerCapitals`, a text in capitals is encoded in sentence case. */
  encode(text) {
    return this.tokenizer.encode(this.lowerCapitals && inCapitals(text) ? sentenceCase(text, this.language) : text);
  }

  /** Return whether a text with these tokens is left unsplit. */
  fits(ids) {
    return this.split === "none" || (this.split === "auto" && ids.length <= this.limit);
  }

  /** Return for each span whether its text is in capitals; empty without `lowerCapitals`. */
  capitals(text, spans) {
    return this.lowerCapitals ? slicesOf(text, spans).map(inCapitals) : [];
  }

  /** Return the spans of a line between copied literals; the whole line if there are none. */
  segments(text) {
    const wholeLine = [[0, text.length]];
    if (!this.literals || !strip(text)) return wholeLine;
    const spans = this.literals.spansToTranslate(text);
    return spans.length === 1 && slicesOf(text, spans)[0] === strip(text) ? wholeLine : spans;
  }

  /** Return the spans and token ids of the sentences of a text, or of their pieces, and how many sentences were cut. */
  sentences(text) {
    const spans = [], parts = [];
    let cutSentences = 0;
    for (const sentence of sentenceSpans(text, this.language)) {
      const row = this.encode(text.slice(...sentence));
      const fits = row.length <= this.limit;
      const pieces = fits ? [sentence] : piecesWithin(text, sentence, this.limit, (piece) => this.encode(piece).length);
      spans.push(...pieces);
      parts.push(...(fits ? [row] : slicesOf(text, pieces).map((piece) => this.encode(piece))));
      cutSentences += pieces.length > 1;
    }
    return { spans, parts, cutSentences };
  }
}

/** Return whether a text has at least two letters, all of them capitals. */
function inCapitals(text) {
  const letters = text.match(/\p{L}/gu) ?? [];
  return letters.length > 1 && letters.every((letter) => /\p{Uppercase}/u.test(letter));
}
