/* Attention: the weights of all heads, of one head in large or of two side by side; masks. */

import { changeSwitches } from "../changes.js";
import { legend, paint } from "../colours.js";
import { button, checkbox, choice, roving, setChoice } from "../controls.js";
import { showEffect } from "../effect.js";
import { aria, div, h, note, span, stack } from "../elements.js";
import { hasWorker } from "../engine.js";
import { figure } from "../figure.js";
import { matrix, matrixTable } from "../matrix.js";
import { abs, ceil, floor, max, range, unpack } from "../numbers.js";
import { canCompute, disabledHeads } from "../source.js";
import { change, goTo, state, update } from "../state.js";
import { n, pieceText, t } from "../strings.js";
import { attentionAxes, attentionOfKind, headOptions, shiftNote, weightsOf } from "../weights.js";

/* Number of <pad> tokens after the source that show the effect of the mask. */
const PADDING = 3;

/* Number of columns up to which the matrix leaves room for the switches beside it. */
const MAX_COLUMNS_BESIDE = 16;

/** Create the names along a side of a thumbnail, of at most 12 of its rows or columns.
    @type {(names: string[], side: string) => HTMLElement} */
const axisLabels = (names, side) =>
  h(
    "span",
    { class: `names ${side}`, "aria-hidden": true },
    names.map((name, i) => span("", i % ceil(names.length / 12) ? "" : pieceText(name))),
  );

/** @type {(panel: HTMLElement, inspection: Inspection) => void} */
export function buildAttention(panel, inspection) {
  const kinds = inspection.attention.map((part) => part.kind);
  const attention = attentionOfKind(inspection, state.kind);
  const { kind } = attention;
  const [layers, count, height, width] = unpack(attention.weights).shape;
  const [mask, entropy] = [unpack(attention.mask).data, unpack(attention.entropy).data];
  const [rows, columns] = attentionAxes(inspection, kind);
  /** @type {(layer: number | string, head: number | string) => string} */
  const named = (layer, head) =>
    t(head === "mean" ? "attention.named_mean" : "attention.named", { layer, head });
  const all = range(layers).flatMap((layer) =>
    ["mean", ...range(count)].map(
      (head) => /** @type {[string, string]} */ ([`${layer}.${head}`, named(layer, head)]),
    ),
  );
  /** @type {(name: string) => boolean} */
  const exists = (name) => all.some(([value]) => value === name);
  let current = exists(`${state.layer}.${state.head}`)
    ? `${state.layer}.${state.head}`
    : `${layers - 1}.mean`;
  let other = exists(state.other) ? state.other : "";
  const [large, switches] = [div("side-by-side"), div("")];
  const both = div("with-switches", large, switches);
  const layerList = choice(t("attention.layer"), range(layers), "", (layer) =>
    showHead(`${layer}.${current.split(".")[1]}`),
  );
  const headList = choice(t("attention.head"), headOptions(count), "", (head) =>
    showHead(`${current.split(".")[0]}.${head}`),
  );
  panel.append(
    div(
      "controls",
      kinds.length > 1 &&
        choice(
          t("attention.kind"),
          kinds.map((name) => [name, t(`attention.${name}`)]),
          kind,
          (value) => update({ kind: /** @type {AttentionKind} */ (value), other: "" }),
        ),
      layerList,
      headList,
      choice(t("attention.compare"), [["", t("attention.nothing")], ...all], other, (value) => {
        other = value;
        showHead(current);
      }),
      canCompute &&
        !hasWorker &&
        inspection.kind === "translation" &&
        checkbox(t("attention.padding", { count: PADDING }), state.padding > 0, (on) =>
          update({ padding: on ? PADDING : 0 }),
        ),
      canCompute && !hasWorker && button(t("steps.open"), () => goTo({ tab: "steps" })),
    ),
    both,
    thumbnails(),
  );
  showHead(current);

  /** Show a head in large, "layer.head", and the head to compare it with.
      @type {(name: string) => void} */
  function showHead(name) {
    current = name;
    const [layer, head] = name.split(".");
    change({ kind, layer: Number(layer), head, other });
    setChoice(layerList, layer);
    setChoice(headList, head);
    for (const button of panel.querySelectorAll(".thumbnail")) {
      aria(button, "pressed", button.getAttribute("data-head") === name);
    }
    large.replaceChildren(
      ...(other ? [[name], [other], [name, other]] : [[name]]).map(largeFigure),
    );
    large.classList.toggle("two", Boolean(other));
    both.classList.toggle("beside", canCompute && !other && width <= MAX_COLUMNS_BESIDE);
    if (!canCompute) return;
    switches.replaceChildren(changeSwitches(kind, layer, head, count, kinds.includes("decoder")));
    showEffect();
  }

  /** Create the figure of a head, or of the difference of two heads.
      @type {(names: string[]) => HTMLElement} */
  function largeFigure(names) {
    const heads = names.map((name) => name.split("."));
    const [first, second] = heads.map(([layer, head]) => weightsOf(attention, layer, head));
    const differs = heads.length > 1;
    /** @type {(row: number, column: number) => number} */
    const value = differs ? (row, column) => first(row, column) - second(row, column) : first;
    const high = differs
      ? max(0.01, ...range(height * width).map((i) => abs(value(floor(i / width), i % width))))
      : 1;
    const shift = shiftNote(inspection, attention, [rows, columns]);
    const title = heads.map(([layer, head]) => named(layer, head)).join(" − ");
    /** @type {MatrixOptions} */
    const options = {
      rows: rows.names,
      before: shift ? columns.names : undefined,
      columns: columns.names,
      value,
      high,
      low: differs ? -high : 0,
      hidden: (row, column) => !mask[row * width + column],
      label: `${t(`attention.${kind}`)}, ${title}`,
      rowTitle: rows.title,
      columnTitle: columns.title,
      meaning: t(differs ? "attention.difference" : "attention.weight"),
    };
    return figure({
      key: `attention.${kind}`,
      title: options.label,
      about: t(differs ? "attention.difference_note" : "attention.note"),
      table: () => matrixTable(options),
      chart: div("", note(shift), matrix(options), note(span("swatch masked"), t(`mask.${kind}`))),
    });
  }

  /** Create the button of a head, with its weights in small.
      @type {(layer: number, head: number) => HTMLElement} */
  function thumbnail(layer, head) {
    const canvas = h("canvas", { width, height });
    paint(canvas, weightsOf(attention, layer, head));
    const name = `${layer}.${head}`;
    const off = disabledHeads().includes(`${kind}.${name}`) ? `, ${t("change.off")}` : "";
    const style = `thumbnail${off && " off"}`;
    return h(
      "button",
      { type: "button", class: style, "data-head": name, onclick: () => showHead(name) },
      span("hidden", `${t("attention.layer_n", { layer })}, `),
      span("", t("attention.head_n", { head }), off),
      axisLabels(layer ? [] : columns.names, "above"),
      canvas,
      span("hidden", `, ${t("column.entropy")} `),
      span("", n(entropy[layer * count + head], 2)),
    );
  }

  /** Create the figure of all heads: a row of thumbnails for each layer. */
  function thumbnails() {
    const buttons = range(layers * count).map((i) => thumbnail(floor(i / count), i % count));
    const lines = range(layers).map((layer) =>
      div(
        "heads-row",
        span("heads-name", t("attention.layer_n", { layer })),
        axisLabels(rows.names, "beside"),
        buttons.slice(layer * count, (layer + 1) * count),
      ),
    );
    return figure({
      key: "attention.all",
      chart: stack(
        note(t("attention.axes", { rows: rows.title, columns: columns.title })),
        roving(
          h("div", { class: "heads", role: "group", "aria-label": t("attention.all") }, lines),
          buttons,
        ),
        legend(0, 1, t("attention.weight")),
      ),
      table: () => [
        [t("attention.layer"), ...range(count).map((head) => `${t("attention.head")} ${head}`)],
        range(layers).map((layer) => [layer, ...entropy.slice(layer * count, (layer + 1) * count)]),
      ],
    });
  }
}
