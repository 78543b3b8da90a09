/* The effect of changes of the model on the output. */

import { button, linkButton } from "./controls.js";
import { markedWords, wordDifferences } from "./differences.js";
import { div, h, note, para, stack } from "./elements.js";
import { figure, tableOf } from "./figure.js";
import { abs, floor, range, unpack } from "./numbers.js";
import {
  canCompute,
  currentModel,
  disabledHeads,
  fetchInspection,
  modelChanges,
  request,
  sentenceOf,
  translateText,
} from "./source.js";
import { AS_TRAINED, state, update } from "./state.js";
import { columnTitles, localized, n, t } from "./strings.js";
import { attentionOfKind, weightsOf } from "./weights.js";

/* Number of generated tokens that are shown as the output of a language model. */
const GREEDY_TOKENS = 16;

/* A cell whose weight differs less than that shows the same number. */
const LEAST_DIFFERENCE = 0.005;

/** Create a figure that is marked if the model is changed.
    @type {(key: string, chart: HTMLElement) => HTMLElement} */
export function changedFigure(key, chart) {
  const shown = figure({ key, chart });
  shown.classList.toggle("changed-model", Boolean(modelChanges()));
  return shown;
}

/** Return pairs of the name of each change and the change of the state that undoes it.
    @type {() => [string, Partial<PageState>][]} */
function activeChanges() {
  /** @type {[string, Partial<PageState>][]} */
  const active = disabledHeads().map((name) => {
    const [kind, layer, head] = name.split(".");
    const others = disabledHeads().filter((other) => other !== name);
    const title = localized(`attention.${kind}`) ?? kind;
    const named = t("attention.named", { layer, head });
    return [`${title}, ${named}`, { off: others.join("_") }];
  });
  if (!state.mask) active.push([t("change.mask"), { mask: 1 }]);
  if (!state.positions) active.push([t("change.positions"), { positions: 1 }]);
  return active;
}

/** Create the notice that the model is changed, of a view without switches.
    @type {() => HTMLElement | string} */
export const changeNotice = () =>
  canCompute && modelChanges() ? changedFigure("change.effect", stack(changeEffect())) : "";

/** Create the list of the changes, with a place for their effect, which showEffect fills in.
    @type {() => Child} */
export function changeEffect() {
  if (!modelChanges()) return "";
  const items = activeChanges().map(([name, undo]) =>
    h(
      "li",
      {},
      name,
      button("×", () => update(undo), { "aria-label": t("change.undo", { name }) }),
    ),
  );
  return [
    h("div", { id: "effect", "aria-live": "polite" }),
    !state.mask && note(t("change.mask_note")),
    div(
      "chips-row",
      h("ul", { class: "chips", "aria-label": t("change.what") }, items),
      linkButton(t("change.reset"), () => update(AS_TRAINED)),
    ),
  ];
}

/** Show the outputs before and after the change, their scores, and how many words and cells differ.
    @type {() => Promise<void>} */
export async function showEffect() {
  const holder = document.getElementById("effect");
  if (!holder || !state.q.trim()) {
    holder?.replaceChildren();
    return;
  }
  const { q } = state;
  try {
    const [before, after] = await Promise.all([undefined, modelChanges()].map(outputUnder));
    const cells = state.tab === "attention" && (await changedCells());
    if (state.q !== q || !holder.isConnected) return;
    const words = wordDifferences(after.text, before.text);
    /** @type {(name: string, hidden: string, score: number) => Cell[]} */
    const row = (name, hidden, score) => [
      t(name),
      h(
        "span",
        { lang: currentModel().target },
        markedWords(words.filter(([, change]) => change !== hidden)),
      ),
      n(score),
    ];
    const kinds = words.map(([, change]) => change);
    const rows = [
      row("change.before", "new", before.score),
      row("change.after", "gone", after.score),
    ];
    holder.replaceChildren(
      para("strong", effectSummary(kinds, before, after)),
      div("effect", tableOf([columnTitles("model output score"), rows], t("change.effect"))),
      cells ? note(cells) : "",
    );
  } catch {
    holder.replaceChildren(); // the view itself shows the error
  }
}

/** Return a sentence about the difference of two outputs: their words and their scores.
    @type {(changes: string[], before: ScoredOutput, after: ScoredOutput) => string} */
export function effectSummary(changes, before, after) {
  const [gone, added] = ["gone", "new"].map(
    (name) => changes.filter((change) => change === name).length,
  );
  const [from, to] = [n(before.score), n(after.score)];
  const score = t(
    from === to ? "change.kept" : after.score < before.score ? "change.fell" : "change.rose",
    { score: t(`change.${before.measure}`), from, to },
  );
  return t(
    gone + added
      ? "change.words"
      : before.measure === "label"
        ? "change.same_label"
        : "change.same",
    { gone, new: added, score },
  );
}

/** Return how many cells of the attention differ from those of the model as it was trained: of the
    shown head, and of all heads.
    @type {() => Promise<string>} */
async function changedCells() {
  const inspections = await Promise.all([
    fetchInspection({ changes: undefined }),
    fetchInspection(),
  ]);
  const [before, after] = inspections.map(
    (inspection) => inspection && attentionOfKind(inspection, state.kind),
  );
  if (!before || !after) return "";
  const pieces = inspections.map((inspection) =>
    (inspection?.target ?? inspection?.text)?.tokens.map((token) => token.piece).join(" "),
  );
  if (state.kind !== "encoder" && pieces[0] !== pieces[1]) return t("change.other_rows");
  const [, count, rows, columns] = unpack(after.weights).shape;
  /** @type {(layer: number | string, head: number | string) => number} */
  const countIn = (layer, head) => {
    const [first, second] = [before, after].map((attention) => weightsOf(attention, layer, head));
    return range(rows * columns).filter(
      (i) =>
        abs(first(floor(i / columns), i % columns) - second(floor(i / columns), i % columns)) >=
        LEAST_DIFFERENCE,
    ).length;
  };
  const heads = range(unpack(after.weights).shape[0] * count);
  const all = heads.reduce((sum, head) => sum + countIn(floor(head / count), head % count), 0);
  return t("change.cells", {
    least: n(LEAST_DIFFERENCE),
    here: countIn(state.layer, state.head),
    cells: rows * columns,
    all,
    total: heads.length * rows * columns,
  });
}

/** Return the output for the user's text under changes of the model, with its score: a translation,
    a label, or the next tokens.
    @type {(changes?: ModelChanges) => Promise<ScoredOutput>} */
export async function outputUnder(changes) {
  const { name: model, task } = currentModel();
  if (task === "language-modeling") {
    const body = { model, q: state.q, changes };
    /** @type {NextTokens} */
    const greedy = await request("api/next", { ...body, top_k: 1, write: GREEDY_TOKENS });
    /** @type {NextTokens} */
    const { tokens } = await request("api/next", body);
    const text = (body.q + greedy.text).replaceAll("\n", " ↵ ");
    return { text, measure: "next", score: tokens[0].probability };
  }
  if (task === "classification") {
    /** @type {Inspection} */
    const { label, classes } = await request("api/inspect", { model, changes, q: state.q });
    return {
      text: label,
      measure: "label",
      score: classes.find((candidate) => candidate.label === label)?.probability ?? 0,
    };
  }
  const { translation, hypotheses } = sentenceOf(await translateText(state.q, changes));
  return { text: translation, measure: "score", score: hypotheses[0]?.score ?? 0 };
}
