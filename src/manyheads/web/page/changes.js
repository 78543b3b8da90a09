"use strict";
/* Changes of the model: heads, the causal mask or the positions turned off, and their effect on the output. */
/* Number of generated tokens that are shown as the output of a language model. */
const GREEDY_TOKENS = 16;
/** The outputs before and after the changes, with their names.
    @type {Cell[][]} */
let effectOutputs = [];

/** @type {(changes: Partial<PageState>) => void} */
const applyChange = (changes) => { change(changes); render(true); };

/** Create the switches of a head or of all heads of a layer, of the causal mask, and of the positions.
    @type {(kind: AttentionKind, layer: string, head: string, count: number, masked: boolean) => HTMLElement} */
function changeSwitches(kind, layer, head, count, masked) {
  const names = (head === "mean" ? range(count) : [head]).map((index) => `${kind}.${layer}.${index}`);
  const otherHeads = disabledHeads().filter((name) => !names.includes(name));
  const isOff = names.every((name) => disabledHeads().includes(name));
  return figure({
    key: "change.switches", chart: div("controls",
      checkbox(t(head === "mean" ? "change.layer" : "change.head", { layer, head }), isOff, (on) => applyChange({ off: [...otherHeads, ...(on ? names : [])].join("_") })),
      masked && checkbox(t("change.mask"), !state.mask, (on) => applyChange({ mask: on ? 0 : 1 })),
      checkbox(t("change.positions"), !state.positions, (on) => applyChange({ positions: on ? 0 : 1 }))),
  });
}

/** Return pairs of the name of each change and the change of the state that undoes it.
    @type {() => [string, Partial<PageState>][]} */
function activeChanges() {
  /** @type {[string, Partial<PageState>][]} */
  const active = disabledHeads().map((name) => {
    const [kind, layer, head] = name.split(".");
    return [`${localized(`attention.${kind}`) ?? kind}, ${t("attention.named", { layer, head })}`, { off: disabledHeads().filter((other) => other !== name).join("_") }];
  });
  if (!state.mask) active.push([t("change.mask"), { mask: 1 }]);
  if (!state.positions) active.push([t("change.positions"), { positions: 1 }]);
  return active;
}

/** Create the notice that the model is changed; showEffect fills in the outputs before and after.
    @type {() => HTMLElement | string} */
function changeNotice() {
  if (!canCompute || !modelChanges()) return "";
  const items = activeChanges().map(([name, undo]) => h("li", {}, name, button("×", () => applyChange(undo), { "aria-label": t("change.undo", { name }) })));
  const holder = h("div", { id: "effect", "aria-live": "polite" });
  effectOutputs = [];
  const notice = figure({
    key: "change.effect", about: !state.mask && t("change.mask_note"), table: () => [columnTitles("model output"), effectOutputs],
    chart: stack(div("chips-row", h("ul", { class: "chips", "aria-label": t("change.what") }, items), linkButton(t("change.reset"), () => applyChange(AS_TRAINED))), holder),
  });
  notice.classList.add("changed-model");
  return notice;
}

/** Show the outputs before and after the change in the notice.
    @type {() => Promise<void>} */
async function showEffect() {
  const holder = document.getElementById("effect");
  if (!holder || !state.q.trim()) {
    holder?.replaceChildren();
    return;
  }
  const { q } = state;
  try {
    const outputs = await Promise.all([undefined, modelChanges()].map(outputUnder));
    if (state.q !== q || !holder.isConnected) return;
    const names = [t("change.before"), t("change.after")];
    const { target } = currentModel();
    effectOutputs = names.map((name, i) => [name, outputs[i]]);
    holder.replaceChildren(div("effect", names.map((name, i) => div("", para("axis", name), h("p", { dir: "auto", lang: target }, markDifferences(outputs[i], outputs[1 - i]))))),
      outputs[0] === outputs[1] ? note(t("change.same")) : "");
  } catch { holder.replaceChildren(); } // the view itself shows the error
}

/** Return the output for the user's text under changes of the model: a translation, a label, or the next tokens.
    @type {(changes?: ModelChanges) => Promise<string>} */
async function outputUnder(changes) {
  const { name: model, task } = currentModel();
  if (task === "language-modeling") return (state.q + (await request("api/next", { model, q: state.q, changes, top_k: 1, write: GREEDY_TOKENS })).text).replaceAll("\n", " ↵ ");
  if (task === "classification") {
    /** @type {Inspection} */
    const { label, classes } = await request("api/inspect", { model, changes, q: state.q });
    return `${label} ${n(classes.find((candidate) => candidate.label === label)?.probability)}`;
  }
  const result = await translateText(state.q, changes);
  return state.tab === "translate" ? result.translation : sentenceOf(result).translation;
}
