/* Literals: parts of a text that a translation copies unchanged, as in manyheads/data/literals.py. */

import { hasLetters, strip, stripStart, WHITE } from "./unicode.js";

const PLACEHOLDERS = [
  "(?:https?://|www\\.)[!-;=?-~]*[\\w/]", // addresses
  "[A-Za-z0-9.+_\\-]+@[A-Za-z0-9\\-]+(?:\\.[A-Za-z0-9\\-]+)+",
  "</?[A-Za-z][^<>]{0,200}>", // tags
  "\\{\\{?\\w*\\}?\\}", // {name}, {{name}}, ${name}, %(name)s, %s, %1$s
  "\\$\\{\\w+\\}",
  "%\\(\\w+\\)[sdf]",
  "%(?:\\d+\\$)?[sdf]\\b",
  "\\$\\d\\b(?![.,]\\d)", // $1, __NAME__, @name
  "__[A-Z]+(?:_[A-Z]+)*__",
  "(?<![\\w@])@[A-Za-z]\\w*",
  "(?<!\\w)\\+\\d(?:[ ()/\\-]{0,2}\\d){6,14}\\b", // telephone numbers with the code of the country
  "\\bv\\d+(?:\\.\\d+)+\\b", // versions
  "[\\u2600-\\u27bf\\u{1f000}-\\u{1faff}][\\u2600-\\u27bf\\ufe0f\\u200d\\u20e3\\u{1f000}-\\u{1faff}\\u{e0020}-\\u{e007f}]*",
].join("|");
/* A placeholder with the brackets and quotation marks before it, and the punctuation after it. */
const LITERAL = new RegExp(`[(\\[{<"'„“‚‘«‹¿¡]*(?:${PLACEHOLDERS})[^\\p{L}\\p{N}_${WHITE}<{@$%]*`, "gu");
const MAYBE_LITERAL = /[@{%<$_+\u2600-\u27bf\u{1f000}-\u{1faff}]|:\/\/|www\.|\bv\d/u;

/** Return the spans of a text between literals that contain letters, without white space at their ends. */
export function spansToTranslate(text) {
  const spans = [];
  const literals = MAYBE_LITERAL.test(text) ? [...text.matchAll(LITERAL)] : [];
  let start = 0;
  for (const end of [...literals.map((match) => match.index), text.length]) {
    const part = text.slice(start, end);
    if (hasLetters(part)) {
      const first = start + part.length - stripStart(part).length;
      spans.push([first, first + strip(part).length]);
    }
    start = end + (literals.shift()?.[0].length ?? 0);
  }
  return spans;
}
