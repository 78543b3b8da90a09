/* Splits a line into parts that are translated separately, and joins their outputs: as manyheads/tasks/parts.py. */

import { spansToTranslate } from "./literals.js";
import { piecesWithin, sentenceCase, sentenceSpans } from "./sentences.js";
import { characterAt, characterBefore, isAlphanumeric, isWide, strip } from "./unicode.js";

const slicesOf = (text, spans) => spans.map(([start, end]) => text.slice(start, end));
const isWholeText = (spans, text) => spans.length === 1 && spans[0][0] === 0 && spans[0][1] === text.length;

/** A line cut into parts: the span and the token ids of each; whether each is in capitals; sentences cut in their middle. */
export class Line {
  constructor({ text, spans, parts, unsplit, cutSentences = 0, capitals = [] }) {
    Object.assign(this, { text, spans, parts, unsplit, cutSentences, capitals });
  }

  /** The outputs of the parts, with the line's own blank space around and between them. */
  join(outputs) {
    const { text, spans, capitals } = this;
    if (!this.parts.length && strip(text)) return text;
    const [before, after] = this.unsplit || !spans.length ? ["", ""] : [text.slice(0, spans[0][0]), text.slice(spans.at(-1)[1])];
    let joined = "", last = "";
    outputs.forEach((output, index) => {
      const written = capitals[index] ? output.toUpperCase() : output;
      if (index) joined += this.between(index, last, characterAt(written, 0));
      joined += written;
      if (written) last = characterBefore(written, written.length);
    });
    return before + joined + after;
  }

  /** The blank space before the output of a part, between the last character before and its first one. */
  between(part, last, first) {
    const start = this.spans[part - 1][1], end = this.spans[part][0];
    return this.text.slice(start, end) || blankBetween(characterBefore(this.text, start), last, first);
  }
}

/** A blank between outputs of parts without one in the source, if the target language writes one. */
function blankBetween(mark, last, first) {
  const wide = [last, first].some((character) => isWide(character));
  return isAlphanumeric(mark) || wide || !last || !first ? "" : " ";
}

/**
 * Splits lines into parts. `split` is "auto", "sentences" or "none"; `trainedLength` and `longest` are the limits of the
 * training data and of the model in tokens; `language` is that of the source.
 */
export class Splitter {
  constructor({ tokenizer, language, split, trainedLength, longest, copyLiterals = false, lowerCapitals = false }) {
    Object.assign(this, { tokenizer, language, split, copyLiterals, lowerCapitals });
    this.limit = Math.min(trainedLength, longest);
  }

  /** The line of a text. */
  line(text) {
    const stretches = this.stretches(text);
    const whole = isWholeText(stretches, text);
    const ids = whole ? this.encode(text) : [];
    if (whole && this.fits(ids)) return new Line({ text, spans: stretches, parts: [ids], unsplit: true, capitals: this.capitals(text, stretches) });
    const spans = [], parts = [];
    let cutSentences = 0;
    for (const [start, end] of stretches) {
      const stretch = text.slice(start, end);
      const row = whole ? ids : this.encode(stretch);
      const cut = this.fits(row) ? { spans: [[0, end - start]], parts: [row], cutSentences: 0 } : this.sentences(stretch);
      spans.push(...cut.spans.map(([first, last]) => [start + first, start + last]));
      parts.push(...cut.parts);
      cutSentences += cut.cutSentences;
    }
    return new Line({ text, spans, parts, unsplit: false, cutSentences, capitals: this.capitals(text, spans) });
  }

  /** The token ids of a text; one in capitals is encoded as it would be written in a sentence. */
  encode(text) {
    return this.tokenizer.encode(this.lowerCapitals && inCapitals(text) ? sentenceCase(text, this.language) : text);
  }

  /** Whether a text of these tokens stays whole. */
  fits(ids) {
    return this.split === "none" || (this.split === "auto" && ids.length <= this.limit);
  }

  /** Which parts are in capitals. */
  capitals(text, spans) {
    return this.lowerCapitals ? slicesOf(text, spans).map(inCapitals) : [];
  }

  /** The spans of a line between what is copied; the whole line if nothing is. */
  stretches(text) {
    const whole = [[0, text.length]];
    if (!this.copyLiterals || !strip(text)) return whole;
    const spans = spansToTranslate(text);
    return spans.length === 1 && slicesOf(text, spans)[0] === strip(text) ? whole : spans;
  }

  /** The spans and tokens of the sentences of a text, or of their pieces, and how many were cut. */
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

/** Whether a text has two letters or more, all of them capitals. */
function inCapitals(text) {
  const letters = text.match(/\p{L}/gu) ?? [];
  return letters.length > 1 && letters.every((letter) => /\p{Uppercase}/u.test(letter));
}
