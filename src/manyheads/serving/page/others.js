"use strict";
/* The first views of the other kinds of model: Classify, and Continue. */
views.classify = { tasks: ["classification"], build: buildClassify };
views.continue = { tasks: ["language-modeling"], build: buildContinue };

/** In a document the text itself is shown. */
const own = (found) => (live ? "" : aboutOf(found));

/** A box for a text, and below it what `show` makes of it. */
async function under(panel, show) {
  const holder = stack();
  const run = async () => {
    showEffect();
    const found = await show().catch((error) => [h("p", { class: "wrong", role: "alert" }, error.message)]);
    holder.replaceChildren(...found);
  };
  if (live) panel.prepend(textBox(t("classify.text"), run));
  panel.append(holder);
  await run();
  return run;
}

/** How likely each class is, and what each word did for it. */
async function buildClassify(panel) {
  await under(panel, async () => {
    const found = await inspected();
    if (!found) return [];
    const classes = [...found.classes].sort((one, other) => other.probability - one.probability);
    const { label, pooling, occlusion, text } = found;
    return [own(found), figure({
      key: "classify.label", values: { label }, about: t(`classify.${pooling}`), chart: bars(classes.map((one) => [one.label, one.probability, n(one.probability), "", one.label === label]), 1),
      table: () => [heads("class probability"), classes.map((one) => [one.label, one.probability])],
    }), occlusion ? missingWords(occlusion, text.words, { label }) : ""];
  });
}

/** What a language model thinks may come next, and how temperature, top-k and top-p change that. */
async function buildContinue(panel) {
  const written = h("p", { class: "translation", dir: "auto", "aria-live": "polite" });
  const next = (more) => ask("api/next", { model: theModel().name, q: state.q, temperature: state.temperature, top_k: state.topk, top_p: state.topp, changes: changesNow(), ...more });
  const later = debounce(200, () => run());
  const dial = (name, options) => slider(t(`continue.${name}`), { value: state[name], ...options }, (value) => { change({ [name]: value }); later(); });
  if (live) {
    panel.append(div("controls",
      dial("temperature", { min: 0.1, max: 3, step: 0.1, show: (value) => n(value, 1) }), dial("topk", { min: 0, max: 50, show: (value) => (value ? String(value) : t("continue.all")) }),
      dial("topp", { min: 0.05, max: 1, step: 0.05, show: (value) => n(value, 2) }),
      button(t("continue.write"), async () => written.replaceChildren(state.q, h("mark", {}, (await next({ write: 24, seed: floor(Math.random() * 1e6) })).text)), { class: "primary" })));
  }
  panel.append(written);
  const run = await under(panel, async () => {
    const found = live ? await next() : await inspected();
    const tokens = found.tokens || found.next.map((one) => ({ ...one, share: one.probability }));
    const append = (one) => live && one.text && quiet(t("continue.append"), () => { change({ ...OWN, q: state.q + one.text }); render(true); }, `${t("continue.append")}: ${spell(one.piece)}`);
    return [own(found), figure({
      key: "continue.next", about: live && t("continue.note", { kept: whole(found.kept) }),
      chart: bars(tokens.map((one) => [spell(one.piece), one.share, live ? `${n(one.share)} (${n(one.probability)})` : n(one.share), append(one)]), 1),
      table: () => [heads("piece share probability"), tokens.map((one) => [one.piece, one.share, one.probability])],
    })];
  });
}
