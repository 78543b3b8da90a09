/* The blocks of the picture of the whole model, and the steps of the computation that they show. */

import { colourStrip } from "./colours.js";
import { facts, note } from "./elements.js";
import { bars } from "./figure.js";
import { headSteps, largestOf } from "./headsteps.js";
import { range, unpack } from "./numbers.js";
import { canCompute } from "./source.js";
import { isolate, n, pieceText, t } from "./strings.js";
import { availableViews } from "./tabs.js";
import { attentionOfKind, weightsOf } from "./weights.js";

/* The parts of an attention block: name, share of its width, stage of the view of a head. */
export const ATTENTION_CELLS = /** @type {const} */ ([
  ["qkv", 24, 0],
  ["scores", 24, 0],
  ["softmax", 32, 2],
  ["output", 20, 3],
]);

/** Shorten a text for a block; `fromEnd` keeps its end.
    @type {(text: string, fromEnd?: boolean) => string} */
export function shortened(text, fromEnd) {
  const longest = innerWidth < 700 ? 16 : 32;
  return isolate(
    text.length <= longest
      ? text
      : fromEnd
        ? `… ${text.slice(2 - longest)}`
        : `${text.slice(0, longest - 2)} …`,
  );
}

/** @type {(tokens: { piece: string }[], separator?: string) => string} */
export const piecesText = (tokens, separator = " ") =>
  tokens.map(({ piece }) => pieceText(piece)).join(separator);

/** Return the largest weight of a kind of attention in the last layer, of one row or of all, to a
    token of a word other than the row's own.
    @type {(inspection: Inspection, kind: AttentionKind, keys: ShownToken[], only?: number) =>
      StrongestWeight} */
export function strongestWeight(inspection, kind, keys, only) {
  const attention = attentionOfKind(inspection, kind);
  const [layers, heads, rows] = unpack(attention.weights).shape;
  const layer = layers - 1;
  const places = range(heads).flatMap((head) =>
    (only === undefined ? range(rows) : [only]).flatMap((row) =>
      keys.map((_, column) => ({
        layer,
        head,
        row,
        column,
        weight: weightsOf(attention, layer, head)(row, column),
      })),
    ),
  );
  /** @type {(place: StrongestWeight) => boolean} */
  const isTelling = ({ row, column }) =>
    keys[column].word !== null &&
    (kind === "cross" || (row !== column && (only !== undefined || keys[row]?.word !== null)));
  const telling = places.filter(isTelling);
  return (telling.length ? telling : places).reduce((best, place) =>
    place.weight > best.weight ? place : best,
  );
}

/** Create a block of a step.
    @type {(label: string, step: number, value?: string, more?: Partial<ModelBlock>) =>
      ModelBlock} */
export const block = (label, step, value = "", more = {}) => ({
  label: label && t(`whole.${label}`),
  step,
  value,
  ...more,
});

/** Create a bar chart of the four largest weights; the one of a token is strong.
    @type {(tokens: ShownToken[], weight: (column: number) => number, strong: number) =>
      HTMLElement} */
export function topWeights(tokens, weight, strong) {
  const all = tokens.map(({ piece }, i) => ({ i, label: pieceText(piece), value: weight(i) }));
  const largest = all.sort((a, b) => b.value - a.value).slice(0, 4);
  return bars(
    largest.map(({ i, label, value }) => [label, value, n(value, 2), "", i === strong]),
    1,
  );
}

/** The steps of the computation for an inspection, in order; blocks are added with their steps. */
export class ModelBlocks {
  available = availableViews();
  /** @type {ModelStep[]} */
  steps = [];

  /** @param {Inspection} inspection */
  constructor(inspection) {
    this.inspection = inspection;
    /** The view of the text. */
    this.first = ["translate", "classify", "continue"].find((name) =>
      this.available.includes(name),
    );
  }

  /** Add a step; return its number. `door` is the state that shows more about it.
      @type {(name: string, door: Partial<PageState>, values?: { [name: string]: unknown },
        chart?: () => Child) => number} */
  step(name, door, values = {}, chart = () => "") {
    const hasView = this.available.includes(door.tab ?? "");
    return (
      this.steps.push({
        name,
        door: hasView ? door : { part: this.steps.length },
        note: t(`whole.${name}_note`, values),
        chart,
      }) - 1
    );
  }

  /** Add the blocks and steps from a text to the top of a stack of layers, with the numbers of the
      strongest attention of a head.
      @type {(kind: AttentionKind, tokens: ShownToken[], text: string, layers: number) =>
        Promise<ModelBlock[]>} */
  async detailedStack(kind, tokens, text, layers) {
    const { inspection } = this;
    const { d_model, d_ff, norm, positions } = inspection.model;
    const isDecoder = kind === "decoder";
    const only = isDecoder ? tokens.length - 1 : undefined;
    const strongest = strongestWeight(inspection, kind, tokens, only);
    const neighbours = inspection.source_neighbours ?? inspection.neighbours ?? [];
    const near = neighbours.find(({ id }) => id === tokens[strongest.row].id);
    const piece = pieceText(tokens[strongest.row].piece);
    const values = this.strongestValues(strongest, tokens);
    const reading = this.step("text", { tab: this.first });
    const cutting = this.step("pieces", { tab: "model" }, { count: tokens.length });
    const embedding = this.step(
      "embedding",
      { tab: "model", symbol: "E(w)" },
      values,
      () => near && note(t("whole.near", { piece, near: piecesText(near.near.slice(0, 3), "  ") })),
    );
    const placing = this.step("positions", { tab: "model", symbol: "PE" }, {}, () =>
      note(t(`whole.${positions}`)),
    );
    const cells = await this.headCells(kind, tokens, strongest);
    const adding = this.step(norm === "pre" ? "pre_norm" : "add_norm", {
      tab: "model",
      symbol: "residual, norm",
    });
    const sizes = { width: d_model, inner: d_ff, layers };
    const mapping = this.step("ffn", { tab: "model", symbol: "FFN" }, sizes);
    return [
      block("", reading, shortened(text)),
      block("", cutting, shortened(piecesText(tokens), isDecoder), { tokens: true }),
      block("embedding", embedding, `${tokens.length} × ${d_model}`),
      block("positions", placing),
      ...this.layers(layers, [[isDecoder ? "masked" : "self", cells[0], cells]], adding, mapping),
    ];
  }

  /** Return the values in the texts about the strongest weight.
      @type {(strongest: StrongestWeight, tokens: ShownToken[]) => { [name: string]: unknown }} */
  strongestValues({ layer, head, row, column, weight }, tokens) {
    const { d_model, num_heads } = this.inspection.model;
    return {
      piece: pieceText(tokens[row].piece),
      to: pieceText(tokens[column].piece),
      layer,
      head,
      heads: num_heads,
      width: d_model,
      weight: n(weight, 2),
      root: d_model / num_heads,
    };
  }

  /** Add the steps of the parts of an attention block, with the numbers of its strongest weight.
      @type {(kind: AttentionKind, tokens: ShownToken[], strongest: StrongestWeight) =>
        Promise<number[]>} */
  async headCells(kind, tokens, strongest) {
    const { layer, head, row, column } = strongest;
    const piece = pieceText(tokens[row].piece);
    const values = this.strongestValues(strongest, tokens);
    const weights = weightsOf(attentionOfKind(this.inspection, kind), layer, head);
    const computed = canCompute ? await headSteps(this.inspection, kind, layer, head) : null;
    const tab = this.available.includes("steps") ? "steps" : "attention";
    /** @type {(name: string, stage: number, chart: () => Child) => number} */
    const cell = (name, stage, chart) =>
      this.step(name, { tab, kind, layer, head: String(head), query: row, stage }, values, chart);
    /** @type {(names: ["queries" | "keys" | "values" | "outputs", string][]) => Child} */
    const strips = (names) =>
      computed &&
      facts(
        names.map(([name, letter]) => {
          const vector = computed.vector(name, row);
          return [`${letter} ${piece}`, colourStrip(vector, largestOf([vector]))];
        }),
        "strip-facts",
      );
    /** @type {(token: ShownToken, i: number) => Bar} */
    const scoreBar = (token, i) => {
      const score = computed?.at("scores", row, i) ?? 0;
      return [pieceText(token.piece), score, n(score, 2), "", i === column];
    };
    return [
      cell("qkv", 0, () =>
        strips([
          ["queries", "q"],
          ["keys", "k"],
          ["values", "v"],
        ]),
      ),
      cell("scores", 0, () => computed && bars(tokens.map(scoreBar))),
      cell("softmax", 2, () => topWeights(tokens, (i) => weights(row, i), column)),
      cell("output", 3, () => strips([["outputs", "o"]])),
    ];
  }

  /** Return the blocks of a stack of layers, of which one is drawn; `sublayers` are its attentions.
      @type {(layers: number, sublayers: [label: string, step: number, cells?: number[]][],
        adding: number, mapping: number) => ModelBlock[]} */
  layers(layers, sublayers, adding, mapping) {
    const { d_model, d_ff, num_heads, norm } = this.inspection.model;
    const isPre = norm === "pre";
    const isSeveral = sublayers.length > 1;
    const attentions = sublayers.map(([label, step, cells = ATTENTION_CELLS.map(() => step)]) =>
      block(label, step, `${num_heads} ×`, { cells, readsEncoder: label === "cross" }),
    );
    const all = [...attentions, block("ffn", mapping, `${d_model} → ${d_ff} → ${d_model}`)];
    const blocks = all.flatMap((sublayer, i) => {
      const label = isPre && i === all.length - 1 ? "add" : "add_norm";
      return [sublayer, block(label, isSeveral ? sublayer.step : adding, "", { thin: true })];
    });
    if (isPre) {
      blocks.unshift(block("norm", isSeveral ? sublayers[0][1] : adding, "", { thin: true }));
    }
    blocks[0].layers = layers;
    blocks[blocks.length - 1].endsLayers = true;
    return isPre ? [...blocks, block("norm", mapping, "", { thin: true })] : blocks;
  }

  /** Add the blocks and steps from logits to the next token.
      @type {(alternatives: { piece: string, probability: number }[], door: Partial<PageState>,
        chosen: string, last: Partial<PageState>) => ModelBlock[]} */
  prediction(alternatives, door, chosen, last) {
    const { d_model } = this.inspection.model;
    const shown = alternatives.map(({ piece, probability }) => ({
      label: pieceText(piece),
      probability,
    }));
    const linear = this.step("linear", door, { width: d_model });
    const softmax = this.step("probabilities", door, {}, () => probabilityBars(shown));
    const next = this.step(this.inspection.kind === "translation" ? "next" : "append", last, {
      piece: chosen,
      probability: n(alternatives[0].probability, 2),
    });
    const best = shown.map(({ label, probability }) => ({ label: isolate(label), probability }));
    return [
      block("linear", linear, `${d_model} → V`),
      block("softmax", softmax, bestTwo(best)),
      block("", next, `→ ${isolate(chosen)}`, { tokens: true }),
    ];
  }
}

/** Create a bar chart of probabilities; the first one is strong.
    @type {(items: { label: string, probability: number }[]) => HTMLElement} */
export const probabilityBars = (items) =>
  bars(
    items.map(({ label, probability }, i) => [label, probability, n(probability), "", !i]),
    1,
  );

/** Return the first two labels with their probabilities.
    @type {(items: { label: string, probability: number }[]) => string} */
export const bestTwo = (items) =>
  items
    .slice(0, 2)
    .map(({ label, probability }) => `${label} ${n(probability, 2)}`)
    .join("  ");
