/* Normalises text before it is tokenised: as manyheads/text/normalize.py. */

import { splitBlanks, strip, wellFormed } from "./unicode.js";

/* Control characters that are no white space, and the byte order mark. */
const NOT_TEXT = /[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufeff]/g;

/** The text composed (NFC), without control characters; lone surrogates become U+FFFD. */
const oneForm = (text) => wellFormed(text).replace(NOT_TEXT, "").normalize("NFC");

/** The text in one form, without white space around it. */
export const clean = (text) => strip(oneForm(text));

/** The text in one form, each run of white space one blank, none around it. */
export const normalize = (text) => splitBlanks(oneForm(text)).join(" ");

/** The text in one form with its white space; every line ends with "\n". */
export const unify = (text) => oneForm(text).replace(/\r\n?/g, "\n");

/** The text in lower case, composed again. */
export const lower = (text) => text.toLowerCase().normalize("NFC");
