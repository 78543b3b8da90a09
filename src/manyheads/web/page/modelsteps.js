/* What each part of the model computes for the text, step by step. */

import { colourStrip } from "./colours.js";
import { facts, note } from "./elements.js";
import { bars } from "./figure.js";
import { headSteps, largestOf } from "./headsteps.js";
import { clamp, range, unpack } from "./numbers.js";
import { canCompute } from "./source.js";
import { state } from "./state.js";
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
function shortened(text, fromEnd) {
  const longest = innerWidth < 700 ? 16 : 32;
  return isolate(
    text.length <= longest
      ? text
      : fromEnd
        ? `… ${text.slice(2 - longest)}`
        : `${text.slice(0, longest - 2)} …`,
  );
}

/** @type {(tokens: { piece: string }[]) => string} */
const piecesText = (tokens) => tokens.map(({ piece }) => pieceText(piece)).join(" ");

/** Return the largest weight of a kind of attention in the last layer, of one row or of all, to a
    token of a word other than the row's own.
    @type {(inspection: Inspection, kind: AttentionKind, keys: ShownToken[], only?: number) =>
      StrongestWeight} */
function strongestWeight(inspection, kind, keys, only) {
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

/** Return the steps of the computation, in order, and the columns of blocks, each from the bottom
    to the top; a block belongs to a step.
    @type {(inspection: Inspection) => Promise<{ steps: ModelStep[], columns: ModelBlock[][] }>} */
export async function modelSteps(inspection) {
  const {
    kind: task,
    model: { d_model, d_ff, num_heads, num_encoder_layers, num_decoder_layers, norm, positions },
    text,
    inputs,
    source,
    target,
    predictions,
  } = inspection;
  const at = task === "translation" ? clamp(state.at, predictions.length - 1) : 0;
  const prediction = predictions?.[at];
  const available = availableViews();
  const first = ["translate", "classify", "continue"].find((name) => available.includes(name));
  /** @type {ModelStep[]} */
  const steps = [];
  /** @type {(name: string, door: Partial<PageState>, values?: { [name: string]: unknown }, chart?:
        () => Child) => number} */
  const step = (name, door, values = {}, chart = () => "") =>
    steps.push({
      name,
      door: available.includes(door.tab ?? "") ? door : { part: steps.length },
      note: t(`whole.${name}_note`, values),
      chart,
    }) - 1;
  /** @type {(label: string, step: number, value?: string, more?: Partial<ModelBlock>) =>
        ModelBlock} */
  const block = (label, number, value = "", more = {}) => ({
    label: label && t(`whole.${label}`),
    step: number,
    value,
    ...more,
  });
  /** @type {(tokens: { piece: string }[], weight: (column: number) => number, to: number) =>
        HTMLElement} */
  const topWeights = (tokens, weight, to) =>
    bars(
      tokens
        .map((token, i) => ({ i, label: pieceText(token.piece), value: weight(i) }))
        .sort((a, b) => b.value - a.value)
        .slice(0, 4)
        .map(({ i, label, value }) => [label, value, n(value, 2), "", i === to]),
      1,
    );

  /** Add the blocks and steps from a text to the top of a stack of layers, with the numbers of the
      strongest attention of a head.
      @type {(kind: AttentionKind, tokens: ShownToken[], text: string, layers: number) =>
        Promise<ModelBlock[]>} */
  async function detailedStack(kind, tokens, text, layers) {
    const strongest = strongestWeight(
      inspection,
      kind,
      tokens,
      kind === "decoder" ? tokens.length - 1 : undefined,
    );
    const { layer, head, row, column, weight } = strongest;
    const [piece, to] = [row, column].map((i) => pieceText(tokens[i].piece));
    const values = {
      piece,
      to,
      layer,
      head,
      heads: num_heads,
      width: d_model,
      weight: n(weight, 2),
      root: d_model / num_heads,
    };
    const near = (inspection.source_neighbours ?? inspection.neighbours ?? []).find(
      ({ id }) => id === tokens[row].id,
    );
    const computed = canCompute ? await headSteps(inspection, kind, layer, head) : null;
    /** @type {(names: ["queries" | "keys" | "values" | "outputs", string][]) => Child} */
    const strips = (names) =>
      computed &&
      facts(
        names.map(([name, letter]) => [
          letter,
          colourStrip(computed.vector(name, row), largestOf([computed.vector(name, row)])),
        ]),
        "strip-facts",
      );
    /** @type {(stage: number) => Partial<PageState>} */
    const inHead = (stage) => ({
      tab: available.includes("steps") ? "steps" : "attention",
      kind,
      layer,
      head: String(head),
      query: row,
      stage,
    });
    const weights = weightsOf(attentionOfKind(inspection, kind), layer, head);
    const reading = step("text", { tab: first });
    const cutting = step("pieces", { tab: "model" }, { count: tokens.length });
    const embedding = step(
      "embedding",
      { tab: "model", symbol: "E(w)" },
      values,
      () =>
        near &&
        note(
          t("whole.near", {
            piece,
            near: near.near
              .slice(0, 3)
              .map((other) => pieceText(other.piece))
              .join("  "),
          }),
        ),
    );
    const placing = step("positions", { tab: "model", symbol: "PE" }, {}, () =>
      note(t(`whole.${positions}`)),
    );
    const cells = [
      step("qkv", inHead(0), values, () =>
        strips([
          ["queries", `q ${piece}`],
          ["keys", `k ${piece}`],
          ["values", `v ${piece}`],
        ]),
      ),
      step(
        "scores",
        inHead(0),
        values,
        () =>
          computed &&
          bars(
            tokens.map((token, i) => [
              pieceText(token.piece),
              computed.at("scores", row, i),
              n(computed.at("scores", row, i), 2),
              "",
              i === column,
            ]),
          ),
      ),
      step("softmax", inHead(2), values, () => topWeights(tokens, (i) => weights(row, i), column)),
      step("output", inHead(3), values, () => strips([["outputs", `o ${piece}`]])),
    ];
    const adding = step(norm === "pre" ? "pre_norm" : "add_norm", {
      tab: "model",
      symbol: "residual, norm",
    });
    const mapping = step(
      "ffn",
      { tab: "model", symbol: "FFN" },
      { width: d_model, inner: d_ff, layers },
    );
    const blocks = [
      block("", reading, shortened(text)),
      block("", cutting, shortened(piecesText(tokens), kind === "decoder"), { tokens: true }),
      block("embedding", embedding, `${tokens.length} × ${d_model}`),
      block("positions", placing),
    ];
    return [
      ...blocks,
      ...layerBlocks(
        layers,
        [[kind === "decoder" ? "masked" : "self", cells[0], cells]],
        adding,
        mapping,
      ),
    ];
  }

  /** Return the blocks of a stack of layers, of which one is drawn; `sublayers` are its attentions.
      @type {(layers: number, sublayers: [label: string, step: number, cells?: number[]][], adding:
        number, mapping: number) => ModelBlock[]} */
  function layerBlocks(layers, sublayers, adding, mapping) {
    const isPre = norm === "pre";
    const attentions = sublayers.map(([label, number, cells]) =>
      block(label, number, `${num_heads} ×`, {
        cells: cells ?? ATTENTION_CELLS.map(() => number),
        readsEncoder: label === "cross",
      }),
    );
    const blocks = [
      ...attentions,
      block("ffn", mapping, `${d_model} → ${d_ff} → ${d_model}`),
    ].flatMap((sublayer, i, all) => [
      sublayer,
      block(
        isPre && i === all.length - 1 ? "add" : "add_norm",
        sublayers.length > 1 ? sublayer.step : adding,
        "",
        { thin: true },
      ),
    ]);
    if (isPre) {
      blocks.unshift(
        block("norm", sublayers.length > 1 ? sublayers[0][1] : adding, "", { thin: true }),
      );
    }
    blocks[0].layers = layers;
    blocks[blocks.length - 1].endsLayers = true;
    return isPre ? [...blocks, block("norm", mapping, "", { thin: true })] : blocks;
  }

  /** Add the blocks and steps from logits to the next token.
      @type {(alternatives: { piece: string, probability: number }[], door: Partial<PageState>,
        chosen: string, last: Partial<PageState>) => ModelBlock[]} */
  function predictionBlocks(alternatives, door, chosen, last) {
    const linear = step("linear", door, { width: d_model });
    const softmax = step("probabilities", door, {}, () =>
      bars(
        alternatives.map(({ piece, probability }, i) => [
          pieceText(piece),
          probability,
          n(probability),
          "",
          !i,
        ]),
        1,
      ),
    );
    const next = step(task === "translation" ? "next" : "append", last, {
      piece: chosen,
      probability: n(alternatives[0].probability, 2),
    });
    return [
      block("linear", linear, `${d_model} → V`),
      block(
        "softmax",
        softmax,
        alternatives
          .slice(0, 2)
          .map(({ piece, probability }) => `${isolate(pieceText(piece))} ${n(probability, 2)}`)
          .join("  "),
      ),
      block("", next, `→ ${isolate(chosen)}`, { tokens: true }),
    ];
  }

  if (task === "classification") {
    const blocks = await detailedStack("encoder", text.tokens, text.text, num_encoder_layers);
    const classes = [...inspection.classes].sort((a, b) => b.probability - a.probability);
    const pool = step(`pool_${inspection.pooling}`, { tab: first });
    const softmax = step("label", { tab: first }, { label: inspection.label }, () =>
      bars(
        classes.map(({ label, probability }, i) => [label, probability, n(probability), "", !i]),
        1,
      ),
    );
    return {
      steps,
      columns: [
        [
          ...blocks,
          block("pool", pool),
          block(
            "softmax",
            softmax,
            classes
              .slice(0, 2)
              .map(({ label, probability }) => `${label} ${n(probability, 2)}`)
              .join("  "),
          ),
          block("", softmax, `→ ${inspection.label}`, { tokens: true }),
        ],
      ],
    };
  }
  if (task === "language-modeling") {
    const read = [...inputs, ...text.tokens.slice(-1)];
    const blocks = await detailedStack("decoder", read, text.text, num_decoder_layers);
    return {
      steps,
      columns: [
        [
          ...blocks,
          ...predictionBlocks(
            inspection.next,
            { tab: first },
            pieceText(inspection.next[0].piece),
            { tab: first },
          ),
        ],
      ],
    };
  }
  const encoder = await detailedStack("encoder", source.tokens, source.text, num_encoder_layers);
  const read = inputs.slice(0, at + 1);
  const [self, cross] = [
    strongestWeight(inspection, "decoder", read, at),
    strongestWeight(inspection, "cross", source.tokens, at),
  ];
  /** @type {(kind: AttentionKind, place: StrongestWeight) => Partial<PageState>} */
  const inAttention = (kind, { layer, head }) => ({
    tab: "attention",
    kind,
    layer,
    head: String(head),
  });
  /** @type {(kind: AttentionKind, place: StrongestWeight, keys: ShownToken[]) => [{ [name: string]:
        unknown }, () => Child]} */
  const looking = (kind, { layer, head, row, column, weight }, keys) => [
    {
      layer,
      head,
      to: pieceText(keys[column].piece),
      weight: n(weight, 2),
      before: pieceText(read[at].piece),
    },
    () =>
      topWeights(
        keys,
        (i) => weightsOf(attentionOfKind(inspection, kind), layer, head)(row, i),
        column,
      ),
  ];
  const reading = step(
    "read",
    { tab: "words" },
    { place: at + 1, count: target.tokens.length, pieces: piecesText(read) },
  );
  const selfStep = step("masked", inAttention("decoder", self), ...looking("decoder", self, read));
  const crossStep = step(
    "cross",
    inAttention("cross", cross),
    ...looking("cross", cross, source.tokens),
  );
  const mapping = step(
    "decoder_ffn",
    { tab: "model", symbol: "FFN" },
    { layers: num_decoder_layers },
  );
  const decoder = [
    block("", reading, shortened(piecesText(read), true), { tokens: true }),
    block("embedding", reading, `${read.length} × ${d_model}`),
    block("positions", reading),
    ...layerBlocks(
      num_decoder_layers,
      [
        ["masked", selfStep],
        ["cross", crossStep],
      ],
      mapping,
      mapping,
    ),
    ...predictionBlocks(
      [prediction, ...prediction.alternatives].sort((a, b) => b.probability - a.probability),
      { tab: "words", at },
      pieceText(prediction.piece),
      { tab: inspection.beam ? "beam" : "words" },
    ),
  ];
  return { steps, columns: [encoder, decoder] };
}
