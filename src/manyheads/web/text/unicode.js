/* Character properties and string methods of Python that JavaScript lacks or defines otherwise.
   Offsets count UTF-16 units. */

import { RANGES } from "./assigned.js";

/** White space of Python, as the content of a character class: with U+001C to U+001F and U+0085,
    without U+FEFF. */
export const WHITE =
  "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

let code = 0;
const RANGES_OF_NEW = RANGES.trim()
  .split(/\s+/)
  .map((length, index) => {
    const first = String.fromCodePoint(code);
    code += parseInt(length, 36);
    return index % 2 ? `${first}-${String.fromCodePoint(code - 1)}` : "";
  });
// characters newer than Unicode 14, see bitext/unicode.py
const NEW = new RegExp(`[${RANGES_OF_NEW.join("")}]`, "gu");
const BLANK_RUN = new RegExp(`[${WHITE}]+`, "u");
const LEADING_BLANKS = new RegExp(`^[${WHITE}]+`, "u");
const ONE_BLANK = new RegExp(`^[${WHITE}]$`, "u");
const LETTER_OR_NUMBER = /^[\p{L}\p{N}]+$/u;
const DECIMAL_OR_DIGIT = new RegExp(
  "^[\\p{Nd}\\xb2\\xb3\\xb9\\u1369-\\u1371\\u19da\\u2070\\u2074-\\u2079\\u2080-\\u2089" +
    "\\u2460-\\u2468\\u2474-\\u247c\\u2488-\\u2490\\u24ea\\u24f5-\\u24fd\\u24ff\\u2776-\\u277e" +
    "\\u2780-\\u2788\\u278a-\\u2792\\u{10a40}-\\u{10a43}\\u{10e60}-\\u{10e68}" +
    "\\u{11052}-\\u{1105a}\\u{1f100}-\\u{1f10a}]+$",
  "u",
);
const WIDE = new RegExp(
  "^(?![\\u{1f1e6}-\\u{1f1ff}])[\\p{Emoji_Presentation}\\u1100-\\u115f\\u2329\\u232a" +
    "\\u2e80-\\u303e\\u3041-\\u3247\\u3250-\\u4dbf\\u4e00-\\ua4c6\\ua960-\\ua97c\\uf900-\\ufaff" +
    "\\ufe10-\\ufe19\\ufe30-\\ufe6b\\uff01-\\uff60\\uffe0-\\uffe6" +
    "\\u{16fe0}-\\u{1b2fb}\\u{1f200}-\\u{1f265}\\u{20000}-\\u{3fffd}]$",
  "u",
);

/** Replace each character newer than Unicode 14 by one with the same properties in every browser;
    the length stays the same.
    @type {(text: string) => string} */
export const known = (text) =>
  text
    .replace(NEW, (character) => (character.length > 1 ? "\u{f0000}" : "\ue000"))
    .replace(/[\u{20000}-\u{3ffff}]/gu, "\u{20000}");

/** Apply a change of case or composition that leaves characters newer than Unicode 14 as they are.
    @type {(change: (text: string) => string, text: string) => string} */
export function onKnown(change, text) {
  const found = text.match(NEW);
  return found
    ? change(text.replace(NEW, "\uffff")).replace(/\uffff/g, () => found.shift() ?? "")
    : change(text);
}

/** Return whether a character is white space.
    @type {(character: string) => boolean} */
export const isBlank = (character) => ONE_BLANK.test(character);
/** Return whether a text has a character that can be seen, as in bitext/letters.py.
    @type {(text: string) => boolean} */
export const hasText = (text) =>
  /[^\p{White_Space}\p{Cc}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]/u.test(text);
/** Return whether a text has letters that can be seen.
    @type {(text: string) => boolean} */
export const hasLetters = (text) => /(?!\p{Default_Ignorable_Code_Point})\p{L}/u.test(known(text));
/** Return whether a text is not empty and has only letters and numbers.
    @type {(text: string) => boolean} */
export const isAlphanumeric = (text) => LETTER_OR_NUMBER.test(known(text));
/** Return whether a text is not empty and has only digits, superscript and circled digits included.
    @type {(text: string) => boolean} */
export const isDigits = (text) => DECIMAL_OR_DIGIT.test(text);
/** Return whether a text has capitals, but no lower-case or title-case letters.
    @type {(text: string) => boolean} */
export const isUpper = (text) =>
  /\p{Uppercase}/u.test(text) && !/[\p{Lowercase}\p{Lt}]/u.test(text);
/** Return whether a character has the East Asian width "wide"; false for Korean syllables.
    @type {(character: string) => boolean} */
export const isWide = (character) => WIDE.test(known(character));
/** Return whether a character has a canonical combining class: NFD reorders such marks and U+0345,
    which has the highest class.
    @type {(character: string) => boolean} */
export const isCombining = (character) =>
  character === "\u0345" ||
  (!/[\u0f73\u0f75\u0f81]/.test(character) &&
    !`\u0345${known(character)}`.normalize("NFD").startsWith("\u0345"));

/** Replace lone surrogates by U+FFFD: String.prototype.toWellFormed, which browsers before 2023
    lack.
    @type {(text: string) => string} */
export const wellFormed = (text) => text.replace(/\p{Cs}/gu, "\ufffd");

/** Split a text at white space.
    @type {(text: string) => string[]} */
export const splitBlanks = (text) => text.split(BLANK_RUN).filter(Boolean);

/** Remove white space at the start of a text.
    @type {(text: string) => string} */
export const stripStart = (text) => text.replace(LEADING_BLANKS, "");

/** Remove white space at the end of a text.
    @type {(text: string) => string} */
function stripEnd(text) {
  let end = text.length;
  while (end && isBlank(text[end - 1])) end -= 1;
  return text.slice(0, end);
}

/** Remove white space at both ends of a text.
    @type {(text: string) => string} */
export const strip = (text) => stripEnd(stripStart(text));

/** Return the character that begins at an offset; empty at the end.
    @type {(text: string, index: number) => string} */
export const characterAt = (text, index) =>
  index < text.length ? String.fromCodePoint(text.codePointAt(index) ?? 0) : "";

/** Return the character that ends at an offset; empty at the start.
    @type {(text: string, index: number) => string} */
export const characterBefore = (text, index) => {
  const pair = index > 1 && (text.codePointAt(index - 2) ?? 0) > 0xffff;
  return text.slice(index - (pair ? 2 : 1), index);
};

/** Return an offset moved by a number of characters (backwards if negative), within the text.
    @type {(text: string, index: number, characters: number) => number} */
export function moveOffset(text, index, characters) {
  let moved = index;
  for (let remaining = characters; remaining > 0 && moved < text.length; remaining -= 1) {
    moved += characterAt(text, moved).length;
  }
  for (let remaining = characters; remaining < 0 && moved > 0; remaining += 1) {
    moved -= characterBefore(text, moved).length;
  }
  return moved;
}

/** Return the title case of a character, which JavaScript lacks.
    @type {(character: string) => string} */
function titleCase(character) {
  const code = character.codePointAt(0) ?? 0;
  if (code >= 0x10d0 && code <= 0x10ff) return character; // Georgian
  if (code >= 0x1c4 && code <= 0x1cc) {
    return String.fromCharCode(0x1c5 + 3 * Math.floor((code - 0x1c4) / 3));
  } // ǆ, ǉ, ǌ
  if (code >= 0x1f1 && code <= 0x1f3) return "\u01f2"; // ǳ
  const upper = character.toUpperCase();
  if (/[ß\u0587\ufb00-\ufb06\ufb13-\ufb17]/.test(character)) {
    return upper[0] + upper.slice(1).toLowerCase();
  }
  if (code >= 0x1f80 && code <= 0x1ffc && upper.length > 1 && upper.endsWith("\u0399")) {
    return `${upper.slice(0, -1)}\u0345`.normalize("NFC"); // Greek iota below
  }
  return upper;
}

/** Return the locale with the rules of a language for capitals and small letters, as in
    bitext/languages.py.
    @type {(language: string) => string} */
function caseLocale(language) {
  const base = language.split("-")[0];
  return ["az", "crh", "gag", "tr"].includes(base) ? "tr" : base === "lt" ? "lt" : "";
}

/** Return a text in lower case, as its language writes it.
    @type {(text: string, language: string) => string} */
export const lowerCase = (text, language) =>
  onKnown((changed) => changed.toLocaleLowerCase(caseLocale(language) || "en"), text);

/** Return a text in capitals, as its language writes it.
    @type {(text: string, language: string) => string} */
export const upperCase = (text, language) =>
  onKnown((changed) => changed.toLocaleUpperCase(caseLocale(language) || "en"), text);

/** Return a text with its first character in title case and the rest in lower case, as its language
    writes it.
    @type {(text: string, language?: string) => string} */
export function capitalize(text, language = "") {
  const first = characterAt(text, 0);
  if (caseLocale(language)) {
    return upperCase(first, language) + lowerCase(text.slice(first.length), language);
  }
  return onKnown((changed) => {
    const start = characterAt(changed, 0);
    return start && titleCase(start) + changed.toLowerCase().slice(start.toLowerCase().length);
  }, text);
}
