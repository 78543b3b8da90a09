/* A model in the WebAssembly engine: its weights in memory, encoding of a text, and decoding steps.

   Shapes: S source length, T target length, L layers, H heads, E head dimension, D model width, V vocabulary, C capacity of a KV cache.
   All ids are given with their begin and end marks, as the model reads them. */

import { checkHeader } from "./header.js";
import { EngineError, EngineMemory } from "./memory.js";
import { PositionTables } from "./positions.js";

const STEPS_A_CALL = 32; // tokens that are read together; their logits (32, V) are kept at the same time
const NOT_NUMBERS = "the model gave values that are not numbers (NaN): its weights are damaged.";

/** An instance of the engine from the bytes of engine.wasm. */
export async function createEngine(wasmBytes) {
  if (typeof WebAssembly === "undefined") throw new EngineError("this browser has no WebAssembly.");
  let module;
  try {
    module = await WebAssembly.compile(wasmBytes);
  } catch (error) {
    throw new EngineError(`this browser cannot run WebAssembly with SIMD (${error.message}). Use a newer browser.`);
  }
  return new Engine((await WebAssembly.instantiate(module, {})).exports);
}

/** The functions of the module, and its memory. */
class Engine {
  constructor(exports) {
    this.exports = exports;
    this.memory = new EngineMemory(exports);
    this.panelWidth = Number(exports.panel_width());
  }

  /** Load a model. `readTensors(write)` calls write(offset, bytes) for all parts of the block of tensors, in any order. */
  async loadModel(header, readTensors) {
    checkHeader(header, this.panelWidth);
    const scope = this.memory.scope();
    try {
      const block = scope.allocate(header.bytes);
      let written = 0;
      await readTensors((offset, bytes) => {
        if (!(offset >= 0 && offset + bytes.length <= header.bytes)) throw new EngineError("the tensors of the model are longer than its header says.");
        this.memory.bytes(block + offset, bytes.length).set(bytes);
        written += bytes.length;
      });
      if (written !== header.bytes) throw new EngineError(`the tensors of the model have ${written} bytes instead of ${header.bytes}.`);
      return new EngineModel(this, header, scope, block);
    } catch (error) {
      scope.close();
      throw error;
    }
  }

  /** Call a function that may refuse its arguments; returns its result, which is not -1. `failure`: the address of a struct Failure, the last argument. */
  call(name, failure, ...args) {
    const result = Number(this.exports[name](...args, failure));
    if (result === -2) throw new EngineError(NOT_NUMBERS);
    if (result !== -1) return result;
    const [value, low, high] = ["value", "low", "high"].map((field) => this.memory.get("Failure", failure, field));
    const quantity = this.memory.text(this.memory.get("Failure", failure, "quantity"));
    throw new EngineError(`the engine was given ${quantity} ${value}; the range is ${low}..${high}.`);
  }
}

/** A loaded model.

   task, settings, search, special: of the header; layers: number of encoder and decoder layers; heads: H; vocabulary: V of the output. */
class EngineModel {
  constructor(engine, header, scope, block) {
    const { memory } = engine;
    Object.assign(this, { engine, memory, header, scope, block });
    Object.assign(this, { task: header.task, settings: header.model, search: header.search, special: header.special_ids, window: header.window });
    this.width = header.model.d_model;
    this.heads = header.model.num_heads;
    this.headDim = this.width / this.heads;
    this.format = header.precision === "int8" ? 2 : 0; // as in linear.h
    this.layers = { encoder: header.encoder?.num_layers ?? 0, decoder: header.decoder?.num_layers ?? 0 };
    this.vocabulary = header.decoder?.output.outputs ?? 0;
    this.expanded = new Map(); // index of an embedding's tensor -> address of its rows
    this.encoder = header.encoder && this.writeModel(header.encoder);
    this.decoder = header.decoder && this.writeModel(header.decoder);
    this.memoryKv = header.memory_kv && scope.structs("Linear", header.memory_kv.map((linear) => this.pointers(linear)));
    this.head = header.head && Object.fromEntries(Object.entries(header.head).map(([name, linear]) => [name, scope.struct("Linear", this.pointers(linear))]));
    this.positions = Object.fromEntries(Object.entries(header.positions).map(([kind, { learned, types }]) => (
      [kind, new PositionTables(scope, header.model, this.tensorFloats(learned), this.tensorFloats(types))])));
    this.failure = scope.struct("Failure", {});
  }

  /** Free the memory of the model. */
  close() {
    this.scope.close();
  }

  address(tensor) {
    return tensor === null ? 0 : this.block + this.header.tensors[tensor].offset;
  }

  tensorFloats(tensor) {
    if (tensor === null) return null;
    const count = this.header.tensors[tensor].shape.reduce((product, size) => product * size, 1);
    return this.memory.floats(this.address(tensor), count).slice();
  }

  /** A struct of the header with addresses in place of tensors. */
  pointers(struct) {
    if (!struct) return null;
    return Object.fromEntries(Object.entries(struct).map(([name, value]) => {
      if (["weight", "scale", "bias"].includes(name)) return [name, this.address(value)];
      return [name, value !== null && typeof value === "object" ? this.pointers(value) : value];
    }));
  }

  writeModel(struct) {
    const { layers, norms, embedding, vocabulary, ...fields } = struct;
    return this.scope.struct("Model", {
      ...this.pointers(fields),
      layers: this.scope.structs("Layer", layers.map((layer) => this.pointers(layer))),
      norms: this.scope.structs("LayerNorm", norms.map((norm) => this.pointers(norm))),
      embedding: this.expandEmbedding(embedding, vocabulary),
      vocabulary,
    });
  }

  /** The rows (V, D) of an embedding that is stored as a matrix in panels (V / P, D, P). */
  expandEmbedding(tensor, vocabulary) {
    if (this.expanded.has(tensor)) return this.expanded.get(tensor);
    const { width, memory } = this;
    const panel = this.engine.panelWidth;
    const { type, scale } = this.header.tensors[tensor];
    const start = this.scope.allocate(4 * vocabulary * width);
    const { buffer } = memory.memory;
    const packed = new (type === "int8" ? Int8Array : Float32Array)(buffer, this.address(tensor), Math.ceil(vocabulary / panel) * panel * width);
    const scales = type === "int8" ? memory.floats(this.address(scale), vocabulary) : null;
    const rows = memory.floats(start, vocabulary * width);
    for (let v = 0; v < vocabulary; v++) {
      const factor = scales ? scales[v] : 1;
      const first = Math.floor(v / panel) * panel * width + (v % panel);
      for (let i = 0; i < width; i++) rows[v * width + i] = packed[first + i * panel] * factor;
    }
    this.expanded.set(tensor, start);
    return start;
  }

  /** The rows (V, D) of the token embedding of the encoder or the decoder, as long as the memory does not grow. */
  embeddingRows(side) {
    const { embedding, vocabulary } = this.header[side];
    return this.memory.floats(this.expanded.get(embedding), vocabulary * this.width);
  }

  /** Floats of workspace for so many rows, which attend to at most so many keys. */
  workspaceBytes(model, rows, keys) {
    return 4 * Number(this.engine.exports.workspace_size(model, BigInt(rows), BigInt(keys), 1n));
  }

  /** The address of the factors of heads (L x H numbers), 0 for none. */
  headFactors(scope, factors, layers) {
    if (factors && factors.length !== layers * this.heads) throw new EngineError(`${factors.length} factors of heads were given, but there are ${layers * this.heads} heads.`);
    return factors ? scope.floats(factors) : 0;
  }

  /** Encode a text.

     ids: S ids with their marks. options: types (token types), attention (whether to return it), vectors (whether to return
     queries, keys and values (L, S, 3, H, E)), headFactors.encoder (L x H numbers), positions (false: none).
     The encoding must be released. */
  encode(ids, options = {}) {
    if (!ids.length) throw new EngineError("the text has no tokens.");
    const { memory, width, heads } = this;
    const layers = this.layers.encoder;
    const length = ids.length;
    const work = memory.scope();
    const kept = memory.scope();
    try {
      const indices = ids.map((_, i) => i);
      const positions = this.encoderPositions(work, length, options);
      const weights = options.attention ? work.allocate(4 * layers * length * heads * length) : 0;
      const vectors = options.vectors ? work.allocate(4 * layers * length * 3 * width) : 0;
      const output = this.head ? work.allocate(4 * length * width) : 0;
      const input = work.struct("EncoderInput", {
        tokens: work.longs(ids),
        sentence_ids: work.longs(indices.map(() => 0)),
        positions: work.longs(indices),
        starts: work.longs([0, length]),
        position_signals: positions.signals,
        rotary: positions.rotary,
        sentences: 1,
        max_length: length,
        heads: { weights, vectors, factors: this.headFactors(work, options.headFactors?.encoder, layers) },
        output,
      });
      const memories = this.memoryKv ? this.layers.decoder : 0;
      const arrays = Array.from({ length: 2 * memories }, () => kept.allocate(4 * length * width));
      const pointers = kept.ints(arrays);
      const workspace = work.allocate(this.workspaceBytes(this.encoder, length, length));
      this.engine.call("encode", this.failure, this.encoder, this.memoryKv ?? 0, BigInt(memories), input, pointers, workspace, 1);
      return {
        length,
        pointers,
        memories: arrays, // addresses of keys and values (H, S, E) of each decoder layer
        attention: weights ? byHead(memory.floats(weights, layers * length * heads * length), layers, length, heads, length) : null,
        vectors: vectors ? memory.floats(vectors, layers * length * 3 * width).slice() : null,
        output: output ? memory.floats(output, length * width).slice() : null,
        release: () => kept.close(),
      };
    } catch (error) {
      kept.close();
      throw error;
    } finally {
      work.close();
    }
  }

  /** The addresses of the position signals and of the rotary cosines and sines of a text, or null. */
  encoderPositions(work, length, { types = null, positions = true }) {
    const tables = this.positions.encoder;
    const table = positions ? tables.first(length) : { signals: null, rotary: null };
    if (positions && !types) return table;
    const signals = tables.ofTokens(length, types, positions);
    return { signals: signals && work.floats(signals), rotary: table.rotary };
  }

  /** The logits of the classes, and the attention (L, H, S, S) if requested; arguments as `encode`. */
  classify(ids, options = {}) {
    const encoding = this.encode(ids, options);
    encoding.release();
    const { width, settings } = this;
    const pooled = new Float32Array(width);
    if (settings.pooling === "cls") pooled.set(encoding.output.subarray(0, width));
    else {
      for (let s = 0; s < ids.length; s++) for (let i = 0; i < width; i++) pooled[i] += encoding.output[s * width + i];
      for (let i = 0; i < width; i++) pooled[i] /= ids.length;
    }
    const hidden = this.applyLinear("pooler", pooled).map(settings.pooler === "tanh" ? Math.tanh : (x) => Math.max(x, 0));
    const logits = this.applyLinear("output", hidden);
    if (logits.some(Number.isNaN)) throw new EngineError(NOT_NUMBERS);
    return { logits, attention: { encoder: encoding.attention } };
  }

  /** Apply a linear layer of the head to a vector. */
  applyLinear(name, vector) {
    const scope = this.memory.scope();
    try {
      const { outputs } = this.header.head[name];
      const result = scope.allocate(4 * outputs);
      this.engine.exports.linear_layer(this.head[name], BigInt(this.format), scope.floats(vector), 1n, result);
      return this.memory.floats(result, outputs).slice();
    } finally {
      scope.close();
    }
  }

  /** Feed a source and a target, or a text to a language model (source null), by teacher forcing.

     options: attention, headFactors {encoder, decoder, cross}, positions (false: none), causal (false: without the mask).
     Returns logits (T, V) and attention {encoder (L, H, S, S), decoder (L, H, T, T), cross (L, H, T, S)}. */
  read(source, target, options = {}) {
    const encoding = source && this.encode(source, options);
    try {
      const { logits, attention } = this.readTarget(encoding, target, { ...options, all: true });
      return { logits, attention: { ...attention, ...(encoding && { encoder: encoding.attention }) } };
    } finally {
      encoding?.release();
    }
  }

  /** The attention {decoder (L, H, T, T), cross (L, H, T, S)} of a target to an encoded source; options as those of `read`. */
  targetAttention(encoding, target, options = {}) {
    return this.readTarget(encoding, target, { ...options, attention: true, withLogits: false }).attention;
  }

  readTarget(encoding, target, options) {
    const cache = new DecoderCache(this, encoding, target.length, options);
    try {
      return cache.append(target, options);
    } finally {
      cache.release();
    }
  }

  /** What a head attends with: { queries (T, E), keys (S, E), values (S, E) }, with rotary positions after the rotation.

     kind: "encoder", "decoder" or "cross"; target is null for a classifier; other arguments as `read` and `encode`. */
  headVectors({ kind, layer, head }, source, target, options = {}) {
    const { width, headDim } = this;
    const pick = (array, first, stride, count) => {
      const result = new Float32Array(count * headDim);
      for (let i = 0; i < count; i++) result.set(array.subarray(first + i * stride, first + i * stride + headDim), i * headDim);
      return result;
    };
    const pickAll = (array, first, stride, count) => (
      Object.fromEntries(["queries", "keys", "values"].map((name, i) => [name, pick(array, first + i * width + head * headDim, stride, count)])));
    const encoding = source && this.encode(source, { ...options, vectors: kind === "encoder" });
    let cache = null;
    try {
      if (kind === "encoder") return pickAll(encoding.vectors, layer * source.length * 3 * width, 3 * width, source.length);
      cache = new DecoderCache(this, encoding, target.length, options);
      const { vectors } = cache.append(target, { causal: options.causal, vectors: kind });
      if (kind === "decoder") return pickAll(vectors, layer * 3 * width, this.layers.decoder * 3 * width, target.length);
      const size = source.length * headDim;
      const [keys, values] = encoding.memories.slice(2 * layer, 2 * layer + 2).map((address) => this.memory.floats(address + 4 * head * size, size).slice());
      return { queries: pick(vectors, layer * width + head * headDim, this.layers.decoder * width, target.length), keys, values };
    } finally {
      cache?.release();
      encoding?.release();
    }
  }
}

/** The KV cache of one row of the decoder. `encoding`: of the source, null for a language model. */
export class DecoderCache {
  constructor(model, encoding, capacity, options = {}) {
    const { memory, layers, width } = model;
    Object.assign(this, { model, encoding, capacity, options, memory, length: 0 });
    this.scope = memory.scope();
    try {
      this.store = this.scope.allocate(4 * layers.decoder * 2 * capacity * width); // (L, 2, H, C, E)
      this.factors = Object.fromEntries(["decoder", "cross"].map((kind) => (
        [kind, model.headFactors(this.scope, options.headFactors?.[kind], layers.decoder)])));
    } catch (error) {
      this.scope.close();
      throw error;
    }
  }

  /** Forget all tokens. */
  clear() {
    this.length = 0;
  }

  release() {
    this.scope.close();
  }

  /** Append tokens. Returns the logits (V) after the last, or with `all` those after each (T, V); the attention if requested; and with
     `vectors`, "decoder" or "cross", the queries, keys and values of self-attention (T, L, 3, H, E) or the queries of cross-attention (T, L, H, E).

     Without the causal mask, or if the attention or the vectors are requested, all tokens are read in one call. */
  append(tokens, { all = false, attention = false, causal = true, vectors = null, withLogits = true } = {}) {
    const { model } = this;
    if (this.length + tokens.length > this.capacity) throw new Error(`${tokens.length} tokens do not fit into the KV cache.`);
    const size = causal && !attention && !vectors ? STEPS_A_CALL : tokens.length;
    const logits = withLogits ? new Float32Array((all ? tokens.length : 1) * model.vocabulary) : null;
    let reported = null;
    for (let first = 0; first < tokens.length; first += size) {
      const some = tokens.slice(first, first + size);
      reported = this.appendTogether(some, { all, attention, causal, vectors, withLogits }, (rows) => logits.set(rows, all ? first * model.vocabulary : 0));
    }
    return { logits, ...reported };
  }

  /** Append tokens in one call; `keep` is given a view of the logits that are asked for. Returns { attention, vectors }, null unless requested. */
  appendTogether(tokens, { all, attention, causal, vectors: kind, withLogits }, keep) {
    const { model, memory, encoding } = this;
    const { engine, layers, heads, vocabulary } = model;
    const [rows, before, sourceLength] = [tokens.length, this.length, encoding?.length ?? 0];
    const total = before + rows;
    const work = memory.scope();
    try {
      const keys = Math.max(total, sourceLength);
      const sizes = { decoder: layers.decoder * heads * total, cross: layers.decoder * heads * sourceLength };
      const weights = attention && Object.fromEntries(Object.entries(sizes).map(([name, size]) => [name, work.allocate(4 * rows * size)]));
      const perStep = kind ? layers.decoder * (kind === "decoder" ? 3 : 1) * model.width : 0;
      const vectors = kind ? work.allocate(4 * rows * perStep) : 0;
      const reportedBy = (name, t) => ({
        weights: attention ? weights[name] + 4 * t * sizes[name] : 0, factors: this.factors[name], vectors: kind === name ? vectors + 4 * t * perStep : 0,
      });
      const size = memory.sizeOf("Step");
      const steps = work.allocate(size * rows);
      const ids = work.longs(tokens);
      for (let t = 0; t < rows; t++) {
        memory.write("Step", steps + t * size, {
          ...this.stepPositions(before + t),
          tokens: ids + 8 * t,
          cache: this.store,
          memory: encoding?.pointers ?? 0,
          sentences: 1,
          rows: 1,
          length: causal ? before + t + 1 : total,
          capacity: this.capacity,
          source_length: sourceLength,
          source_capacity: sourceLength,
          shared_cache: 1,
          num_later: causal ? 0 : rows - 1 - t,
          self_heads: reportedBy("decoder", t),
          cross_heads: reportedBy("cross", t),
        });
      }
      const pointers = work.ints(tokens.map((_, t) => steps + t * size));
      const workspace = work.allocate(model.workspaceBytes(model.decoder, rows, keys));
      const logits = withLogits ? work.allocate(4 * rows * vocabulary) : 0;
      engine.call("decoder_steps", model.failure, model.decoder, pointers, BigInt(rows), BigInt(keys), workspace, logits, 0, 1);
      this.length = total;
      if (withLogits) keep(all ? memory.floats(logits, rows * vocabulary) : memory.floats(logits + 4 * (rows - 1) * vocabulary, vocabulary));
      return {
        attention: attention ? this.collectWeights(weights, rows, before, total, causal) : null,
        vectors: kind ? memory.floats(vectors, rows * perStep).slice() : null,
      };
    } finally {
      work.close();
    }
  }

  /** The fields of a step with its position. */
  stepPositions(position) {
    const tables = this.model.positions.decoder;
    if (this.options.positions === false) {
      this.noPosition ??= this.scope.floats(tables.typesAlone(1) ?? [0]);
      return { position_signal: tables.types ? this.noPosition : 0, rotary: 0 };
    }
    const { signals, rotary } = tables.first(position + 1);
    const { width, headDim } = this.model;
    return { position_signal: signals ? signals + 4 * position * width : 0, rotary: rotary ? rotary + 4 * position * headDim : 0 };
  }

  /** The attention of T steps, each (L, H, N), as (L, H, T, total) and (L, H, T, S). */
  collectWeights(weights, rows, before, total, causal) {
    const { memory, encoding } = this;
    const { layers, heads } = this.model;
    const count = layers.decoder * heads;
    const collect = (start, longest, lengthOf) => {
      const result = new Float32Array(count * rows * longest);
      for (let t = 0; t < rows; t++) {
        const length = lengthOf(t);
        const step = memory.floats(start + 4 * t * count * longest, count * length);
        for (let head = 0; head < count; head++) result.set(step.subarray(head * length, (head + 1) * length), (head * rows + t) * longest);
      }
      return result;
    };
    return {
      decoder: collect(weights.decoder, total, (t) => (causal ? before + t + 1 : total)),
      ...(encoding && { cross: collect(weights.cross, encoding.length, () => encoding.length) }),
    };
  }
}

/** Attention weights (L, R, H, N) in the order (L, H, R, N). */
function byHead(weights, layers, rows, heads, keys) {
  const result = new Float32Array(weights.length);
  for (let l = 0; l < layers; l++) {
    for (let r = 0; r < rows; r++) {
      for (let h = 0; h < heads; h++) {
        const from = ((l * rows + r) * heads + h) * keys;
        result.set(weights.subarray(from, from + keys), ((l * heads + h) * rows + r) * keys);
      }
    }
  }
  return result;
}
