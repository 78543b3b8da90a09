/* Training: the curves of one or several runs, and sample outputs at each checkpoint. */

import { checkbox, slider } from "../controls.js";
import { curvesFigure } from "../curves.js";
import { markDifferences } from "../differences.js";
import { div, facts, h, note, stack } from "../elements.js";
import { figure } from "../figure.js";
import { matrix, matrixTable } from "../matrix.js";
import { ceil, max, min } from "../numbers.js";
import { canCompute, currentModel, loadCurves } from "../source.js";
import { change, mh, state } from "../state.js";
import { columnTitles, integer, t } from "../strings.js";

/** Chart -> the series of the log in it.
    @type {{ [chart: string]: string[] }} */
const TRAINING_CHARTS = {
  loss: ["train_loss", "valid_loss"],
  perplexity: ["perplexity"],
  scores: ["bleu", "chrf", "accuracy", "macro_f1"],
  learning_rate: ["learning_rate"],
  gradient_norm: ["gradient_norm"],
  speed: ["tokens_per_second"],
};

const MAX_POINTS = 300;

/** @type {(panel: HTMLElement) => Promise<void>} */
export async function buildTraining(panel) {
  const names = mh.about.models.map(({ name }) => name);
  const chosen = new Set([currentModel().name]);
  const holder = stack();
  if (canCompute && names.length > 1) {
    panel.append(
      h(
        "fieldset",
        { class: "controls" },
        h("legend", {}, t("training.runs")),
        names.map((name) =>
          checkbox(name, chosen.has(name), (on) => {
            chosen[on ? "add" : "delete"](name);
            draw();
          }),
        ),
      ),
    );
  }
  panel.append(holder);
  await draw();

  async function draw() {
    const documents = await Promise.all(names.filter((name) => chosen.has(name)).map(loadCurves));
    const runs = documents.flatMap(({ runs }) => runs);
    const several = runs.length > 1;
    const charts = div("charts");
    holder.replaceChildren(runs.length ? charts : note(t("training.none")));
    for (const [name, seriesNames] of Object.entries(TRAINING_CHARTS)) {
      const series = runs.flatMap((run) =>
        run.series
          .filter((item) => seriesNames.includes(item.name))
          .map((item) =>
            subsample(item, `${several ? `${run.name} ` : ""}${t(`series.${item.name}`)}`),
          ),
      );
      if (series.length) {
        charts.append(
          curvesFigure(`training.${name}`, series, t("column.update"), t(`unit.${name}`)),
        );
      }
    }
    for (const run of runs) {
      holder.append(...entropyFigures(run), run.samples.length ? samplesFigure(run, several) : "");
    }
  }
}

/** Return a curve with at most about MAX_POINTS points, the last one included.
    @type {(series: LogSeries, name: string) => Curve} */
function subsample({ steps, values }, name) {
  /** @type {(_: number, i: number) => boolean} */
  const keep = (_, i) => i % ceil(steps.length / MAX_POINTS) === 0 || i === steps.length - 1;
  return { name, x: steps.filter(keep), y: values.filter(keep) };
}

/** Create the figures of the attention entropy of each head at each checkpoint.
    @type {(run: TrainingRun) => HTMLElement[]} */
function entropyFigures(run) {
  const entropies = run.series
    .map((series) => ({ series, parts: series.name.split("/") }))
    .filter(({ parts }) => parts[0] === "attention_entropy");
  return [...new Set(entropies.map(({ parts }) => parts[1]))].map((kind) => {
    const ofKind = entropies.filter(({ parts }) => parts[1] === kind);
    const values = ofKind.map(({ series }) => series.values);
    /** @type {MatrixOptions} */
    const options = {
      rows: ofKind.map(({ parts: [, , layer, head] }) => t("attention.named", { layer, head })),
      columns: ofKind[0].series.steps.map(integer),
      value: (row, column) => values[row][column],
      hidden: (row, column) => column >= values[row].length,
      high: max(...values.flat()),
      label: `${t("training.entropy")}: ${t(`attention.${kind}`)}`,
      meaning: t("words.entropy"),
      rowTitle: t("attention.head"),
      columnTitle: t("column.update"),
    };
    return figure({
      key: "training.entropy",
      title: options.label,
      chart: matrix(options),
      table: () => matrixTable(options),
    });
  });
}

/** Create the figure of the outputs of the sample sentences at each checkpoint.
    @type {(run: TrainingRun, several: boolean) => HTMLElement} */
function samplesFigure(run, several) {
  const steps = [...new Set(run.samples.map((sample) => sample.step))];
  const initial = state.checkpoint < 0 ? steps.length - 1 : min(steps.length - 1, state.checkpoint);
  const holder = div("");
  /** @type {(i: number) => void} */
  const draw = (i) =>
    holder.replaceChildren(
      ...run.samples
        .filter((sample) => sample.step === steps[i])
        .map((sample) =>
          facts(
            [
              [t("column.source"), sample.source],
              [t("column.reference"), sample.reference],
              [t("column.output"), markDifferences(sample.output, sample.reference)],
            ],
            "sample",
          ),
        ),
    );
  draw(initial);
  return figure({
    key: "training.samples",
    title: `${t("training.samples")}${several ? ` (${run.name})` : ""}`,
    table: () => [
      columnTitles("update source reference output"),
      run.samples.map((sample) => [sample.step, sample.source, sample.reference, sample.output]),
    ],
    chart: stack(
      slider(
        t("column.update"),
        { min: 0, max: steps.length - 1, value: initial, show: (i) => integer(steps[i]) },
        (i) => {
          change({ checkpoint: i });
          draw(i);
        },
      ),
      holder,
    ),
  });
}
