/* Normalisation of text before tokenisation, as in manyheads/text/normalize.py. */

import { splitBlanks, strip, wellFormed, WHITE } from "./unicode.js";

/* Control characters except white space, and the byte order mark. */
const CONTROL_CHARACTERS = new RegExp(`(?![${WHITE}])[\\p{Cc}\\ufeff]`, "gu");

/** Compose a text (NFC), without control characters; lone surrogates become U+FFFD.
    @type {(text: string) => string} */
const compose = (text) => wellFormed(text).replace(CONTROL_CHARACTERS, "").normalize("NFC");

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
export const lower = (text) => text.toLowerCase().normalize("NFC");
