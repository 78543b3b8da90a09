/* Literals: addresses, numbers, tags and other texts that a translation copies unchanged. A line is
   cut at its literals, or a sentence is translated as a whole, with placeholders in their place,
   which are symbols of the vocabulary. As in bitext/literals.py and
   manyheads/inference/translation/literals.py. */

import { sentenceSpans } from "../text/sentences.js";
import {
  characterAt,
  characterBefore,
  hasLetters,
  isAlphanumeric,
  isBlank,
  isWide,
  known,
  strip,
  stripStart,
  WHITE,
} from "../text/unicode.js";
import { Line, Part } from "./parts.js";

const BEFORE = "([{<\"'„“‚‘«‹»›「『（【¿¡*_~`|="; // marks before a literal that are copied with it
const AFTER = new RegExp(`[^\\p{L}\\p{N}_${WHITE}<{@$%]*`, "uy"); // marks after a literal, likewise
// what begins, parts or ends the branches of a message
const BRANCH = /,[^{}\\]*\{|\}[^{}\\]*[{}]/u;

// tags, links, emphasis and codes, which must stay in their order
const ORDERED = /^(?:[<[\]*_~}\\]|\{(?:[/\\]|\d{1,4}[>\]]))/u;
const NO_BLANK_AFTER = "([{«„“‚‘¿¡";
const NO_BLANK_BEFORE = ".,;:!?…)]}»”’。、，！？";

// outputs among which one with all placeholders is looked for, where the best has not
const WIDE_BEAM = 10;

/** The kinds of literals, from bitext/literals.toml: a list of { pattern, needs, layout }. */
export class LiteralKinds {
  /** @param {LiteralKind[]} kinds */
  constructor(kinds) {
    this.kinds = kinds.map(({ pattern, needs }) => ({
      pattern,
      needs: needs && new RegExp(needs, "u"),
    }));
    const layout = kinds.filter((kind) => kind.layout);
    /** @type {LiteralKinds} */
    this.layout = layout.length === kinds.length ? this : new LiteralKinds(layout);
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

  /** Return the parts of a line of a text between marks of its layout that have literals inside,
      and letters beside them; not the branches of a message.
      @type {(text: string, span: Span) => Sentence[]} */
  sentences(text, [lineStart, lineEnd]) {
    const line = text.slice(lineStart, lineEnd);
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
      if (!spans.length || spans[0][0] < 0 || spans[spans.length - 1][1] > end - start) return [];
      const sentence = {
        start: lineStart + start,
        text: line.slice(start, end),
        literals: spans,
      };
      return !isMessage(sentence) && hasLetters(textsBeside(sentence).join("")) ? [sentence] : [];
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

/** Return whether the texts beside the literals are branches of a message, not a sentence: braces
    are closed in another literal.
    @type {(sentence: Sentence) => boolean} */
const isMessage = ({ text, literals }) =>
  literals
    .map((span) => text.slice(...span))
    .some(
      (literal) => literal.split("{").length !== literal.split("}").length && BRANCH.test(literal),
    );

/** Return the texts of a sentence before, between and after its literals.
    @type {(sentence: Sentence) => string[]} */
function textsBeside({ text, literals }) {
  const borders = [0, ...literals.flat(), text.length];
  return Array.from({ length: literals.length + 1 }, (_, index) =>
    text.slice(borders[2 * index], borders[2 * index + 1]),
  );
}

/** A part that is a sentence with placeholders in the place of its literals. */
export class SentenceWithPlaceholders extends Part {
  /** @param {Sentence} sentence @param {number[]} ids @param {boolean} capitals */
  constructor({ start, text, literals }, ids, capitals) {
    super(start, text, ids, capitals);
    this.literals = literals;
  }

  /** Return whether an output holds the placeholder of each literal once; `tokenizer` is that of
      the target.
      @type {(tokenizer: Tokenizer, tokens: number[]) => boolean} */
  isComplete(tokenizer, tokens) {
    const { numbers } = splitAtPlaceholders(tokenizer, tokens);
    const found = this.literals.some(([start]) => ORDERED.test(this.text.slice(start)))
      ? numbers
      : [...numbers].sort((a, b) => a - b);
    return (
      found.length === this.literals.length && found.every((number, index) => number === index)
    );
  }

  /** Return the text of tokens, with the literals in the place of their placeholders.
      @type {(tokenizer: Tokenizer, tokens: number[]) => string} */
  decode(tokenizer, tokens) {
    const { runs, numbers } = splitAtPlaceholders(tokenizer, tokens);
    const [first, ...others] = runs.map((run) => tokenizer.decode(run));
    let text = first;
    numbers.forEach((number, index) => {
      const [start, end] = this.literals[number];
      const after = others[index];
      const tag = this.text[end - 1] === ">";
      if (text) {
        text += blankBeside(
          characterBefore(this.text, start),
          characterBefore(text, text.length),
          NO_BLANK_AFTER,
          tag,
        );
      }
      text += this.text.slice(start, end);
      if (after) {
        text +=
          blankBeside(characterAt(this.text, end), characterAt(after, 0), NO_BLANK_BEFORE, tag) +
          after;
      }
    });
    return text;
  }
}

/** Return a line with one part for each sentence with literals, if it fits with placeholders in
    their place.
    @type {(line: Line, splitter: Splitter, kinds: LiteralKinds) => Line} */
export function withPlaceholders(line, splitter, kinds) {
  const sentences = splitter
    .translatedLines(line.text)
    .flatMap((span) => kinds.sentences(line.text, span))
    .flatMap((sentence) => sentencesWithin(sentence, splitter));
  let { parts } = line;
  for (const sentence of sentences) {
    const ids = idsWithPlaceholders(sentence, splitter.tokenizer);
    const letters = textsBeside(sentence).join("");
    if (!ids || ids.length > splitter.limit || splitter.inCapitals(letters)) continue;
    const whole = new SentenceWithPlaceholders(sentence, ids, splitter.inCapitals(sentence.text));
    parts = [...parts.filter((part) => part.end <= whole.start || whole.end <= part.start), whole];
  }
  return new Line({ ...line, parts: [...parts].sort((a, b) => a.start - b.start) });
}

/** Return the sentences of a text that have literals and letters beside them; the text itself if it
    fits.
    @type {(whole: Sentence, splitter: Splitter) => Sentence[]} */
function sentencesWithin(whole, splitter) {
  const { start, text, literals } = whole;
  const ids = idsWithPlaceholders(whole, splitter.tokenizer);
  if (ids && splitter.fits(ids)) return [whole];
  const starts = sentenceSpans(text, splitter.language)
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

/** Return the token ids of a sentence with placeholders in the place of its literals; null if there
    are not as many placeholders.
    @type {(sentence: Sentence, tokenizer: Tokenizer) => number[] | null} */
function idsWithPlaceholders(sentence, tokenizer) {
  if (sentence.literals.length > tokenizer.placeholderIds.length) return null;
  return textsBeside(sentence).flatMap((text, index) => [
    ...(index ? [tokenizer.placeholderIds[index - 1]] : []),
    ...tokenizer.encode(text),
  ]);
}

/** Return the runs of tokens around placeholders, and the numbers of these placeholders from 0.
    @type {(tokenizer: Tokenizer, tokens: number[]) => { runs: number[][], numbers: number[] }} */
function splitAtPlaceholders({ placeholderIds }, tokens) {
  /** @type {number[][]} */
  const runs = [[]];
  const numbers = [];
  for (const token of tokens) {
    if (placeholderIds.includes(token)) {
      numbers.push(placeholderIds.indexOf(token));
      runs.push([]);
    } else runs[runs.length - 1].push(token);
  }
  return { runs, numbers };
}

/** Return what separates a literal from the output beside it: a blank, or nothing. `source` and
    `output` are the characters beside it.
    @type {(source: string, output: string, noBlank: string, tag: boolean) => string} */
function blankBeside(source, output, noBlank, tag) {
  const wide = isWide(source) || (source >= "\uac00" && source <= "\ud7a3");
  const joined = source && !isBlank(source) && (tag || !wide);
  return (joined && (isAlphanumeric(source) || !isAlphanumeric(output))) || noBlank.includes(output)
    ? ""
    : " ";
}

/** Placeholders in the place of the literals of a sentence, so that it is translated as a whole. A
    line without an output that has them all is searched again with a wide beam, and then cut at its
    literals.
    @implements {Stage} */
export class Placeholders {
  /** @param {PageTranslator} translator */
  constructor(translator) {
    this.translator = translator;
    this.kinds = new LiteralKinds(translator.settings.literals);
  }

  /** @type {Partial<SplitterOptions>} */
  get splitting() {
    return { spansToTranslate: (line) => this.kinds.spansToTranslate(line) };
  }

  /** @type {(draft: Draft) => Draft} */
  before(draft) {
    const { tokenizers, splitter } = this.translator;
    const { source, target } = tokenizers;
    if (!source.placeholderIds.length || !target.placeholderIds.length) return draft;
    return { ...draft, line: withPlaceholders(draft.line, splitter, this.kinds), cut: draft };
  }

  /** @type {(part: Part, output: Output) => boolean} */
  accepts(part, { tokens }) {
    const { target } = this.translator.tokenizers;
    return !(part instanceof SentenceWithPlaceholders) || part.isComplete(target, tokens);
  }

  /** @type {(draft: Draft) => Draft} */
  change(draft) {
    const { options, cut } = draft;
    const size = Math.max(WIDE_BEAM, options.beamSize ?? 0);
    const wide = { ...options, beamSize: size, nBest: size };
    return cut && options.nBest === size ? cut : { ...draft, options: wide };
  }
}
