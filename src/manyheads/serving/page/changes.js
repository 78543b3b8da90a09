"use strict";
/* What if: heads, the causal mask or the positions turned off, and what becomes of the output. */
/* Next tokens that stand for the output of a language model. */
const GREEDY_TOKENS = 16;

const toggled = (changes) => { change(changes); render(true); };

/** The switches of a head, or of all heads of a layer; of the causal mask; of the positions. */
function whatIf(kind, layer, head, count, masked) {
  const names = (head === "mean" ? range(count) : [head]).map((one) => `${kind}.${layer}.${one}`);
  const others = headsOff().filter((one) => !names.includes(one));
  const isOff = names.every((one) => headsOff().includes(one));
  return figure({
    key: "change.switches", chart: div("controls",
      check(t(head === "mean" ? "change.layer" : "change.head", { layer, head }), isOff, (on) => toggled({ off: [...others, ...(on ? names : [])].join("_") })),
      masked && check(t("change.mask"), !state.mask, (on) => toggled({ mask: on ? 0 : 1 })),
      check(t("change.positions"), !state.positions, (on) => toggled({ positions: on ? 0 : 1 }))),
  });
}

/** What is off: its name, and the state in which it is on again. */
function whatIsOff() {
  const heads = headsOff().map((name) => {
    const [kind, layer, head] = name.split(".");
    return [`${known(`attention.${kind}`) ?? kind}, ${t("attention.named", { layer, head })}`, { off: headsOff().filter((one) => one !== name).join("_") }];
  });
  return [...heads, !state.mask && [t("change.mask"), { mask: 1 }], !state.positions && [t("change.positions"), { positions: 1 }]].filter(Boolean);
}

/** Says that the model is changed, in every view that shows it, with its output before and after. */
function changedNotice() {
  if (!live || !changesNow()) return "";
  const items = whatIsOff().map(([name, on]) => h("li", {}, name, button("×", () => toggled(on), { "aria-label": t("change.undo", { name }) })));
  const holder = h("div", { id: "effect", "aria-live": "polite" });
  const notice = figure({
    key: "change.effect", about: !state.mask && t("change.mask_note"), table: () => [heads("model output"), holder.outputs || []],
    chart: stack(div("chips-row", h("ul", { class: "chips", "aria-label": t("change.what") }, items), quiet(t("change.reset"), () => toggled(TRAINED))), holder),
  });
  notice.classList.add("changed-model");
  return notice;
}

/** Fill the notice with the output before and after. */
async function showEffect() {
  const holder = document.getElementById("effect");
  if (!holder || !state.q.trim()) return void holder?.replaceChildren();
  const { q } = state;
  try {
    const outputs = await Promise.all([undefined, changesNow()].map(outputWith));
    if (state.q !== q || !holder.isConnected) return;
    const names = [t("change.before"), t("change.after")];
    const { target } = theModel();
    holder.outputs = names.map((name, i) => [name, outputs[i]]);
    holder.replaceChildren(div("effect", names.map((name, i) => div("", para("axis", name), h("p", { dir: "auto", lang: target }, different(outputs[i], outputs[1 - i]))))),
      outputs[0] === outputs[1] ? note(t("change.same")) : "");
  } catch { holder.replaceChildren(); } // the view itself says what is wrong
}

/** What the model makes of the reader's text: a translation, a label, or the next tokens. */
async function outputWith(changes) {
  const { name: model, task } = theModel();
  if (task === "language-modeling") return (state.q + (await ask("api/next", { model, q: state.q, changes, top_k: 1, write: GREEDY_TOKENS })).text).replaceAll("\n", " ↵ ");
  if (task === "classification") {
    const { label, classes } = await ask("api/inspect", { model, changes, q: state.q });
    return `${label} ${n(classes.find((one) => one.label === label).probability)}`;
  }
  const found = await translated(state.q, changes);
  return state.tab === "translate" ? found.translation : sentenceOf(found).translation;
}
