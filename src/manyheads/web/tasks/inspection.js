/* Inspection of a text for the views of the page: tokens, predictions, attention and neighbours, as
   in manyheads/inspection. */

import { bestTokens } from "../engine/search.js";
import { BOS, EOS, PAD } from "../text/base.js";
import { splitBlanks } from "../text/unicode.js";
import { wordIndices } from "../translation/alignment.js";
import { logSoftmax, packArray } from "./arrays.js";

const SPECIAL_IDS = [PAD, BOS, EOS];
const MAX_SHOWN_TOKENS = 256; // attention weights grow with its square
const ALTERNATIVES = 5; // likeliest other tokens of a prediction
const NEIGHBOURS = 5; // nearest tokens of an embedding

/** Return the ids of an output, with the end symbol if it ended.
    @type {(output: { tokens: number[], ended: boolean }) => number[]} */
export const withEndSymbol = ({ tokens, ended }) => (ended ? [...tokens, EOS] : [...tokens]);

/** An invalid request; the message is shown to the user. */
export class RequestError extends Error {}

/** Throw a RequestError if a text is empty or too long for the model or the views.
    @type {(tokens: number, name: string, longest: number, allowEmpty?: boolean) => void} */
export function checkLength(tokens, name, longest, allowEmpty = false) {
  const limit = Math.min(longest, MAX_SHOWN_TOKENS);
  if (tokens > limit) {
    throw new RequestError(
      `the ${name} has ${tokens} tokens; ${limit} can be looked at. Give one sentence.`,
    );
  }
  if (!tokens && !allowEmpty) throw new RequestError(`the ${name} is empty.`);
}

/** Return tokens with the indices of their words; special symbols belong to no word; `source` as in
    wholeCharacters.
    @type {(tokenizer: Tokenizer, ids: number[], source?: string) => ShownToken[]} */
export function tokensOf(tokenizer, ids, source = "") {
  const plain = ids.filter((id) => !SPECIAL_IDS.includes(id));
  const words = wordIndices(tokenizer, plain, source);
  const pieces = tokenizer.pieces(ids);
  let next = 0;
  return ids.map((id, i) => ({
    id,
    piece: pieces[i],
    word: SPECIAL_IDS.includes(id) ? null : words[next++],
  }));
}

/** Return a text with its words and its tokens, special symbols included; `source` as in
    wholeCharacters.
    @type {(tokenizer: Tokenizer, ids: number[], text: string, language: string, source?: string) =>
      ShownText} */
export function textOf(tokenizer, ids, text, language, source = "") {
  const plain = ids.filter((id) => !SPECIAL_IDS.includes(id));
  return {
    text,
    language,
    tokens: tokensOf(tokenizer, ids, source),
    words: splitBlanks(tokenizer.outputText(plain, source)),
  };
}

/** Return for each word of a text its index and the ids of the other words; the ids have no begin
    and end symbols.
    @type {(tokenizer: Tokenizer, ids: number[]) => { word: number, ids: number[] }[]} */
export function withoutEachWord(tokenizer, ids) {
  const words = tokensOf(tokenizer, ids).map((token) => token.word);
  const distinct = new Set(words.filter((word) => word !== null));
  const indices = [...distinct].sort((a, b) => a - b);
  return indices.map((index) => ({ word: index, ids: ids.filter((_, i) => words[i] !== index) }));
}

/** Return the likeliest tokens that can be generated, best first, without `excluded`.
    @type {(logProbabilities: Float64Array, tokenizer: Tokenizer, count?: number, excluded?: number)
      => Alternative[]} */
export function alternativesOf(logProbabilities, tokenizer, count = ALTERNATIVES, excluded = -1) {
  const ids = bestTokens(logProbabilities, count, [PAD, BOS, excluded])
    .filter(({ value }) => value > -Infinity)
    .map(({ token }) => token);
  const pieces = tokenizer.pieces(ids);
  return ids.map((id, i) => ({
    id,
    piece: pieces[i],
    log_probability: logProbabilities[id],
    probability: Math.exp(logProbabilities[id]),
  }));
}

/** Return the prediction of each token from the logits at its position; the first `given` tokens
    were forced.
    @type {(logits: Float32Array, ids: number[], tokenizer: Tokenizer, given: number, temperature?:
      number) => Prediction[]} */
export function predictionsOf(logits, ids, tokenizer, given, temperature = 1) {
  const size = logits.length / ids.length;
  const pieces = tokenizer.pieces(ids);
  return ids.map((id, position) => {
    const values = logSoftmax(logits.subarray(position * size, (position + 1) * size), temperature);
    const logProbability = values[id];
    let rank = 1;
    let entropy = 0;
    for (const value of values) {
      if (value > logProbability) rank += 1;
      if (value > -Infinity) entropy -= Math.exp(value) * value;
    }
    return {
      id,
      piece: pieces[position],
      log_probability: logProbability,
      probability: Math.exp(logProbability),
      rank,
      entropy,
      alternatives: alternativesOf(values, tokenizer, ALTERNATIVES, id),
      forced: position < given,
    };
  });
}

/** Return a mask (rows, columns): 1 where a row may attend to a column, else 0; with `causal`, only
    columns up to the index of the row.
    @type {(rows: number, columns: number, causal: boolean) => Float32Array} */
const maskOf = (rows, columns, causal) =>
  Float32Array.from({ length: rows * columns }, (_, i) =>
    causal && i % columns > Math.floor(i / columns) ? 0 : 1,
  );

/** Average weights (L, H, T, S) over the heads of the layer that aligns words: rows (T, S).
    @type {(model: EngineModel, weights: Float32Array, rows: number, columns: number) =>
      Float64Array[]} */
export function meanHeads({ heads, layers }, weights, rows, columns) {
  const layer = layers.decoder - 1;
  return Array.from({ length: rows }, (_, t) =>
    Float64Array.from({ length: columns }, (__, s) => {
      let sum = 0;
      for (let head = 0; head < heads; head += 1) {
        sum += weights[((layer * heads + head) * rows + t) * columns + s];
      }
      return sum / heads;
    }),
  );
}

/** Return attention weights (L, H, rows, columns) in the JSON of the views, with their mask (see
    maskOf) and the entropy of each head.
    @type {(kind: AttentionKind, weights: Float32Array, shape: number[], causal: boolean) =>
      ShownAttention} */
export function attentionOf(kind, weights, [layers, heads, rows, columns], causal) {
  const mask = maskOf(rows, columns, causal);
  const entropy = Float32Array.from({ length: layers * heads }, (_, head) => {
    let sum = 0;
    for (let i = head * rows * columns; i < (head + 1) * rows * columns; i += 1) {
      if (weights[i] > 0) sum -= weights[i] * Math.log(weights[i]);
    }
    return sum / rows;
  });
  return {
    kind,
    weights: packArray([layers, heads, rows, columns], weights),
    mask: packArray([rows, columns], mask),
    entropy: packArray([layers, heads], entropy),
  };
}

/** Return for each distinct token its nearest tokens by the cosine of the rows (V, D) of an
    embedding; special symbols are left out.
    @type {(rows: Float32Array, width: number, ids: number[], tokenizer: Tokenizer) =>
      Neighbours[]} */
export function neighboursOf(rows, width, ids, tokenizer) {
  const size = rows.length / width;
  const norms = Float32Array.from({ length: size }, (_, v) => {
    let sum = 0;
    for (let i = v * width; i < (v + 1) * width; i += 1) sum += rows[i] * rows[i];
    return Math.max(Math.sqrt(sum), 1e-12);
  });
  const distinct = new Set(ids.filter((id) => !SPECIAL_IDS.includes(id)));
  return [...distinct].map((id) => {
    const cosines = Float32Array.from({ length: size }, (_, v) => {
      let sum = 0;
      for (let i = 0; i < width; i += 1) sum += rows[id * width + i] * rows[v * width + i];
      return sum / (norms[id] * norms[v]);
    });
    const near = bestTokens(cosines, NEIGHBOURS, [...SPECIAL_IDS, id]).map(({ token }) => token);
    const pieces = tokenizer.pieces(near);
    return {
      id,
      piece: tokenizer.pieces([id])[0],
      near: near.map((other, i) => ({ id: other, piece: pieces[i], cosine: cosines[other] })),
    };
  });
}

/** Compute the intermediate values of a head, as watch_head in manyheads/tensors/capture.py;
    `source` and `target` as in EngineModel.headVectors, `engine`: options from `engineChanges`.
    @type {(model: EngineModel, name: HeadName, source: number[] | null, target: number[], engine:
      EngineOptions & { causal: boolean }) => HeadSteps} */
export function headSteps(model, { kind, layer, head }, source, target, engine) {
  const { queries, keys, values } = model.headVectors(
    { kind, layer, head },
    source,
    target,
    engine,
  );
  const { headDim } = model;
  const [rows, columns] = [queries.length / headDim, keys.length / headDim];
  const mask = maskOf(rows, columns, kind === "decoder" && engine.causal);
  const scores = new Float32Array(rows * columns);
  const weights = new Float32Array(rows * columns);
  const outputs = new Float32Array(rows * headDim);
  for (let row = 0; row < rows; row += 1) {
    const first = row * columns;
    for (let column = 0; column < columns; column += 1) {
      let sum = 0;
      for (let e = 0; e < headDim; e += 1) {
        sum += queries[row * headDim + e] * keys[column * headDim + e];
      }
      scores[first + column] = sum / Math.sqrt(headDim);
    }
    const masked = scores
      .subarray(first, first + columns)
      .map((score, column) => (mask[first + column] ? score : -Infinity));
    weights.set(logSoftmax(masked).map(Math.exp), first);
    for (let column = 0; column < columns; column += 1) {
      for (let e = 0; e < headDim; e += 1) {
        outputs[row * headDim + e] += weights[first + column] * values[column * headDim + e];
      }
    }
  }
  const [vectors, pairs] = [
    { queries, keys, values, outputs },
    { scores, mask, weights },
  ];
  return {
    kind,
    layer,
    head,
    ...Object.fromEntries(
      Object.entries(vectors).map(([name, array]) => [
        name,
        packArray([array.length / headDim, headDim], array),
      ]),
    ),
    ...Object.fromEntries(
      Object.entries(pairs).map(([name, array]) => [name, packArray([rows, columns], array)]),
    ),
  };
}

/** Return { kind, layer, head }; throw a RequestError if the model has no such head (HeadName.check
    in manyheads/inference/inspect_options.py).
    @type {(model: EngineModel, name: HeadRequest) => HeadName} */
export function checkHead({ task, layers, heads }, { kind, layer = 0, head = 0 }) {
  const kinds = /** @type {{ [task: string]: AttentionKind[] }} */ ({
    translation: ["encoder", "decoder", "cross"],
    classification: ["encoder"],
    "language-modeling": ["decoder"],
  })[task];
  if (!kinds.includes(kind)) {
    throw new RequestError(
      `this model has no attention of kind "${kind}"; it has ${kinds.join(", ")}.`,
    );
  }
  const count = layers[kind === "encoder" ? "encoder" : "decoder"];
  /** @type {(number: number, size: number) => boolean} */
  const isIndex = (number, size) => Number.isInteger(number) && number >= 0 && number < size;
  if (!isIndex(layer, count) || !isIndex(head, heads)) {
    throw new RequestError(
      `there is no head ${kind}.${layer}.${head}: ` +
        `this model has layers 0 to ${count - 1} and heads 0 to ${heads - 1}.`,
    );
  }
  return { kind, layer, head };
}

/** Return the options of the engine for changes of the model: heads turned off, no causal mask, no
    positions.
    @type {(model: EngineModel, changes?: ModelChanges) => EngineOptions & { causal: boolean }} */
export function engineChanges(model, { heads = [], mask = true, positions = true } = {}) {
  /** @type {{ [kind: string]: Float32Array }} */
  const headFactors = {};
  for (const name of heads) {
    const [given, ...numbers] = name.split(".");
    const { kind, layer, head } = checkHead(model, {
      kind: /** @type {AttentionKind} */ (given),
      layer: Number(numbers[0]),
      head: Number(numbers[1]),
    });
    headFactors[kind] ??= new Float32Array(
      model.layers[kind === "encoder" ? "encoder" : "decoder"] * model.heads,
    ).fill(1);
    headFactors[kind][layer * model.heads + head] = 0;
  }
  if (!mask && !model.layers.decoder) {
    throw new RequestError(
      "this model has no causal mask: each of its tokens attends to all others.",
    );
  }
  return { ...(heads.length && { headFactors }), positions, causal: mask };
}
