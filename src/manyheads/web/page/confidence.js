/* The confidence in a translation. */

import { t } from "./strings.js";

/** Return the words for the lowest confidence in the translations of several sentences; empty if
    there is none.
    @type {(sentences: SentenceTranslation[]) => string} */
export function confidenceOf(sentences) {
  const lowest = ["low", "medium", "high"].find((level) =>
    sentences.some(({ confidence_level: own }) => own === level),
  );
  return lowest ? t(`confidence.${lowest}`) : "";
}
