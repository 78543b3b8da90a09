/* Normalisation of text before tokenisation, as in manyheads/text/normalize.py. */

import { splitBlanks, strip, wellFormed } from "./unicode.js";

/* Control characters except white space, and the byte order mark. */
const CONTROL_CHARACTERS = /[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufeff]/g;

/** Compose a text (NFC), without control characters; lone surrogates become U+FFFD. */
const compose = (text) => wellFormed(text).replace(CONTROL_CHARACTERS, "").normalize("NFC");

/** Compose a text and strip white space at its ends. */
export const clean = (text) => strip(compose(text));

/** Compose a text, replace each run of white space by one blank, and strip its ends. */
export const normalize = (text) => splitBlanks(compose(text)).join(" ");

/** Compose a text and keep its white space, but end each line with "\n". */
export const unify = (text) => compose(text).replace(/\r\n?/g, "\n");

/** Lower-case a text and compose it again. */
export const lower = (text) => text.toLowerCase().normalize("NFC");
