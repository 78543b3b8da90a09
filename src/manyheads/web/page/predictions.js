"use strict";
/* The predictions for a text: the classes of a classifier (Classify), and the next tokens of a language model (Continue). */
views.classify = { tasks: ["classification"], build: buildClassify };
views.continue = { tasks: ["language-modeling"], build: buildContinue };

/** Create the summary of the text in a document without a model, which has no text box.
    @type {(inspection: Inspection | null) => HTMLElement | string} */
const documentText = (inspection) => (inspection && !canCompute ? textSummary(inspection) : "");

/** Add a text box, and below it the elements that `show` returns; return the function that updates them.
    @type {(panel: HTMLElement, show: () => Promise<(HTMLElement | string)[]>) => Promise<() => Promise<void>>} */
async function resultsUnderText(panel, show) {
  const holder = stack();
  let runCount = 0;
  const run = async () => {
    const number = (runCount += 1);
    showEffect();
    const elements = await show().catch((error) => [h("p", { class: "wrong", role: "alert" }, error.message)]);
    if (number === runCount) holder.replaceChildren(...elements);
  };
  const box = canCompute && textBox(t("classify.text"), run);
  const intro = panel.querySelector(".intro");
  if (box && intro) intro.after(box);
  else if (box) panel.prepend(box);
  panel.append(holder);
  await run();
  return run;
}

/** Show the probability of each class, and the effect of leaving out each word.
    @type {(panel: HTMLElement) => Promise<void>} */
async function buildClassify(panel) {
  await resultsUnderText(panel, async () => {
    const inspection = await fetchInspection();
    if (!inspection) return [];
    const classes = [...inspection.classes].sort((a, b) => b.probability - a.probability);
    const { label, pooling, occlusion, text } = inspection;
    return [documentText(inspection), figure({
      key: "classify.label", values: { label }, about: t(`classify.${pooling}`), chart: bars(classes.map((item) => [item.label, item.probability, n(item.probability), "", item.label === label]), 1),
      table: () => [columnTitles("class probability"), classes.map((item) => [item.label, item.probability])],
    }), occlusion ? occlusionFigure(occlusion, text.words, { label }) : ""];
  });
}

/** Show the likeliest next tokens of a language model, under temperature, top-k and top-p.
    @type {(panel: HTMLElement) => Promise<void>} */
async function buildContinue(panel) {
  const generated = h("p", { class: "translation", dir: "auto", "aria-live": "polite" });
  /** @type {(options?: { write?: number, seed?: number }) => Promise<NextTokens>} */
  const requestNext = (options) => request("api/next", { model: currentModel().name, q: state.q, temperature: state.temperature, top_k: state.topk, top_p: state.topp, changes: modelChanges(), ...options });
  const later = debounce(200, () => run());
  /** @type {(name: "temperature" | "topk" | "topp", options: Omit<SliderOptions, "value">) => HTMLElement} */
  const stateSlider = (name, options) => slider(t(`continue.${name}`), { value: state[name], ...options }, (value) => { change({ [name]: value }); later(); });
  if (canCompute) {
    panel.append(div("controls",
      stateSlider("temperature", { min: 0.1, max: 3, step: 0.1, show: (value) => n(value, 1) }), stateSlider("topk", { min: 0, max: 50, show: (value) => (value ? String(value) : t("continue.all")) }),
      stateSlider("topp", { min: 0.05, max: 1, step: 0.05, show: (value) => n(value, 2) }),
      button(t("continue.write"), () => requestNext({ write: 24, seed: floor(Math.random() * 1e6) }).then(({ text }) => generated.replaceChildren(state.q, h("mark", {}, text)), ({ message }) => generated.replaceChildren(message)), { class: "primary" })));
  }
  panel.append(generated);
  const run = await resultsUnderText(panel, async () => {
    const result = canCompute ? await requestNext() : null;
    const inspection = canCompute ? null : await fetchInspection();
    const tokens = result?.tokens ?? inspection?.next.map((token) => ({ ...token, share: token.probability })) ?? [];
    /** @type {(token: NextToken) => Child} */
    const append = (token) => canCompute && token.text && linkButton(t("continue.append"), () => { change({ ...OWN_OUTPUT, q: state.q + token.text }); render(true); }, `${t("continue.append")}: ${pieceText(token.piece)}`);
    return [documentText(inspection), figure({
      key: "continue.next", about: result && t("continue.note", { kept: integer(result.kept) }),
      chart: bars(tokens.map((token) => [pieceText(token.piece), token.share, canCompute ? `${n(token.share)} (${n(token.probability)})` : n(token.share), append(token)]), 1),
      table: () => [columnTitles("piece share probability"), tokens.map((token) => [token.piece, token.share, token.probability])],
    })];
  });
}
