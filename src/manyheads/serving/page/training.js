"use strict";
/* Training: the curves of one or several runs, and what the samples looked like on the way. */
(() => {
  const { h, t } = mh;
  mh.views.training = { tasks: ["translation", "classification", "language-modeling"], build };
  const CHARTS = {
    loss: ["train_loss", "valid_loss"], perplexity: ["perplexity"], scores: ["bleu", "chrf", "accuracy", "macro_f1"],
    learning_rate: ["learning_rate"], gradient_norm: ["gradient_norm"], speed: ["tokens_per_second"],
  };
  const MOST_POINTS = 300;

  async function build(panel) {
    const names = mh.about.models.map((one) => one.name);
    const chosen = new Set([mh.current().name]);
    const holder = h("div", { class: "stack" });
    if (mh.live && names.length > 1) {
      const changed = (name) => (event) => { chosen[event.target.checked ? "add" : "delete"](name); return draw(); };
      panel.append(h("fieldset", { class: "controls" }, h("legend", {}, t("training.runs")), names.map((name) => h("label", { class: "field check" },
        h("input", { type: "checkbox", checked: chosen.has(name), onchange: changed(name) }), h("span", {}, name)))));
    }
    panel.append(holder);
    await draw();

    async function draw() {
      const documents = await Promise.all(names.filter((name) => chosen.has(name)).map((name) => mh.source.curves(name)));
      const runs = documents.filter(Boolean).flatMap((one) => one.runs);
      holder.replaceChildren(...(runs.length ? [] : [h("p", { class: "note" }, t("training.none"))]));
      for (const [name, series] of Object.entries(CHARTS)) {
        const lines = runs.flatMap((run) => run.series.filter((one) => series.includes(one.name)).map((one) => thinned(one, runs.length > 1 ? `${run.name} ${t(`series.${one.name}`)}` : t(`series.${one.name}`))));
        if (lines.length) holder.append(curve(name, lines));
      }
      for (const run of runs) holder.append(...entropy(run), ...samples(run, runs.length > 1));
    }
  }

  function curve(name, series) {
    const [title, xTitle] = [t(`training.${name}`), t("column.update")];
    return mh.figure({ title, note: t(`training.${name}_note`), name, table: () => mh.linesTable(series, xTitle), chart: mh.lines({ label: title, series, xTitle, yTitle: t(`unit.${name}`) }) });
  }

  /** Not more points than can be seen; the last one is kept. */
  function thinned({ steps, values }, name) {
    const every = Math.ceil(steps.length / MOST_POINTS);
    const keep = (_, place) => place % every === 0 || place === steps.length - 1;
    return { name, x: steps.filter(keep), y: values.filter(keep) };
  }

  /** How widely each head looked, from checkpoint to checkpoint. */
  function entropy(run) {
    const heads = run.series.filter((one) => one.name.startsWith("attention_entropy/"));
    return [...new Set(heads.map((one) => one.name.split("/")[1]))].map((kind) => {
      const own = heads.filter((one) => one.name.split("/")[1] === kind);
      const steps = own[0].steps.map(String);
      const options = {
        rows: own.map((one) => t("attention.short", { layer: one.name.split("/")[2], head: one.name.split("/")[3] })), columns: steps, value: (row, column) => own[row].values[column] ?? NaN,
        high: Math.max(...own.flatMap((one) => one.values)), digits: 3, label: `${t("training.entropy")}: ${t(`attention.${kind}`)}`, rowTitle: "", columnTitle: t("column.update"),
      };
      return mh.figure({ title: options.label, note: t("training.entropy_note"), name: `entropy-${kind}`, chart: mh.matrix(options), table: () => mh.matrixTable(options) });
    });
  }

  /** The same sentences at every checkpoint. */
  function samples(run, several) {
    if (!run.samples.length) return [];
    const steps = [...new Set(run.samples.map((one) => one.step))];
    const at = mh.state.checkpoint < 0 ? steps.length - 1 : Math.min(steps.length - 1, mh.state.checkpoint);
    const holder = h("div", {});
    const draw = (place) => holder.replaceChildren(...run.samples.filter((one) => one.step === steps[place]).map((one) => h("dl", { class: "sample" },
      [["source", one.source], ["reference", one.reference], ["output", mh.different(one.output, one.reference)]].map(([name, text]) => h("div", {}, h("dt", {}, t(`column.${name}`)), h("dd", { dir: "auto" }, text))))));
    draw(at);
    const columns = ["update", "source", "reference", "output"].map((one) => t(`column.${one}`));
    return [mh.figure({
      title: `${t("training.samples")}${several ? ` (${run.name})` : ""}`, note: t("training.samples_note"), name: "samples",
      table: () => ({ columns, rows: run.samples.map((one) => [one.step, one.source, one.reference, one.output]) }),
      chart: h("div", {}, mh.slider(t("column.update"), { min: 0, max: steps.length - 1, value: at, show: (place) => mh.whole(steps[place]) }, (place) => { mh.set({ checkpoint: place }); draw(place); }), holder),
    })];
  }
})();
