/* What each part of the model computes for the text, step by step. */

import {
  bestTwo,
  block,
  ModelBlocks,
  piecesText,
  probabilityBars,
  shortened,
  strongestWeight,
  topWeights,
} from "./modelblocks.js";
import { clamp } from "./numbers.js";
import { state } from "./state.js";
import { n, pieceText } from "./strings.js";
import { attentionOfKind, weightsOf } from "./weights.js";

/** Return the steps of the computation, in order, and the columns of blocks, each from the bottom
    to the top; a block belongs to a step.
    @type {(inspection: Inspection) => Promise<{ steps: ModelStep[], columns: ModelBlock[][] }>} */
export async function modelSteps(inspection) {
  const blocks = new ModelBlocks(inspection);
  const { steps } = blocks;
  if (inspection.kind === "classification") {
    return { steps, columns: [await classifierColumn(blocks)] };
  }
  if (inspection.kind === "language-modeling") {
    return { steps, columns: [await languageModelColumn(blocks)] };
  }
  return { steps, columns: [await encoderColumn(blocks), decoderColumn(blocks)] };
}

/** @type {(blocks: ModelBlocks) => Promise<ModelBlock[]>} */
async function classifierColumn(blocks) {
  const { text, model, label, classes, pooling } = blocks.inspection;
  const layers = model.num_encoder_layers;
  const stack = await blocks.detailedStack("encoder", text.tokens, text.text, layers);
  const sorted = [...classes].sort((a, b) => b.probability - a.probability);
  const door = { tab: blocks.first };
  const pool = blocks.step(`pool_${pooling}`, door);
  const softmax = blocks.step("label", door, { label }, () => probabilityBars(sorted));
  return [
    ...stack,
    block("pool", pool),
    block("softmax", softmax, bestTwo(sorted)),
    block("", softmax, `→ ${label}`, { tokens: true }),
  ];
}

/** @type {(blocks: ModelBlocks) => Promise<ModelBlock[]>} */
async function languageModelColumn(blocks) {
  const { text, model, inputs, next } = blocks.inspection;
  const read = [...inputs, ...text.tokens.slice(-1)];
  const layers = model.num_decoder_layers;
  const stack = await blocks.detailedStack("decoder", read, text.text, layers);
  const door = { tab: blocks.first };
  return [...stack, ...blocks.prediction(next, door, pieceText(next[0].piece), door)];
}

/** @type {(blocks: ModelBlocks) => Promise<ModelBlock[]>} */
async function encoderColumn(blocks) {
  const { source, model } = blocks.inspection;
  return blocks.detailedStack("encoder", source.tokens, source.text, model.num_encoder_layers);
}

/** Return the column of the decoder of a translator, at the selected token.
    @type {(blocks: ModelBlocks) => ModelBlock[]} */
function decoderColumn(blocks) {
  const { inspection } = blocks;
  const { model, inputs, target, predictions, beam } = inspection;
  const layers = model.num_decoder_layers;
  const at = clamp(state.at, predictions.length - 1);
  const prediction = predictions[at];
  const alternatives = [prediction, ...prediction.alternatives];
  alternatives.sort((a, b) => b.probability - a.probability);
  const read = inputs.slice(0, at + 1);
  const place = { place: at + 1, count: target.tokens.length, pieces: piecesText(read) };
  const reading = blocks.step("read", { tab: "words" }, place);
  const self = attentionStep(blocks, "masked", "decoder", read, at);
  const cross = attentionStep(blocks, "cross", "cross", inspection.source.tokens, at);
  const mapping = blocks.step("decoder_ffn", { tab: "model", symbol: "FFN" }, { layers });
  /** @type {[label: string, step: number][]} */
  const sublayers = [
    ["masked", self],
    ["cross", cross],
  ];
  return [
    block("", reading, shortened(piecesText(read), true), { tokens: true }),
    block("embedding", reading, `${read.length} × ${model.d_model}`),
    block("positions", reading),
    ...blocks.layers(layers, sublayers, mapping, mapping),
    ...blocks.prediction(alternatives, { tab: "words", at }, pieceText(prediction.piece), {
      tab: beam ? "beam" : "words",
    }),
  ];
}

/** Add the step of an attention of the decoder, with its strongest weight at the selected token.
    @type {(blocks: ModelBlocks, name: string, kind: AttentionKind, keys: ShownToken[],
      at: number) => number} */
function attentionStep(blocks, name, kind, keys, at) {
  const { inspection } = blocks;
  const { layer, head, row, column, weight } = strongestWeight(inspection, kind, keys, at);
  const door = { tab: "attention", kind, layer, head: String(head) };
  const values = {
    layer,
    head,
    to: pieceText(keys[column].piece),
    weight: n(weight, 2),
    before: pieceText(inspection.inputs[at].piece),
  };
  const weights = weightsOf(attentionOfKind(inspection, kind), layer, head);
  return blocks.step(name, door, values, () => topWeights(keys, (i) => weights(row, i), column));
}
