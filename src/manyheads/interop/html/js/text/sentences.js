/* Splits text into sentences, and long sentences into pieces: as manyheads/text/sentences.py. Spans are [start, end]. */

import { capitalize, characterAt, isAlphanumeric, isBlank, isCombining, isDigits, isUpper, moveOffset, WHITE } from "./unicode.js";

const WIDE_MARKS = "。！？｡．"; // end a sentence without a blank after them
const MARKS = /[.!?…؟۔।॥。！？｡．]+/g;
const CLOSERS = "\"'”’»«“‘›‹)]}」』）】》〉］｝";
const OPENERS = "\"'“„‚”‘’«»‹›([{「『（【《〈［¿¡-–—*•";
const LINE_ENDS = /[\n\r\v\f\x85\u2028\u2029]/g;
const CONTINUATIONS = "とってはがをもにのでや、"; // after a closing quotation: 「はい」と言った。
const LAST_WORD = new RegExp(`[^${WHITE}(\\["'“„«»-]+$`, "u");
const MAX_WORD = 40; // characters before a mark that may belong to its word

const BEFORE_A_WORD = new Set(
  ("mr mrs ms dr prof st mt gen col lt sgt capt rev hon sen rep gov pres hr fr frl dipl ing " +
    "bzw sog vgl ca z.b d.h u.a z.t v.a o.g u.u i.d.r inkl exkl zzgl ggf evtl gem geb gest hg hrsg jhd mio mrd " +
    "vs cf approx dept est e.g i.e al resp").split(" "),
);
const BEFORE_A_NUMBER = new Set(
  ("no nos nr vol vols ch p pp sec eq art fig figs bd abb tab abs kap s str tel " +
    "jan feb mar apr jun jul aug sep sept oct okt nov dec dez").split(" "),
);
const ORDINAL_DOT = new Set("de da nb nn no fi et cs sk sl hr bs sr pl hu lv tr is lb".split(" "));
const DATE = new RegExp(`\\p{Nd}\\.[${WHITE}]?\\p{Nd}{1,2}$`, "u"); // 2020. 5. 3. is the third of May in Korean
const INITIAL = /^(?:[\p{L}\p{Nl}\p{No}]\.)*[\p{L}\p{Nl}\p{No}]$/u; // J, U.S, z.B
const NO_INITIAL = ["a.m", "p.m"];
const ENUMERATION = /^(?:\p{Nd}{1,3}|[a-zA-Z])$/u;

/** The spans of the sentences of a text, without white space at their ends; a line end always ends a sentence. */
export function sentenceSpans(text, language = "") {
  const ordinals = ORDINAL_DOT.has(language.split(/[-_]/)[0].toLowerCase());
  return stretchesBetween(text, LINE_ENDS).flatMap(([start, end]) => sentencesOfLine(text, start, end, ordinals));
}

/** A text in lower case, but for the first letter of each sentence. */
export function sentenceCase(text, language) {
  let result = "", end = 0;
  for (const [start, last] of sentenceSpans(text, language)) {
    result += text.slice(end, start) + capitalize(text.slice(start, last));
    end = last;
  }
  return result + text.slice(end);
}

/** The spans between the matches of a separator. */
function stretchesBetween(text, separator) {
  const spans = [];
  let start = 0;
  for (const found of text.matchAll(separator)) {
    spans.push([start, found.index]);
    start = found.index + found[0].length;
  }
  return [...spans, [start, text.length]];
}

/** The span without white space at its ends, in an array; none if it is blank. */
function trimmedSpan(text, [start, end]) {
  const first = skipBlanks(text, start, end);
  if (first === end) return [];
  let last = end;
  while (isBlank(text[last - 1])) last -= 1;
  return [[first, last]];
}

/** The offset of the first character that is not blank; `end` if there is none. */
function skipBlanks(text, start, end) {
  let index = start;
  while (index < end && isBlank(text[index])) index += 1;
  return index;
}

/** The spans of the sentences of one line. */
function sentencesOfLine(text, start, end, ordinals) {
  const spans = [];
  let first = start; // of the sentence
  for (const found of text.slice(start, end).matchAll(MARKS)) {
    const mark = start + found.index, marks = found[0];
    const closers = mark + marks.length;
    const cut = skipClosers(text, closers, end);
    const wide = WIDE_MARKS.includes(marks.at(-1));
    if (cut < end && !isBlank(text[cut]) && !wide) continue;
    const after = skipBlanks(text, cut, end);
    if (after === end) break;
    const following = firstCharacter(text, after, end);
    const last = wide
      ? !((cut > closers && after === cut && CONTINUATIONS.includes(text[cut])) || (marks === "．" && isDigits(characterAt(text, cut))))
      : beginsSentence(following) && !(marks === "." && abbreviates(text, first, mark, following, ordinals));
    if (!last) continue;
    spans.push(...trimmedSpan(text, [first, cut]));
    first = after;
  }
  return [...spans, ...trimmedSpan(text, [first, end])];
}

/** The offset behind closing quotation marks and brackets, with the blank of « Oui ! ». */
function skipClosers(text, start, end) {
  let index = start;
  while (index < end) {
    if (CLOSERS.includes(text[index])) index += 1;
    else if (isBlank(text[index]) && index + 1 < end && text[index + 1] === "»" && (index + 2 === end || isBlank(text[index + 2]))) index += 2;
    else break;
  }
  return index;
}

/** The first character after quotation marks, brackets and dashes. */
function firstCharacter(text, start, end) {
  let index = start;
  for (let left = 8; left && index < end; left -= 1) {
    const character = characterAt(text, index);
    if (!OPENERS.includes(character) && !isBlank(character)) return character;
    index += character.length;
  }
  return "";
}

/** Whether a sentence can begin with this character: not with a lower-case letter or a symbol. */
const beginsSentence = (character) => isAlphanumeric(character) && !/\p{Lowercase}/u.test(character);

/** Whether a dot belongs to the word before it and the sentence, begun at `first`, continues. */
function abbreviates(text, first, dot, following, ordinals) {
  const from = Math.max(first, moveOffset(text, dot, -MAX_WORD));
  const before = text.slice(from, dot);
  const found = LAST_WORD.exec(before);
  if (!found) return false;
  const word = found[0], small = word.toLowerCase();
  if (from + found.index === first && ENUMERATION.test(word)) return true; // "3. Ein Hund läuft."
  if (isDigits(word)) return DATE.test(before) || isDigits(following) || (ordinals && [...word].length <= 2);
  if (BEFORE_A_WORD.has(small) || (BEFORE_A_NUMBER.has(small) && isDigits(following))) return true;
  return INITIAL.test(word) && (isUpper(word) || word.includes(".")) && !NO_INITIAL.includes(small);
}

/* --- long sentences --- */

/* After a comma or a similar mark, or before a dash. */
const CLAUSES = new RegExp(`(?<=[,;:،؛])[${WHITE}]+|(?<=[、，；：])|(?<![${WHITE},;:،؛])[${WHITE}]+(?=[–—-][${WHITE}])`, "gu");
const BLANKS = new RegExp(`[${WHITE}]+`, "gu");

/** The spans of the pieces of a span, of at most `limit` tokens: cut after commas and the like, else at blanks, else anywhere. */
export function piecesWithin(text, span, limit, count) {
  if (count(text.slice(...span)) <= limit) return [span];
  return packUnits(divideSpan(text, span, limit, count, [CLAUSES, BLANKS]), limit).map((unit) => unit.span);
}

/** Neighbours joined to pieces with about equal numbers of tokens. */
function packUnits(units, limit) {
  const total = units.reduce((sum, unit) => sum + unit.tokens, 0);
  const aim = total / Math.max(1, Math.ceil(total / limit));
  const pieces = [];
  for (const { span, tokens } of units) {
    const last = pieces.at(-1) ?? { span, tokens: limit };
    const larger = last.tokens + tokens + 1; // a blank may be a token of its own
    if (larger <= limit && larger - aim <= aim - last.tokens) {
      pieces[pieces.length - 1] = { span: [last.span[0], span[1]], tokens: larger }; // no further from the aim than before
    } else pieces.push({ span, tokens });
  }
  return pieces;
}

/** The units of a span divided at the first separator; parts that are too long are divided at the next one. */
function divideSpan(text, span, limit, count, separators) {
  if (!separators.length) return halveSpan(text, span, limit, count);
  const [start, end] = span;
  const inner = stretchesBetween(text.slice(start, end), separators[0]).map(([first, last]) => [start + first, start + last]);
  return inner.flatMap((part) => trimmedSpan(text, part)).flatMap((part) => {
    const tokens = count(text.slice(...part));
    return tokens <= limit ? [{ span: part, tokens }] : packUnits(divideSpan(text, part, limit, count, separators.slice(1)), limit);
  });
}

/** The halves of a word, none of more than `limit` tokens; a single character stays whole. */
function halveSpan(text, [start, end], limit, count) {
  const word = text.slice(start, end), tokens = count(word), length = [...word].length;
  if (tokens <= limit || length === 1) return [{ span: [start, end], tokens }];
  const middle = characterStart(text, moveOffset(text, start, Math.floor(length / 2)), end);
  return [[start, middle], [middle, end]].flatMap((half) => halveSpan(text, half, limit, count));
}

/** An offset moved by up to 8 characters, so that a character is not separated from its combining marks. */
function characterStart(text, index, end) {
  let later = index;
  for (let left = 8; left && later < end; left -= 1) {
    const character = characterAt(text, later);
    if (!isCombining(character)) return later;
    later += character.length;
  }
  return index;
}
