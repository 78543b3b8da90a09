/* Changes of the model: heads, the causal mask or the positions turned off. */

import { button, checkbox, linkButton } from "./controls.js";
import { wordDifferences } from "./differences.js";
import { changedFigure, changeEffect, outputUnder } from "./effect.js";
import { div, h, note, stack } from "./elements.js";
import { hasWorker } from "./engine.js";
import { abs, range } from "./numbers.js";
import { currentModel, disabledHeads, fetchInspection } from "./source.js";
import { AS_TRAINED, mh, state, update } from "./state.js";
import { n, t } from "./strings.js";

/* Examples of changes, and the milliseconds to look for them. */
const [EXAMPLES, SEARCH_TIME] = [3, 3000];

/** The changes that were tried on a text.
    @type {{ text: string, found: TriedChange[] }} */
let foundChanges = { text: "", found: [] };

/** Create the switches of a head or of all heads of a layer, of the causal mask, and of the
    positions, with their effect.
    @type {(kind: AttentionKind, layer: string, head: string, count: number, masked: boolean) =>
      HTMLElement} */
export function changeSwitches(kind, layer, head, count, masked) {
  const names = (head === "mean" ? range(count) : [head]).map(
    (index) => `${kind}.${layer}.${index}`,
  );
  const otherHeads = disabledHeads().filter((name) => !names.includes(name));
  const isOff = names.every((name) => disabledHeads().includes(name));
  const switches = div(
    "controls",
    checkbox(t(head === "mean" ? "change.layer" : "change.head", { layer, head }), isOff, (on) =>
      update({ off: [...otherHeads, ...(on ? names : [])].join("_") }),
    ),
    masked && checkbox(t("change.mask"), !state.mask, (on) => update({ mask: on ? 0 : 1 })),
    checkbox(t("change.positions"), !state.positions, (on) => update({ positions: on ? 0 : 1 })),
  );
  const examples = div("");
  if (hasWorker) showExamples(examples);
  else examples.append(linkButton(t("change.find"), () => showExamples(examples)));
  return changedFigure("change.switches", stack(switches, examples, changeEffect()));
}

/** Return changes of the model with their names: without all heads of a layer, without the causal
    mask, without positions.
    @type {(inspection: Inspection) => PossibleChange[]} */
function possibleChanges({ attention }) {
  /** @type {PossibleChange[]} */
  const layers = attention.flatMap(({ kind, weights }) => {
    const [count, heads] = weights.shape;
    return range(count).map((layer) => {
      const names = range(heads).map((head) => `${kind}.${layer}.${head}`);
      return {
        name: t("change.kind", { kind: t(`attention.${kind}`).toLowerCase(), layer }),
        shown: { kind, layer, head: "mean", off: names.join("_") },
        changes: { heads: names, mask: true, positions: true },
      };
    });
  });
  const mask = {
    name: t("change.mask"),
    shown: { mask: 0 },
    changes: { heads: [], mask: false, positions: true },
  };
  const positions = {
    name: t("change.positions"),
    shown: { positions: 0 },
    changes: { heads: [], mask: true, positions: false },
  };
  return [
    ...layers.reverse(),
    positions,
    ...(attention.some(({ kind }) => kind === "decoder") ? [mask] : []),
  ];
}

/** Try changes of the model on the text, as many as time allows, and show buttons for those with
    the largest effect: on the words, then on the score.
    @type {(holder: HTMLElement) => Promise<void>} */
async function showExamples(holder) {
  const { q } = state;
  const end = performance.now() + SEARCH_TIME;
  try {
    const [before, inspection] = await Promise.all([
      outputUnder(),
      fetchInspection({ changes: undefined }),
    ]);
    const line = inspection?.source?.text ?? q;
    const text = [mh.language, currentModel().name, state.beam, line].join(" ");
    const isKnown = foundChanges.text === text;
    const found = isKnown ? foundChanges.found : [];
    for (const change of inspection && !isKnown ? possibleChanges(inspection) : []) {
      if (performance.now() > end || state.q !== q || !holder.isConnected) break;
      const after = await outputUnder(change.changes);
      const words = wordDifferences(after.text, before.text).filter(([, kind]) => kind).length;
      found.push({
        ...change,
        words,
        gap: abs(after.score - before.score),
        effect: words
          ? t("change.example_words", { words })
          : `${n(before.score, 2)} → ${n(after.score, 2)}`,
      });
    }
    found.sort((a, b) => b.words - a.words || b.gap - a.gap);
    if (state.q === q && holder.isConnected) foundChanges = { text, found };
    const buttons = found.slice(0, EXAMPLES).map(({ name, shown, effect }) =>
      button([name, " ", h("small", {}, effect)], () => update({ ...AS_TRAINED, ...shown }), {
        "data-focus": name,
      }),
    );
    if (found.length) holder.replaceChildren(note(t("change.examples")), div("examples", buttons));
  } catch {
    holder.replaceChildren(); // the view itself shows the error
  }
}
