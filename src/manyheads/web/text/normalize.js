/* Normalisation of text before tokenisation, as in manyheads/text/normalize.py. */

import { onKnown, splitBlanks, strip, wellFormed, WHITE } from "./unicode.js";

/* Control characters except white space, and the byte order mark. */
const CONTROL_CHARACTERS = new RegExp(`(?![${WHITE}])[\\p{Cc}\\ufeff]`, "gu");
const NO_BREAK = /[\xa0\u202f]/g;
const SPACES = new RegExp(`[${WHITE}]+`, "gu");
/** Compose a text (NFC), without control characters; lone surrogates become U+FFFD.
    @type {(text: string) => string} */
const compose = (text) =>
  onKnown((known) => known.normalize("NFC"), wellFormed(text).replace(CONTROL_CHARACTERS, ""));

/** Compose a text and strip white space at its ends.
    @type {(text: string) => string} */
export const clean = (text) => strip(compose(text));

/** Compose a text, replace each run of white space by one blank, and strip its ends.
    @type {(text: string) => string} */
export const normalize = (text) => splitBlanks(compose(text)).join(" ");

/** Compose a text and keep its white space, but end each line with "\n".
    @type {(text: string) => string} */
export const unify = (text) => compose(text).replace(/\r\n?/g, "\n");

/** Lower-case a text and compose it again.
    @type {(text: string) => string} */
export const lower = (text) => onKnown((known) => known.toLowerCase().normalize("NFC"), text);

/** Normalise a text, but keep a no-break blank that stands alone.
    @type {(text: string) => string} */
export const normalizeTarget = (text) =>
  clean(text).replace(SPACES, (run) => (run.replace(NO_BREAK, "") ? " " : run[0]));

/** Write a source without typographic marks; `marks` are the patterns of Python.
    @type {(text: string, marks: { [name: string]: RegExp }) => string} */
export function sourceForm(text, { invisible, unspaced, wide, eastAsian, eastAsianWide }) {
  const bare = text.replace(invisible, "");
  const joined = bare.search(unspaced) < 0 ? bare.replaceAll("\u200b", "") : bare;
  const folded = joined.replace(joined.search(eastAsian) < 0 ? wide : eastAsianWide, (run) =>
    run.normalize("NFKC"),
  );
  return folded.replace(NO_BREAK, " ");
}
