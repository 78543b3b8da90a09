/* The computation of a head for one query, step by step as in the paper (section 3.2.1):
   scores, mask, softmax, weighted sum. */

import { legend } from "../colours.js";
import { button, choice, roving, setPressed, tokenRow } from "../controls.js";
import { div, h, note, para, stack } from "../elements.js";
import { figure } from "../figure.js";
import { headSteps, STEPS } from "../headsteps.js";
import { formulaBox } from "../mathml.js";
import { clamp, min, range, unpack } from "../numbers.js";
import { disabledHeads } from "../source.js";
import { change, mh, state } from "../state.js";
import { pieceText, t } from "../strings.js";
import { attentionOfKind, shiftNote } from "../weights.js";

const STAGES = ["scores", "mask", "softmax", "output"];

/** @type {(panel: HTMLElement, inspection: Inspection) => Promise<void>} */
export async function buildSteps(panel, inspection) {
  const kinds = inspection.attention.map((part) => part.kind);
  const attention = attentionOfKind(inspection, state.kind);
  const { kind } = attention;
  const [layers, count] = unpack(attention.weights).shape;
  const layer = range(layers).includes(state.layer) ? state.layer : layers - 1;
  const head = range(count).includes(Number(state.head)) ? Number(state.head) : 0;
  const steps = await headSteps(inspection, kind, layer, head);
  const { rows, columns } = steps;
  const shift = shiftNote(inspection, attention, [rows, columns]);
  let [query, key] = [0, 0];

  /** @type {(name: "kind" | "layer" | "head", options: Choice[], current: string | number) =>
        HTMLElement} */
  const stateChoice = (name, options, current) =>
    choice(t(`attention.${name}`), options, current, (value) => {
      change({
        kind,
        layer,
        head: String(head),
        [name]: name === "layer" ? Number(value) : value,
        ...(name === "kind" && { query: 0 }),
      });
      mh.render(true);
    });
  const tokens = rows.names.map((name, i) =>
    button(pieceText(name), () => selectQuery(i), { class: "token", dir: "auto" }),
  );
  const stages = STAGES.map((name, i) =>
    button(`${i + 1}. ${t(`steps.${name}_short`)}`, () => showStage(i)),
  );
  const back = button(t("steps.back"), () => showStage(state.stage - 1));
  const next = button(t("steps.next"), () => showStage(state.stage + 1), { class: "primary" });
  const holder = h("div", {});
  holder.addEventListener("keydown", changeStage, true);
  panel.append(
    div(
      "controls",
      kinds.length > 1 &&
        stateChoice(
          "kind",
          kinds.map((name) => [name, t(`attention.${name}`)]),
          kind,
        ),
      stateChoice("layer", range(layers), layer),
      stateChoice("head", range(count), head),
    ),
    figure({
      key: "steps.query",
      about: `${t("steps.query_note", { side: rows.title })} ${shift}`,
      chart: tokenRow(rows.title, tokens, rows.names, min(state.query, tokens.length - 1)),
    }),
    div(
      "controls stages",
      roving(
        h("div", { class: "segments", role: "group", "aria-label": t("tab.steps") }, stages),
        stages,
        state.stage,
        showStage,
      ),
      back,
      next,
    ),
    holder,
  );
  selectQuery(min(state.query, tokens.length - 1));

  /** Select a query, and the key with the largest weight.
      @type {(i: number) => void} */
  function selectQuery(i) {
    query = i;
    key = columns.names.reduce(
      (best, _, k) => (steps.at("weights", i, k) > steps.at("weights", i, best) ? k : best),
      0,
    );
    change({ query });
    setPressed(tokens, i);
    showStage(state.stage);
  }

  /** Show a step of the computation.
      @type {(to: number) => void} */
  function showStage(to) {
    change({ stage: clamp(to, STAGES.length - 1) });
    setPressed(stages, state.stage);
    stages.forEach((stage, i) => {
      stage.tabIndex = i === state.stage ? 0 : -1;
    });
    back.disabled = state.stage === 0;
    next.disabled = state.stage === STAGES.length - 1;
    holder.replaceChildren(draw(STAGES[state.stage]));
  }

  /** Change the step by the left and right arrow keys in the table.
      @type {(e: KeyboardEvent) => void} */
  function changeStage(e) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (
      !by ||
      !(e.target instanceof Element && e.target.closest(".strips")) ||
      e.altKey ||
      e.ctrlKey ||
      e.metaKey
    ) {
      return;
    }
    e.preventDefault();
    e.stopPropagation();
    showStage(state.stage + by);
    /** @type {NodeListOf<HTMLElement>} */ (holder.querySelectorAll(".strips button"))[key].focus();
  }

  /** Create the figure of a step: formula, formula with numbers, and table.
      @type {(name: string) => HTMLElement} */
  function draw(name) {
    const { formula, numbers, titles, cells, firstRow, lastRow, vectorOf, table, high } = STEPS[
      name
    ](steps, query);
    const [filledIn, reading] = [div("formula-numbers"), para("reading vector")];
    const buttons = columns.names.map((piece, i) =>
      button(pieceText(piece), () => selectKey(i), { dir: "auto", onfocus: () => selectKey(i) }),
    );
    /** @type {(style: string, title: Child, content: Child[]) => HTMLElement} */
    const line = (style, title, content) =>
      h(
        "tr",
        { class: style },
        h("th", { scope: "row", dir: "auto" }, title),
        content.map((cell) => h("td", {}, cell)),
      );
    const lines = buttons.map((keyButton, i) => line("", keyButton, cells(i)));
    lines.forEach((row, i) => row.addEventListener("pointerenter", () => selectKey(i)));
    const strips = h(
      "table",
      { class: "strips" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          [columns.title, ...titles].map((title) => h("th", { scope: "col" }, title)),
        ),
      ),
      h(
        "tbody",
        {},
        firstRow && line("summary", ...firstRow),
        lines,
        lastRow && line("summary", ...lastRow),
      ),
    );
    selectKey(key);
    return figure({
      key: `steps.${name}`,
      title: `${state.stage + 1}. ${t(`steps.${name}`)}`,
      table,
      chart: stack(
        div("formulas", formulaBox(formula), filledIn),
        stack(
          h("div", { class: "scroll-x" }, roving(strips, buttons, key)),
          reading,
          high && legend(-high, high, t("steps.component")),
        ),
        name === "scores" &&
          inspection.model.positions === "rotary" &&
          kind !== "cross" &&
          note(t("steps.rotary")),
        name === "output" &&
          disabledHeads().includes(`${kind}.${layer}.${head}`) &&
          note(t("steps.off")),
      ),
    });

    /** Show the numbers of a key.
        @type {(i: number) => void} */
    function selectKey(i) {
      key = i;
      lines.forEach((row, k) => row.classList.toggle("current", k === i));
      filledIn.replaceChildren(formulaBox(numbers(i)));
      reading.textContent = vectorOf ? vectorOf(i) : "";
    }
  }
}
