/* Splitting of text into sentences, and of long sentences into pieces, as in
   manyheads/text/sentences.py. Spans are [start, end]. */

import {
  capitalize,
  characterAt,
  isAlphanumeric,
  isBlank,
  isCombining,
  isDigits,
  isUpper,
  known,
  moveOffset,
  WHITE,
} from "./unicode.js";

const WIDE_MARKS = "。！？｡．"; // end a sentence without a blank after them
const MARKS = /(?:…|(?![\u{10000}-\u{10ffff}])\p{Sentence_Terminal})+/gu;
const CLOSING_MARKS = "\"'”’»«“‘›‹)]}」』）】》〉］｝";
const OPENING_MARKS = "\"'“„‚”‘’«»‹›([{「『（【《〈［¿¡-–—*•";
/* After it a text is cut without a blank. */
export const UNSPACED_END = /[。！？｡．、，；：]["'”’»«“‘›‹)\]}」』）】》〉］｝]*$/u;
const LINE_ENDS = /[\n\r\v\f\x85\u2028\u2029]/g;
const CONTINUATIONS = "とってはがをもにのでや、"; // after a closing quotation: 「はい」と言った。
const LAST_WORD = new RegExp(`[^${WHITE}(\\["'“„«»-]+$`, "u");
const MAX_WORD = 40; // characters before a mark that may belong to its word

const ABBREVIATIONS = new Set(
  (
    "mr mrs ms dr prof st mt gen col lt sgt capt rev hon sen rep gov pres hr fr frl dipl ing " +
    "bzw sog vgl ca z.b d.h u.a z.t v.a o.g u.u i.d.r inkl exkl zzgl ggf evtl gem geb gest hg " +
    "hrsg jhd mio mrd vs cf approx dept est e.g i.e al resp"
  ).split(" "),
);
const NUMBER_ABBREVIATIONS = new Set(
  // only before a number
  (
    "no nos nr vol vols ch p pp sec eq art fig figs bd abb tab abs kap s str tel " +
    "jan feb mar apr jun jul aug sep sept oct okt nov dec dez"
  ).split(" "),
);
const ORDINAL_DOT = new Set("de da nb nn no fi et cs sk sl hr bs sr pl hu lv tr is lb".split(" "));
// 2020. 5. 3. is the third of May in Korean
const DATE = new RegExp(`\\p{Nd}\\.[${WHITE}]?\\p{Nd}{1,2}$`, "u");
const INITIAL = /^(?:[\p{L}\p{Nl}\p{No}]\.)*[\p{L}\p{Nl}\p{No}]$/u; // J, U.S, z.B
const NO_INITIAL = ["a.m", "p.m"];
/* A small letter of an abbreviation that is written with blanks: the a of "u. a."; the z of "z.
   B.", the n of "n. Chr.". */
const AFTER_LETTER = new RegExp(
  `(?<![\\p{L}\\p{N}])[\\p{L}\\p{Nl}\\p{No}]\\.[${WHITE}][\\p{L}\\p{Nl}\\p{No}]$`,
  "u",
);
const BEFORE_LETTER = new RegExp(`^\\.[${WHITE}](?:[\\p{L}\\p{Nl}\\p{No}]|Chr)\\.`, "u");
const ENUMERATION = /^(?:\p{Nd}{1,3}|[a-zA-Z])$/u;

/** Return the spans of the lines of a text, without white space at their ends; none if it is blank.
    @type {(text: string) => Span[]} */
export const lineSpans = (text) =>
  spansBetween(text, LINE_ENDS).flatMap((span) => trimmedSpan(text, span));

/** Return the spans of the sentences of a text, without white space at their ends; a line end
    always ends a sentence. `language` is a BCP 47 tag.
    @type {(text: string, language?: string) => Span[]} */
export function sentenceSpans(text, language = "") {
  const ordinals = ORDINAL_DOT.has(language.split("-")[0]);
  const seen = known(text);
  return spansBetween(seen, LINE_ENDS).flatMap(([start, end]) =>
    sentencesOfLine(seen, start, end, ordinals),
  );
}

/** Lower-case a text except for the first letter of each sentence.
    @type {(text: string, language?: string) => string} */
export function sentenceCase(text, language) {
  let result = "";
  let end = 0;
  for (const [start, stop] of sentenceSpans(text, language)) {
    result += text.slice(end, start) + capitalize(text.slice(start, stop), language);
    end = stop;
  }
  return result + text.slice(end);
}

/** Return the spans between the matches of a separator.
    @type {(text: string, separator: RegExp) => Span[]} */
function spansBetween(text, separator) {
  /** @type {Span[]} */
  const spans = [];
  let start = 0;
  for (const match of text.matchAll(separator)) {
    spans.push([start, match.index]);
    start = match.index + match[0].length;
  }
  return [...spans, [start, text.length]];
}

/** Return an array of the span without white space at its ends; empty if the span is blank.
    @type {(text: string, span: Span) => Span[]} */
function trimmedSpan(text, [start, end]) {
  const first = skipBlanks(text, start, end);
  if (first === end) return [];
  let last = end;
  while (isBlank(text[last - 1])) last -= 1;
  return [[first, last]];
}

/** Return the offset of the first character that is not blank; `end` if there is none.
    @type {(text: string, start: number, end: number) => number} */
function skipBlanks(text, start, end) {
  let index = start;
  while (index < end && isBlank(text[index])) index += 1;
  return index;
}

/** Return the spans of the sentences of a line.
    @type {(text: string, start: number, end: number, ordinals: boolean) => Span[]} */
function sentencesOfLine(text, start, end, ordinals) {
  const spans = [];
  let first = start; // offset of the current sentence
  for (const match of text.slice(start, end).matchAll(MARKS)) {
    const mark = start + match.index;
    const marks = match[0];
    const closers = mark + marks.length;
    const cut = skipClosingMarks(text, closers, end);
    const isWideMark = WIDE_MARKS.includes(marks.slice(-1));
    if (cut < end && !isBlank(text[cut]) && !isWideMark) continue;
    const after = skipBlanks(text, cut, end);
    if (after === end) break;
    const following = firstCharacter(text, after, end);
    const endsSentence = isWideMark
      ? !(
          (cut > closers && after === cut && CONTINUATIONS.includes(text[cut])) ||
          (marks === "．" && isDigits(characterAt(text, cut)))
        )
      : beginsSentence(following) &&
        !(marks === "." && isAbbreviation(text, first, mark, following, ordinals));
    if (!endsSentence) continue;
    spans.push(...trimmedSpan(text, [first, cut]));
    first = after;
  }
  return [...spans, ...trimmedSpan(text, [first, end])];
}

/** Return the offset after closing quotation marks and brackets, with the blank inside « Oui ! ».
    @type {(text: string, start: number, end: number) => number} */
function skipClosingMarks(text, start, end) {
  let index = start;
  while (index < end) {
    if (CLOSING_MARKS.includes(text[index])) index += 1;
    else if (
      isBlank(text[index]) &&
      index + 1 < end &&
      text[index + 1] === "»" &&
      (index + 2 === end || isBlank(text[index + 2]))
    ) {
      index += 2;
    } else break;
  }
  return index;
}

/** Return the first character after opening quotation marks, brackets, dashes and blanks; empty if
    there are more than 8.
    @type {(text: string, start: number, end: number) => string} */
function firstCharacter(text, start, end) {
  let index = start;
  for (let remaining = 8; remaining && index < end; remaining -= 1) {
    const character = characterAt(text, index);
    if (!OPENING_MARKS.includes(character) && !isBlank(character)) return character;
    index += character.length;
  }
  return "";
}

/** Return whether a sentence can begin with a character: not with a symbol, or a letter that has a
    capital.
    @type {(character: string) => boolean} */
const beginsSentence = (character) =>
  isAlphanumeric(character) &&
  (!/\p{Lowercase}/u.test(character) || character === capitalize(character));

/** Return whether a dot belongs to the word before it, so that the sentence, which begins at
    `first`, continues.
    @type {(text: string, first: number, dot: number, following: string, ordinals: boolean) =>
      boolean} */
function isAbbreviation(text, first, dot, following, ordinals) {
  const from = Math.max(first, moveOffset(text, dot, -MAX_WORD));
  const before = text.slice(from, dot);
  const match = LAST_WORD.exec(before);
  if (!match) return false;
  const word = match[0];
  const lowerCase = word.toLowerCase();
  if (from + match.index === first && ENUMERATION.test(word)) return true; // "3. Ein Hund läuft."
  if (isDigits(word)) {
    return DATE.test(before) || isDigits(following) || (ordinals && [...word].length <= 2);
  }
  if (
    ABBREVIATIONS.has(lowerCase) ||
    (NUMBER_ABBREVIATIONS.has(lowerCase) && isDigits(following))
  ) {
    return true;
  }
  const isSmall = /^\p{Lowercase}$/u.test(word);
  if (isSmall && (AFTER_LETTER.test(before) || BEFORE_LETTER.test(text.slice(dot, dot + 6)))) {
    return true;
  }
  return (
    INITIAL.test(word) && (isUpper(word) || word.includes(".")) && !NO_INITIAL.includes(lowerCase)
  );
}

/* --- long sentences --- */

/* Boundaries of clauses: after a comma or a similar mark, or before a dash. */
const CLAUSES = new RegExp(
  `(?<=[,;:،؛])[${WHITE}]+|(?<=[、，；：])|(?<![${WHITE},;:،؛])[${WHITE}]+(?=[–—-][${WHITE}])`,
  "gu",
);
const BLANKS = new RegExp(`[${WHITE}]+`, "gu");

/** Split a span into pieces of at most `limit` tokens: after commas and similar marks, else at
    blanks, else anywhere; return their spans.
    @type {(text: string, span: Span, limit: number, count: (piece: string) => number) => Span[]} */
export function piecesWithin(text, span, limit, count) {
  if (count(text.slice(...span)) <= limit) return [span];
  return packUnits(divideSpan(text, span, limit, count, [CLAUSES, BLANKS]), limit).map(
    (unit) => unit.span,
  );
}

/** Join adjacent units to pieces with about equal numbers of tokens.
    @type {(units: TextUnit[], limit: number) => TextUnit[]} */
function packUnits(units, limit) {
  const total = units.reduce((sum, unit) => sum + unit.tokens, 0);
  const target = total / Math.max(1, Math.ceil(total / limit));
  /** @type {TextUnit[]} */
  const pieces = [];
  for (const { span, tokens } of units) {
    const last = pieces.at(-1) ?? { span, tokens: limit };
    const larger = last.tokens + tokens + 1; // a blank may be a token of its own
    if (larger <= limit && larger - target <= target - last.tokens) {
      // not further from the target than before
      pieces[pieces.length - 1] = { span: [last.span[0], span[1]], tokens: larger };
    } else pieces.push({ span, tokens });
  }
  return pieces;
}

/** Divide a span at the first separator; divide parts that are too long at the next separator.
    @type {(text: string, span: Span, limit: number, count: (piece: string) => number, separators:
      RegExp[]) => TextUnit[]} */
function divideSpan(text, span, limit, count, separators) {
  if (!separators.length) return halveSpan(text, span, limit, count);
  const [start, end] = span;
  /** @type {Span[]} */
  const inner = spansBetween(text.slice(start, end), separators[0]).map(([first, last]) => [
    start + first,
    start + last,
  ]);
  return inner
    .flatMap((part) => trimmedSpan(text, part))
    .flatMap((part) => {
      const tokens = count(text.slice(...part));
      return tokens <= limit
        ? [{ span: part, tokens }]
        : packUnits(divideSpan(text, part, limit, count, separators.slice(1)), limit);
    });
}

/** Halve a word until no part has more than `limit` tokens; a single character is not divided.
    @type {(text: string, span: Span, limit: number, count: (piece: string) => number) =>
      TextUnit[]} */
function halveSpan(text, [start, end], limit, count) {
  const word = text.slice(start, end);
  const tokens = count(word);
  const length = [...word].length;
  if (tokens <= limit || length === 1) return [{ span: [start, end], tokens }];
  const middle = characterStart(text, moveOffset(text, start, Math.floor(length / 2)), end);
  return [
    ...halveSpan(text, [start, middle], limit, count),
    ...halveSpan(text, [middle, end], limit, count),
  ];
}

/** Move an offset by up to 8 characters, so that it does not separate a character from its
    combining marks.
    @type {(text: string, index: number, end: number) => number} */
function characterStart(text, index, end) {
  let later = index;
  for (let remaining = 8; remaining && later < end; remaining -= 1) {
    const character = characterAt(text, later);
    if (!isCombining(character)) return later;
    later += character.length;
  }
  return index;
}
