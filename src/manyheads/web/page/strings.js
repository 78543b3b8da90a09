/* Texts in the user's language; numbers and pieces as texts. */

import { abs } from "./numbers.js";
import { mh } from "./state.js";

/** Return the string of a key in the user's language; undefined if there is none.
    @type {(key: string) => string | undefined} */
export const localized = (key) => mh.strings[mh.language]?.[key];

/** Return whether a text is written from right to left, by its first letter outside of special
    symbols.
    @type {(text: string) => boolean} */
export const readsLeft = (text) =>
  /^\P{L}*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u.test(text.replace(/<[^>]*>/g, ""));

/** Return a text for a place within another one, whose direction it does not change; special
    symbols are not mirrored.
    @type {(text: string) => string} */
export const isolate = (text) =>
  readsLeft(text) ? `\u2067${text.replace(/<[^>]*>/g, "\u200e$&\u200e")}\u2069` : text;

/** Return the string of a key in the user's language, with values for its {names}.
    @type {(key: string, values?: { [name: string]: unknown }) => string} */
export const t = (key, values = {}) =>
  (localized(key) ?? key).replace(/\{(\w+)\}/g, (match, name) =>
    isolate(String(values[name] ?? match)),
  );

/** Return the name of a language in the user's language; its code if the browser does not know it.
    @type {(code: string) => string} */
export function languageName(code) {
  try {
    return new Intl.DisplayNames(mh.language, { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}

/** Return the titles of table columns, given by keys separated by blanks.
    @type {(names: string) => string[]} */
export const columnTitles = (names) => names.split(" ").map((name) => t(`column.${name}`));

/** Format a number with `digits` decimals.
    @type {(value: number | null | undefined, digits?: number) => string} */
export function n(value, digits = 3) {
  return value == null
    ? "–"
    : value
        .toLocaleString(mh.language, {
          minimumFractionDigits: digits,
          maximumFractionDigits: digits,
        })
        .replace("-", "−");
}

/** Format an integer.
    @type {(value: number) => string} */
export const integer = (value) => n(value, 0);

/** Format a number of any size in few characters.
    @type {(value: number) => string} */
export function compact(value) {
  const size = abs(value);
  if (size >= 1e4) return size >= 1e6 ? `${n(value / 1e6, 1)}M` : `${integer(value / 1e3)}k`;
  if (size && size < 1e-3) return value.toExponential(1).replace(/-/g, "−");
  return n(value, size >= 100 || Number.isInteger(value) ? 0 : size >= 1 ? 2 : 4);
}

/** @type {{ [sign: string]: string }} */
const SIGNS = { "▁": "␣", "\n": "↵", "\t": "⇥" };

/** Return a piece for display, with visible white space.
    @type {(piece: string) => string} */
export const pieceText = (piece) => (piece || "∅").replace(/[▁\n\t]/g, (sign) => SIGNS[sign]);
