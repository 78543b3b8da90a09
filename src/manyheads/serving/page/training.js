"use strict";
/* Training: the curves of one or several runs, and what the samples looked like on the way. */
views.training = { build: buildTraining };
const TRAINING = {
  loss: ["train_loss", "valid_loss"], perplexity: ["perplexity"], scores: ["bleu", "chrf", "accuracy", "macro_f1"],
  learning_rate: ["learning_rate"], gradient_norm: ["gradient_norm"], speed: ["tokens_per_second"],
};
const MOST_POINTS = 300;

async function buildTraining(panel) {
  const names = mh.about.models.map((one) => one.name);
  const chosen = new Set([theModel().name]);
  const holder = stack();
  if (live && names.length > 1) {
    panel.append(h("fieldset", { class: "controls" }, h("legend", {}, t("training.runs")), names.map((name) => check(name, chosen.has(name), (on) => { chosen[on ? "add" : "delete"](name); draw(); }))));
  }
  panel.append(holder);
  await draw();

  async function draw() {
    const documents = await Promise.all(names.filter((name) => chosen.has(name)).map(trainingOf));
    const runs = documents.flatMap((one) => one.runs);
    const several = runs.length > 1;
    const charts = div("charts");
    holder.replaceChildren(runs.length ? charts : note(t("training.none")));
    for (const [name, wanted] of Object.entries(TRAINING)) {
      const series = runs.flatMap((run) => run.series.filter((one) => wanted.includes(one.name)).map((one) => thinned(one, `${several ? `${run.name} ` : ""}${t(`series.${one.name}`)}`)));
      if (series.length) charts.append(curvesFigure(`training.${name}`, series, t("column.update"), t(`unit.${name}`)));
    }
    for (const run of runs) holder.append(...entropiesOf(run), run.samples.length ? samplesOf(run, several) : "");
  }
}

const curvesFigure = (key, series, xTitle, yTitle, values) => figure({ key, values, chart: curves({ label: t(key, values), series, xTitle, yTitle }), table: () => curvesTable(series, xTitle) });

/** Not more points than can be seen; the last one is kept. */
function thinned({ steps, values }, name) {
  const keep = (_, i) => i % ceil(steps.length / MOST_POINTS) === 0 || i === steps.length - 1;
  return { name, x: steps.filter(keep), y: values.filter(keep) };
}

/** How widely each head looked, from checkpoint to checkpoint. */
function entropiesOf(run) {
  const found = run.series.map((one) => [one, ...one.name.split("/")]).filter(([, name]) => name === "attention_entropy");
  return [...new Set(found.map(([, , kind]) => kind))].map((wanted) => {
    const own = found.filter(([, , kind]) => kind === wanted);
    const options = {
      rows: own.map(([, , , layer, head]) => t("attention.named", { layer, head })), columns: own[0][0].steps.map(whole), value: (row, column) => own[row][0].values[column], hidden: (row, column) => column >= own[row][0].values.length,
      high: max(...own.flatMap(([one]) => one.values)), label: `${t("training.entropy")}: ${t(`attention.${wanted}`)}`, meaning: t("words.entropy"), rowTitle: t("attention.head"), columnTitle: t("column.update"),
    };
    return figure({ key: "training.entropy", title: options.label, chart: matrix(options), table: () => matrixTable(options) });
  });
}

/** The same sentences at every checkpoint. */
function samplesOf(run, several) {
  const steps = [...new Set(run.samples.map((one) => one.step))];
  const at = state.checkpoint < 0 ? steps.length - 1 : min(steps.length - 1, state.checkpoint);
  const holder = div("");
  const draw = (i) => holder.replaceChildren(...run.samples.filter((one) => one.step === steps[i]).map((one) =>
    facts([[t("column.source"), one.source], [t("column.reference"), one.reference], [t("column.output"), different(one.output, one.reference)]], "sample")));
  draw(at);
  return figure({
    key: "training.samples", title: `${t("training.samples")}${several ? ` (${run.name})` : ""}`,
    table: () => [heads("update source reference output"), run.samples.map((one) => [one.step, one.source, one.reference, one.output])],
    chart: stack(slider(t("column.update"), { min: 0, max: steps.length - 1, value: at, show: (i) => whole(steps[i]) }, (i) => { change({ checkpoint: i }); draw(i); }), holder),
  });
}
