/* Beam search, greedy search and generation in the WebAssembly engine, one step at a time
   (decoding/beam.py, decoding/greedy.py).

   Shapes: K beam size, W rows (1 at first, then K), V vocabulary. An output is { tokens,
   tokenScores, logProbability, score, ended }, as search/interface.py Hypothesis: ids without begin
   and end symbols, log-probabilities in nats, with that of the end symbol if the output ended. */

import { EngineError } from "./memory.js";
import { DecoderCache } from "./model.js";
import { makeRandom, pickToken } from "./sampling.js";

// tokens that an output may be longer than its source before the KV cache is enlarged
const CACHE_MARGIN = 8;

/** The error of a search that was cancelled between two steps. */
export class SearchCancelled extends Error {}

/** Translate a source of ids without begin and end symbols; return at most nBest outputs, best
    first.

    options; their defaults are those of the model:
      beamSize: 1 is greedy; nBest, lengthPenalty, maxLengthRatio, maxLengthOffset; prefix: ids that
      the output begins with; skip: how many of them are no part of the outputs; headFactors {
      encoder, decoder, cross }: L x H numbers each; 0 turns a head off; positions: false: without
      position signals; causal: false: without the causal mask; each step then recomputes every
      prefix; crossAttention: true: the best output gets crossAttention (L, H, T, S), from each of
      its tokens
        to the source with its end symbol;
      accept(output): false: the output is left out;
      onStep(record): called after every step with the fields of BeamStep (search/beam_state.py);
      pause(): awaited after every step;
      signal: if aborted, it ends the search with SearchCancelled.
    @type {(model: EngineModel, ids: number[], options?: SearchOptions) => Promise<Output[]>} */
export async function translateIds(model, ids, options = {}) {
  const encoding = model.encode([...ids, model.special.eos], options);
  let search = null;
  try {
    const Search = options.causal === false ? RecomputingSearch : BeamSearch;
    search = new Search(model, encoding, {
      ...options,
      maxLength: maxOutputLength(model, ids.length, options),
    });
    await runSteps(search, options);
    const { skip = 0, lengthPenalty = model.search.length_penalty } = options;
    const outputs = withoutFirst(search.outputs(), skip, lengthPenalty).filter(
      options.accept ?? (() => true),
    );
    if (options.crossAttention && outputs.length) {
      const tokens = [...(options.prefix ?? []).slice(0, skip), ...outputs[0].tokens];
      const inputs = [model.special.bos, ...tokens].slice(0, Math.max(1, tokens.length));
      outputs[0].crossAttention = model.targetAttention(encoding, inputs, options).cross;
    }
    return outputs;
  } finally {
    search?.close();
    encoding.release();
  }
}

/** Return outputs, best first, without their first tokens, and without the share of these in the
    scores.
    @type {(outputs: Output[], count: number, lengthPenalty: number) => Output[]} */
function withoutFirst(outputs, count, lengthPenalty) {
  if (!count) return outputs;
  const shorter = outputs.map(({ tokens, tokenScores, ended }) => ({
    ...makeOutput([], [...tokenScores].slice(count), ended, lengthPenalty),
    tokens: [...tokens].slice(count),
  }));
  return shorter.sort((a, b) => b.score - a.score);
}

/** Return the maximum length of an output in tokens, without the end symbol
    (SearchOptions.longest).
    @type {(model: EngineModel, sourceLength: number, options?: SearchOptions) => number} */
function maxOutputLength(model, sourceLength, options = {}) {
  const {
    maxLengthRatio = model.search.max_length_ratio,
    maxLengthOffset = model.search.max_length_offset,
    prefix = [],
  } = options;
  const limit = Math.trunc(maxLengthRatio * sourceLength) + maxLengthOffset;
  return Math.min(Math.max(limit, prefix.length), model.settings.max_positions - 1);
}

/** Run a search to its end; throw SearchCancelled if `signal` aborts it.
    @type {(search: BeamSearch, control: Control) => Promise<void>} */
async function runSteps(search, { pause, signal }) {
  while (search.step()) {
    if (pause) await pause();
    if (signal?.aborted) throw new SearchCancelled("the search was cancelled");
  }
}

/** The beam search of one source; `step` appends a token to every prefix. */
class BeamSearch {
  /** @type {DecoderCache} */
  cache;
  store = 0; // the addresses of the blocks of the search
  beam = 0;
  values = 0;
  tokens = 0;
  best = 0;
  beamOptions = 0;
  beams = 0;
  workspace = 0;
  logits = 0;
  capacity = 0; // of the KV cache, in tokens
  maxKeys = 0;

  /** @param {EngineModel} model
      @param {Encoding} encoding
      @param {SearchOptions & { maxLength: number }} options */
  constructor(model, encoding, options) {
    const {
      beamSize = model.search.beam_size,
      nBest = 1,
      lengthPenalty = model.search.length_penalty,
      maxLength,
      prefix = [],
    } = options;
    this.model = model;
    this.encoding = encoding;
    this.options = options;
    this.beamSize = beamSize;
    this.nBest = nBest;
    this.lengthPenalty = lengthPenalty;
    this.maxLength = maxLength;
    this.prefix = prefix;
    this.memory = model.memory;
    this.suppressed = [model.special.pad, model.special.bos];
    if (!(nBest >= 1 && nBest <= beamSize)) {
      throw new EngineError(`nBest = ${nBest} must be from 1 to beamSize = ${beamSize}.`);
    }
    if (beamSize + 1 + this.suppressed.length >= model.vocabulary) {
      throw new EngineError(`beamSize = ${beamSize} is too large for ${model.vocabulary} tokens.`);
    }
    if (prefix.length > maxLength) {
      throw new EngineError(
        `the prefix has ${prefix.length} tokens, but the longest output is ${maxLength}.`,
      );
    }
    this.scope = this.memory.scope();
    try {
      this.start();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Write the structs of the search. */
  start() {
    const { scope, model, beamSize, maxLength, prefix, encoding } = this;
    const { bos, eos } = model.special;
    const { begin_beam, skip_prefix } = model.engine.exports;
    const scores = this.prefill();
    const noPositions = this.options.positions === false;
    // the table that all steps read
    if (!noPositions) model.positions.decoder.tableFor(maxLength + 1);
    const divisors = Array.from({ length: maxLength + 2 }, (_, count) =>
      lengthDivisor(count, this.lengthPenalty),
    );
    this.beamOptions = scope.struct("BeamOptions", {
      beam_size: beamSize,
      n_best: this.nBest,
      eos,
      signal_stride: noPositions ? 0 : model.width,
      rotary_stride: noPositions ? 0 : model.headDim,
      divisors: scope.doubles(divisors),
    });
    this.beam = scope.struct("Beam", {
      max_length: maxLength,
      prefix_length: prefix.length,
      prefix: scope.ints(prefix),
      step: {
        ...this.cache.stepPositions(prefix.length),
        cache: this.store,
        memory: encoding.pointers,
        capacity: this.capacity,
        source_length: encoding.length,
        source_capacity: encoding.length,
        self_heads: { weights: 0, factors: this.cache.factors.decoder },
        cross_heads: { weights: 0, factors: this.cache.factors.cross },
      },
    });
    /** @type {(block: number) => number} */
    const begin = (block) =>
      Number(begin_beam(model.decoder, this.beamOptions, BigInt(bos), this.beam, block));
    begin(scope.allocate(begin(0)));
    skip_prefix(this.beamOptions, this.beam, scope.floats(scores));
    const perRow = beamSize + 1;
    this.values = scope.allocate(beamSize * perRow * 4);
    this.tokens = scope.allocate(beamSize * perRow * 8);
    this.best = scope.struct("BestTokens", {
      count: perRow,
      num_suppressed: this.suppressed.length,
      suppressed: scope.longs(this.suppressed),
      values: this.values,
      tokens: this.tokens,
    });
    this.beams = scope.ints([this.beam]);
    this.maxKeys = Math.max(maxLength + 1, this.encoding.length);
    this.workspace = scope.allocate(model.workspaceBytes(model.decoder, beamSize, this.maxKeys));
    this.logits = scope.allocate(4 * beamSize * model.vocabulary);
  }

  /** Fill the KV cache with the begin symbol and the prefix except its last token; return the
      log-probabilities of the prefix.
      @type {() => number[]} */
  prefill() {
    const { model, prefix, beamSize, maxLength, encoding } = this;
    this.capacity =
      prefix.length + 1 + beamSize * Math.min(maxLength, encoding.length + CACHE_MARGIN);
    this.cache = new DecoderCache(model, encoding, this.capacity, this.options);
    this.store = this.cache.store;
    if (!prefix.length) return [];
    const { logits } = this.cache.append([model.special.bos, ...prefix.slice(0, -1)], {
      allLogits: true,
    });
    const size = model.vocabulary;
    const scores = prefix.map((token, t) => {
      const row = logits.subarray(t * size, (t + 1) * size);
      return model.logProbabilities(row)[token];
    });
    this.recordPrefix(scores);
    return scores;
  }

  /** Call onStep for each token of the prefix.
      @type {(scores: number[]) => void} */
  recordPrefix(scores) {
    let total = 0;
    this.prefix.forEach((token, t) => {
      total += scores[t];
      this.options.onStep?.(prefixRecord(t, token, scores[t], total, this.beamSize));
    });
  }

  /** Append a token to every prefix; return whether the search continues. */
  step() {
    const { memory, beam } = this;
    const before = this.options.onStep && {
      rows: this.get("step.rows"),
      length: this.get("length"),
      done: memory.doubles(this.get("best_scores"), 1)[0] > -Infinity,
    };
    this.advance();
    const status = this.get("status");
    if (before) this.options.onStep?.(this.record(before, status));
    if (status === memory.constant("BEAM_CACHE_FULL")) this.enlargeCache();
    return memory.get("Beam", beam, "status") !== memory.constant("BEAM_ENDED");
  }

  /** Compute the best next tokens of all rows, and extend the beam with them. */
  advance() {
    const { model } = this;
    model.engine.call(
      "beam_steps",
      model.failure,
      model.decoder,
      this.beamOptions,
      this.beams,
      1n,
      BigInt(this.maxKeys),
      this.workspace,
      this.logits,
      this.best,
      1,
    );
  }

  /** Read a field of the struct Beam.
      @type {(path: string) => number} */
  get(path) {
    return this.memory.get("Beam", this.beam, path);
  }

  /** Copy the KV cache to one with capacity for twice the current length. */
  enlargeCache() {
    const { model, scope } = this;
    /** @type {(cache: number) => number} */
    const enlarge = (cache) =>
      Number(model.engine.exports.enlarge_cache(model.decoder, this.beamOptions, this.beam, cache));
    const store = scope.allocate(4 * enlarge(0));
    enlarge(store);
    this.cache.scope.release(this.store); // the first cache
    scope.release(this.store); // a later one
    this.store = store;
  }

  /** Return the outputs of a search that has ended, best first; of equal ones the earlier is first.
      @type {() => Output[]} */
  outputs() {
    const { memory } = this;
    return Array.from({ length: this.get("num_outputs") }, (_, rank) => {
      const output = this.get("outputs") + rank * memory.sizeOf("Output");
      /** @type {(name: string) => number} */
      const read = (name) => memory.get("Output", output, name);
      const first = 4 * rank * (this.maxLength + 1);
      const length = read("length");
      return {
        tokens: [...memory.ints(this.get("tokens") + first, length)],
        tokenScores: [...memory.floats(this.get("token_scores") + first, length + read("ended"))],
        logProbability: read("total"),
        score: read("score"),
        ended: read("ended") !== 0,
      };
    });
  }

  /** Return a record of a step (BeamStep in search/beam_state.py, of one sentence) from the state
      before it and the status after it.
      @type {(before: { rows: number, length: number, done: boolean }, status: number) =>
        StepRecord} */
  record({ rows, length, done }, status) {
    const { memory, beamSize } = this;
    const { eos } = this.model.special;
    const perRow = beamSize + 1;
    const count = Math.min(rows * perRow, 2 * beamSize);
    const candidates = Array.from({ length: count }, (_, rank) => {
      const candidate = this.get("candidates") + rank * memory.sizeOf("Candidate");
      /** @type {(name: string) => number} */
      const read = (name) => memory.get("Candidate", candidate, name);
      return {
        parent: read("row"),
        token: read("token"),
        value: read("log_prob"),
        total: read("total"),
      };
    });
    /** @type {<T>(array: Iterable<T>) => T[]} */
    const likeliest = (array) => [...array].filter((_, i) => i % perRow === 0);
    const stuck = candidates[0].total === -Infinity && !done;
    const closed = stuck || this.maxLength <= length;
    const ends = candidates.map(
      ({ token, total }) => !closed && token === eos && total > -Infinity,
    );
    const kept = candidates
      .map((_, rank) => rank)
      .filter((rank) => !ends[rank])
      .slice(0, beamSize);
    return {
      length,
      candidates,
      finished: ends.map((end, rank) => end && rank < beamSize),
      kept,
      closed,
      lastTokens: likeliest(memory.longs(this.tokens, rows * perRow)).map(Number),
      lastValues: likeliest(memory.floats(this.values, rows * perRow)),
      active: status !== memory.constant("BEAM_ENDED"),
      scores: [...memory.doubles(this.get("best_scores"), beamSize)],
    };
  }

  close() {
    this.cache?.release();
    this.scope.close();
  }
}

/** The beam search without the causal mask. Each new token then changes the states of all earlier
    ones, so no KV cache can be reused: each step recomputes every prefix
    (inspection/rereading.py). */
class RecomputingSearch extends BeamSearch {
  /** As in BeamSearch; each token of the prefix is scored given only the tokens before it. */
  prefill() {
    const { model, prefix, beamSize, maxLength, encoding } = this;
    this.cache = new DecoderCache(model, encoding, maxLength + 1, this.options);
    this.store = this.cache.store;
    // the tokens of all steps, none of which are stored
    this.capacity = prefix.length + 1 + beamSize * (maxLength + 1);
    const scores = prefix.map(
      (token, t) => model.logProbabilities(this.prefixLogits(prefix.slice(0, t)))[token],
    );
    this.recordPrefix(scores);
    return scores;
  }

  advance() {
    const { model, memory, beamSize, suppressed } = this;
    const [rows, length, perRow] = [this.get("step.rows"), this.get("length"), beamSize + 1];
    const { read_prefix } = model.engine.exports;
    const prefix = this.get("tokens"); // whose memory is free until the search ends
    for (let row = 0; row < rows; row++) {
      read_prefix(this.beam, this.beamOptions, BigInt(length), BigInt(row), prefix, 0);
      const logits = this.prefixLogits([...memory.ints(prefix, length)]);
      const best = bestTokens(model.logProbabilities(logits), perRow, suppressed);
      memory.floats(this.values + 4 * row * perRow, perRow).set(best.map(({ value }) => value));
      memory
        .longs(this.tokens + 8 * row * perRow, perRow)
        .set(best.map(({ token }) => BigInt(token)));
    }
    model.engine.call(
      "extend_beam",
      model.failure,
      model.decoder,
      this.beamOptions,
      this.beam,
      this.best,
    );
  }

  /** Return the logits (V) after a prefix.
      @type {(prefix: number[]) => Float32Array} */
  prefixLogits(prefix) {
    this.cache.clear();
    return this.cache.append([this.model.special.bos, ...prefix], { causal: false }).logits;
  }
}

/** Return the record of a step in a forced prefix, with its token as the only candidate.
    @type {(length: number, token: number, value: number, total: number, beamSize: number) =>
      StepRecord} */
function prefixRecord(length, token, value, total, beamSize) {
  return {
    length,
    candidates: [{ parent: 0, token, value, total }],
    finished: [false],
    kept: [0],
    closed: false,
    lastTokens: [token],
    lastValues: [value],
    active: true,
    scores: Array(beamSize).fill(-Infinity),
  };
}

/** Return length ** lengthPenalty to the bits of Python (search/interface.py length_divisor).
    @type {(length: number, lengthPenalty: number) => number} */
export function lengthDivisor(length, lengthPenalty) {
  let power = 1;
  let root = Math.max(length, 1);
  let whole = Math.floor(lengthPenalty);
  let rest = lengthPenalty - whole;
  for (let square = root; whole > 0; square *= square) {
    if (whole % 2 === 1) power *= square;
    whole = Math.floor(whole / 2);
  }
  while (rest > 0) {
    root = Math.sqrt(root);
    rest *= 2;
    if (rest >= 1) {
      power *= root;
      rest -= 1;
    }
  }
  return power;
}

/** Make an output from its tokens and their log-probabilities, with the end symbol last if it
    ended.
    @type {(tokens: number[], tokenScores: number[], ended: boolean, lengthPenalty: number) =>
      Output} */
export function makeOutput(tokens, tokenScores, ended, lengthPenalty) {
  const logProbability = tokenScores.reduce((sum, score) => sum + score, 0);
  return {
    tokens: ended ? tokens.slice(0, -1) : tokens,
    tokenScores,
    logProbability,
    score: logProbability / lengthDivisor(tokenScores.length, lengthPenalty),
    ended,
  };
}

/** Return the likeliest tokens, [{ token, value }], the lowest id first among equals, without
    suppressed ids.
    @type {(values: ArrayLike<number>, count: number, suppressed?: Iterable<number>) => { token:
      number, value: number }[]} */
export function bestTokens(values, count, suppressed = []) {
  const excluded = new Set(suppressed);
  /** @type {{ token: number, value: number }[]} */
  const best = [];
  for (let token = 0; token < values.length; token++) {
    const value = values[token];
    if ((best.length === count && !(value > best[count - 1].value)) || excluded.has(token)) {
      continue;
    }
    let rank = best.length === count ? count - 1 : best.length;
    for (; rank > 0 && value > best[rank - 1].value; rank--) best[rank] = best[rank - 1];
    best[rank] = { token, value };
  }
  return best;
}

/** Continue a text with a language model. context: ids, at least one; if they do not fit into the
    window, the last are used.

    options: sampling { temperature, topK, topP, seed } or null (greedy), sample (the index of the
      sample), maxTokens, onToken(token, value), which may return true to end the text;
      headFactors.decoder, positions, causal, pause and signal as in translateIds.
    @type {(model: EngineModel, context: number[], options?: GenerationOptions) =>
      Promise<Output>} */
export async function generateIds(model, context, options = {}) {
  const { sampling = null, sample = 0, maxTokens = 256, onToken, pause, signal } = options;
  const { unk, pad, bos, eos } = model.special;
  const random = sampling && makeRandom(sampling.seed ?? 1, sample, context);
  const cache = new WindowCache(model, options);
  const tokens = [];
  const scores = [];
  let ended = false;
  try {
    let logits = cache.prefill(
      context.slice(context.length - contextLength(context.length, model.window)),
    );
    for (;;) {
      const values = model.logProbabilities(logits);
      const token = pickToken(values, sampling, random, [unk, pad, bos]);
      if (token < 0) break;
      ended = token === eos;
      if (!ended && tokens.length >= maxTokens) break;
      tokens.push(token);
      scores.push(values[token]);
      if (ended || onToken?.(token, values[token])) break;
      if (pause) await pause();
      if (signal?.aborted) throw new SearchCancelled("the text was cancelled");
      logits = cache.append(token);
    }
    return makeOutput(tokens, scores, ended, 1);
  } finally {
    cache.release();
  }
}

/** Return how many of the last tokens of a text of this length are its context in the window
    (held_tokens in inference/window.py).
    @type {(length: number, window: number) => number} */
export function contextLength(length, window) {
  if (length <= window) return length;
  const step = windowStep(window);
  return window - step + 1 + ((length - window - 1) % step);
}

/** @type {(window: number) => number} */
const windowStep = (window) => Math.max(1, Math.floor(window / 2));

/** The KV cache of a language model. When a text fills the window, its first half is dropped and
    the rest is recomputed. Without the causal mask, each step recomputes the text. */
class WindowCache {
  /** @param {EngineModel} model @param {EngineOptions} options */
  constructor(model, options) {
    this.model = model;
    this.options = options;
    /** @type {number[]} */
    this.tokens = [];
    this.cache = new DecoderCache(model, null, model.window, options);
  }

  /** Fill the cache with a text from position 0; return the logits (V) after it.
      @type {(tokens: number[]) => Float32Array} */
  prefill(tokens) {
    this.cache.clear();
    this.tokens = [...tokens];
    return this.cache.append(this.tokens, { causal: this.options.causal }).logits;
  }

  /** Append a token; return the logits (V) after it.
      @type {(token: number) => Float32Array} */
  append(token) {
    const { window } = this.model;
    if (this.tokens.length >= window) {
      return this.prefill([...this.tokens.slice(windowStep(window)), token]);
    }
    if (this.options.causal === false) return this.prefill([...this.tokens, token]);
    this.tokens.push(token);
    return this.cache.append([token]).logits;
  }

  release() {
    this.cache.release();
  }
}
