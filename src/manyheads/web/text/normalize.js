/* Normalisation of text before tokenisation, as in manyheads/text/normalize.py. */

import { onKnown, splitBlanks, strip, wellFormed, WHITE } from "./unicode.js";

/* Control characters except white space, and the byte order mark. */
const CONTROL_CHARACTERS = new RegExp(`(?![${WHITE}])[\\p{Cc}\\ufeff]`, "gu");
const NO_BREAK = /[\xa0\u202f]/g;
const SPACES = new RegExp(`[${WHITE}]+`, "gu");
const INVISIBLE = "\\xad\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u2064\\u2066-\\u206f";
const FOLDED =
  "\\xa0\\u202f\\u0132\\u0133\\u01c4-\\u01cc\\u01f1-\\u01f3\\ufb00-\\ufb06\\ufb13-\\ufb17\\ufb50-\\ufbb1\\ufbd3-\\ufc5d" +
  "\\ufc64-\\ufd3d\\ufe80-\\ufefc\\uff61-\\uff9f\\u{1d400}-\\u{1d7ff}";
const REMOVED_MARK = new RegExp(`[${INVISIBLE}]+`, "gu");
const ALL_FOLDED = new RegExp(`[${FOLDED}\\uff01-\\uff5e]+`, "gu");
const EAST_ASIAN = /[\u3040-\u30ff\u3105-\u312f\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f\u{20000}-\u{3ffff}]/u;
const EAST_ASIAN_FOLDED = new RegExp(
  `[\\uff10-\\uff19]+(?:[\\uff0c\\uff0e\\uff1a][\\uff10-\\uff19]+)+|[${FOLDED}\\uff10-\\uff19\\uff21-\\uff3a\\uff41-\\uff5a]+`, "gu",
);
const UNSPACED = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf]/;

/** Compose a text (NFC), without control characters; lone surrogates become U+FFFD.
    @type {(text: string) => string} */
const compose = (text) => onKnown((known) => known.normalize("NFC"), wellFormed(text).replace(CONTROL_CHARACTERS, ""));

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
export const normalizeTarget = (text) => clean(text).replace(SPACES, (run) => (run.replace(NO_BREAK, "") ? " " : run[0]));

/** Write a source without typographic marks: invisible ones, ligatures and full-width characters.
    @type {(text: string) => string} */
export function sourceForm(text) {
  const bare = text.replace(REMOVED_MARK, ""), joined = UNSPACED.test(bare) ? bare : bare.replaceAll("\u200b", "");
  return joined.replace(EAST_ASIAN.test(joined) ? EAST_ASIAN_FOLDED : ALL_FOLDED, (run) => run.normalize("NFKC"));
}
