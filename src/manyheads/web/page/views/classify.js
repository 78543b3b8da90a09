/* Classify: the probability of each class, and the effect of leaving out each word. */

import { bars, figure } from "../figure.js";
import { occlusionFigure } from "../occlusion.js";
import { documentText, resultsUnderText } from "../results.js";
import { fetchInspection } from "../source.js";
import { columnTitles, n, t } from "../strings.js";

/** Show the probability of each class, and the effect of leaving out each word.
    @type {(panel: HTMLElement) => Promise<void>} */
export async function buildClassify(panel) {
  await resultsUnderText(panel, async () => {
    const inspection = await fetchInspection();
    if (!inspection) return [];
    const classes = [...inspection.classes].sort((a, b) => b.probability - a.probability);
    const { label, pooling, occlusion, text } = inspection;
    return [
      documentText(inspection),
      figure({
        key: "classify.label",
        values: { label },
        about: t(`classify.${pooling}`),
        chart: bars(
          classes.map((item) => [
            item.label,
            item.probability,
            n(item.probability),
            "",
            item.label === label,
          ]),
          1,
        ),
        table: () => [
          columnTitles("class probability"),
          classes.map((item) => [item.label, item.probability]),
        ],
      }),
      occlusion ? occlusionFigure(occlusion, text.words, { label }) : "",
    ];
  });
}
