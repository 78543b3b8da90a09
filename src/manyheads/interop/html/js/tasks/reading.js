/* What the views of the page show of a text: its tokens, predictions, attention and neighbours: as manyheads/tasks/inspecting. */

import { bestTokens } from "../engine/search.js";
import { BOS, EOS, PAD } from "../text/base.js";
import { splitBlanks } from "../text/unicode.js";
import { wordNumbers } from "../text/words.js";
import { logSoftmax, packArray } from "./arrays.js";

const MARKS = [PAD, BOS, EOS];
const MOST_SHOWN_TOKENS = 256; // the size of the attention weights grows with its square
const RIVALS = 5;
const NEIGHBOURS = 5;

/** A wish that cannot be fulfilled, in words for the reader. */
export class RequestError extends Error {}

/** Refuse a text that the model or the views cannot take. */
export function checkLength(tokens, what, most, mayBeEmpty = false) {
  const limit = Math.min(most, MOST_SHOWN_TOKENS);
  if (tokens > limit) throw new RequestError(`the ${what} has ${tokens} tokens; ${limit} can be looked at. Give one sentence.`);
  if (!tokens && !mayBeEmpty) throw new RequestError(`the ${what} is empty.`);
}

/** Tokens with the numbers of their words; marks belong to no word. */
export function tokensOf(tokenizer, ids) {
  const plain = ids.filter((id) => !MARKS.includes(id));
  const words = wordNumbers(tokenizer, plain);
  const pieces = tokenizer.pieces(ids);
  let next = 0;
  return ids.map((id, i) => ({ id, piece: pieces[i], word: MARKS.includes(id) ? null : words[next++] }));
}

/** A text with its tokens, marks included. */
export function textOf(tokenizer, ids, text, language) {
  const plain = ids.filter((id) => !MARKS.includes(id));
  return { text, language, tokens: tokensOf(tokenizer, ids), words: splitBlanks(tokenizer.decode(plain)) };
}

/** For each word of a text without marks: its number, and the ids of the other words. */
export function withoutEachWord(tokenizer, ids) {
  const words = tokensOf(tokenizer, ids).map((token) => token.word);
  const numbers = [...new Set(words.filter((word) => word !== null))].sort((a, b) => a - b);
  return numbers.map((number) => ({ word: number, ids: ids.filter((_, i) => words[i] !== number) }));
}

/** The likeliest tokens that can be generated, best first. */
export function rivalsOf(logProbabilities, tokenizer, count = RIVALS, own = -1) {
  const ids = bestTokens(logProbabilities, count, [PAD, BOS, own]).filter(({ value }) => value > -Infinity).map(({ token }) => token);
  const pieces = tokenizer.pieces(ids);
  return ids.map((id, i) => ({ id, piece: pieces[i], log_probability: logProbabilities[id], probability: Math.exp(logProbabilities[id]) }));
}

/** The prediction of each token from the logits at its position; the first `given` were forced. */
export function predictionsOf(logits, ids, tokenizer, given, temperature = 1) {
  const size = logits.length / ids.length;
  const pieces = tokenizer.pieces(ids);
  return ids.map((id, position) => {
    const values = logSoftmax(logits.subarray(position * size, (position + 1) * size), temperature);
    const own = values[id];
    let rank = 1, entropy = 0;
    for (const value of values) {
      if (value > own) rank += 1;
      if (value > -Infinity) entropy -= Math.exp(value) * value;
    }
    return { id, piece: pieces[position], log_probability: own, probability: Math.exp(own), rank, entropy, rivals: rivalsOf(values, tokenizer, RIVALS, id), forced: position < given };
  });
}

/** Attention weights (L, H, rows, columns) as the views read them; with `causal`, a row attends to the columns up to it. */
export function attentionOf(kind, weights, [layers, heads, rows, columns], causal) {
  const mask = Float32Array.from({ length: rows * columns }, (_, i) => (causal && i % columns > Math.floor(i / columns) ? 0 : 1));
  const entropy = Float32Array.from({ length: layers * heads }, (_, head) => {
    let sum = 0;
    for (let i = head * rows * columns; i < (head + 1) * rows * columns; i += 1) if (weights[i] > 0) sum -= weights[i] * Math.log(weights[i]);
    return sum / rows;
  });
  return { kind, weights: packArray([layers, heads, rows, columns], weights), mask: packArray([rows, columns], mask), entropy: packArray([layers, heads], entropy) };
}

/** For each different token but marks, the nearest tokens by the cosine of the rows (V, D) of an embedding. */
export function neighboursOf(rows, width, ids, tokenizer) {
  const size = rows.length / width;
  const norms = Float32Array.from({ length: size }, (_, v) => {
    let sum = 0;
    for (let i = v * width; i < (v + 1) * width; i += 1) sum += rows[i] * rows[i];
    return Math.max(Math.sqrt(sum), 1e-12);
  });
  return [...new Set(ids.filter((id) => !MARKS.includes(id)))].map((id) => {
    const cosines = Float32Array.from({ length: size }, (_, v) => {
      let sum = 0;
      for (let i = 0; i < width; i += 1) sum += rows[id * width + i] * rows[v * width + i];
      return sum / (norms[id] * norms[v]);
    });
    const near = bestTokens(cosines, NEIGHBOURS, [...MARKS, id]).map(({ token }) => token);
    const pieces = tokenizer.pieces(near);
    return { id, piece: tokenizer.pieces([id])[0], near: near.map((other, i) => ({ id: other, piece: pieces[i], cosine: cosines[other] })) };
  });
}

/** The options of the engine for what is changed about the model: heads off, positions, the causal mask. */
export function engineChanges(model, { heads = [], mask = true, positions = true } = {}) {
  const headFactors = {};
  for (const name of heads) {
    const [kind, layer, head] = name.split(".");
    const layers = model.layers[kind === "encoder" ? "encoder" : "decoder"];
    const known = kind === "encoder" ? model.layers.encoder : kind === "decoder" || (kind === "cross" && model.layers.encoder) ? model.layers.decoder : 0;
    if (!(Number(layer) < known && Number(head) < model.heads)) throw new RequestError(`there is no head ${name}.`);
    headFactors[kind] ??= new Float32Array(layers * model.heads).fill(1);
    headFactors[kind][Number(layer) * model.heads + Number(head)] = 0;
  }
  return { ...(heads.length && { headFactors }), positions, causal: mask };
}
