/* The effect of leaving out each word of a text. */

import { markDifferences } from "./differences.js";
import { stack } from "./elements.js";
import { bars, figure, tableOf } from "./figure.js";
import { n, pieceText, t } from "./strings.js";

/** Create the figure of the effect of leaving out each word; `output` is a translation, `label` a
    class.
    @type {(occlusion: Occlusion, texts: string[], shown: { output?: string, label?: string }) =>
      HTMLElement} */
export function occlusionFigure({ words, columns }, texts, { output, label }) {
  /** @type {Bar[]} */
  const rows = words.map((omitted) => [
    texts[omitted.word],
    omitted.drop,
    `${n(omitted.drop, 2)}${label && omitted.output !== label ? ` → ${omitted.output}` : ""}`,
  ]);
  const outputs = words.map((omitted) => [
    texts[omitted.word],
    output && markDifferences(omitted.output, output),
  ]);
  return figure({
    key: "occlusion.words",
    about: label && t("classify.occlusion_note", { label }),
    chart: stack(
      bars(rows),
      output &&
        tableOf([[t("occlusion.without"), t("occlusion.output")], outputs], t("occlusion.output")),
    ),
    table: () => [
      [t("occlusion.without"), t("occlusion.drop"), ...columns.map(pieceText)],
      words.map((omitted) => [texts[omitted.word], omitted.drop, ...omitted.drops]),
    ],
  });
}
