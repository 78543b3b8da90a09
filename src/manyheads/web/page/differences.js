/* The words in which two texts differ. */

import { h, span } from "./elements.js";
import { max } from "./numbers.js";

/** Return the words of a text and those that only another has, in order: all words outside the
    longest common subsequence are "new" or "gone".
    @type {(text: string, other: string) => [word: string, change: "" | "new" | "gone"][]} */
export function wordDifferences(text, other) {
  const [words, otherWords] = [text, other].map((line) => line.split(" ").filter(Boolean));
  const lengths = [...words, ""].map(() => [...otherWords, ""].map(() => 0));
  for (let i = words.length - 1; i >= 0; i -= 1) {
    for (let j = otherWords.length - 1; j >= 0; j -= 1) {
      lengths[i][j] =
        words[i] === otherWords[j]
          ? lengths[i + 1][j + 1] + 1
          : max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  /** @type {[string, "" | "new" | "gone"][]} */
  const found = [];
  let [i, j] = [0, 0];
  while (i < words.length || j < otherWords.length) {
    const same = words[i] === otherWords[j];
    const gone =
      !same &&
      (i === words.length || (j < otherWords.length && lengths[i][j + 1] >= lengths[i + 1][j]));
    found.push(same ? [words[i], ""] : gone ? [otherWords[j], "gone"] : [words[i], "new"]);
    if (same || !gone) i += 1;
    if (same || gone) j += 1;
  }
  return found;
}

/** Create a text of words, new ones underlined and those that are gone struck through.
    @type {(words: [string, "" | "new" | "gone"][]) => HTMLElement} */
export const markedWords = (words) =>
  span(
    "",
    words.map(([word, change], i) => [
      i ? " " : "",
      change ? h(change === "new" ? "u" : "del", { class: "different" }, word) : word,
    ]),
  );

/** @type {(text: string, other: string) => HTMLElement} */
export const markDifferences = (text, other) => markedWords(wordDifferences(text, other));
