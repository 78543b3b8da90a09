/* A model in the WebAssembly engine: its weights in memory, encoding of a text, and decoding steps.

   Shapes: S source length, T target length, L layers, H heads, E head dimension, D model width, V
   vocabulary, C capacity of a KV cache. All token ids include their begin and end symbols. */

import { checkHeader } from "./header.js";
import { EngineError, EngineMemory } from "./memory.js";
import { PositionTables } from "./positions.js";

// tokens in one call of the decoder, whose logits (32, V) are in memory together
const STEPS_PER_CALL = 32;
const NAN_MESSAGE = "the model gave values that are not numbers (NaN): its weights are damaged.";

/** Create an engine from the bytes of engine.wasm.
    @param {BufferSource} wasmBytes */
export async function createEngine(wasmBytes) {
  if (typeof WebAssembly === "undefined") throw new EngineError("this browser has no WebAssembly.");
  let module;
  try {
    module = await WebAssembly.compile(wasmBytes);
  } catch (error) {
    throw new EngineError(
      `this browser cannot run WebAssembly with SIMD (${error.message}). Use a newer browser.`,
    );
  }
  const { exports } = await WebAssembly.instantiate(module, {});
  return new Engine(/** @type {EngineExports} */ (/** @type {unknown} */ (exports)));
}

/** The exported functions of the module, and its memory. */
class Engine {
  /** @param {EngineExports} exports */
  constructor(exports) {
    this.exports = exports;
    this.memory = new EngineMemory(exports);
    this.panelWidth = Number(exports.panel_width());
  }

  /** Load a model. `readTensors(write)` calls write(offset, bytes) for all parts of the block of
      tensors, in any order.
      @param {EngineHeader} header @param {ReadTensors} readTensors */
  async loadModel(header, readTensors) {
    checkHeader(header, this.panelWidth);
    const scope = this.memory.scope();
    try {
      const block = scope.allocate(header.bytes);
      let written = 0;
      await readTensors((offset, bytes) => {
        if (!(offset >= 0 && offset + bytes.length <= header.bytes)) {
          throw new EngineError("the tensors of the model are longer than its header says.");
        }
        this.memory.bytes(block + offset, bytes.length).set(bytes);
        written += bytes.length;
      });
      if (written !== header.bytes) {
        throw new EngineError(
          `the tensors of the model have ${written} bytes instead of ${header.bytes}.`,
        );
      }
      return new EngineModel(this, header, scope, block);
    } catch (error) {
      scope.close();
      throw error;
    }
  }

  /** Call a function that validates its arguments, and return its result. `failure`: address of a
      struct Failure, the last argument.

      Throws an EngineError if an argument is out of range or a value is NaN.
      @type {(name: "encode" | "decoder_steps" | "beam_steps" | "extend_beam", failure: number,
        ...args: (number | bigint)[]) => number} */
  call(name, failure, ...args) {
    const result = Number(this.exports[name](...args, failure));
    if (result === -2) throw new EngineError(NAN_MESSAGE);
    if (result !== -1) return result;
    const [value, low, high] = ["value", "low", "high"].map((field) =>
      this.memory.get("Failure", failure, field),
    );
    const quantity = this.memory.text(this.memory.get("Failure", failure, "quantity"));
    throw new EngineError(
      `the engine was given ${quantity} ${value}; the range is ${low}..${high}.`,
    );
  }
}

/** A loaded model.

    task, settings, search, special: fields of the header; layers: number of encoder and decoder
    layers; heads: H; vocabulary: V of the output. */
class EngineModel {
  /** @param {Engine} engine
      @param {EngineHeader} header
      @param {MemoryScope} scope
      @param {number} block */
  constructor(engine, header, scope, block) {
    const { memory } = engine;
    this.engine = engine;
    this.memory = memory;
    this.header = header;
    this.scope = scope;
    this.block = block;
    this.task = header.task;
    this.settings = header.model;
    this.search = header.search;
    this.special = header.special_ids;
    this.window = header.window;
    this.width = header.model.d_model;
    this.heads = header.model.num_heads;
    this.headDim = this.width / this.heads;
    this.format = memory.constant(header.precision === "int8" ? "INT8" : "FLOAT32");
    this.layers = {
      encoder: header.encoder?.num_layers ?? 0,
      decoder: header.decoder?.num_layers ?? 0,
    };
    this.vocabulary = header.decoder?.output.outputs ?? 0;
    /** @type {Map<number, number>} */
    this.embeddings = new Map(); // index of a tensor -> address of its rows (V, D)
    this.encoder = header.encoder ? this.writeModel(header.encoder) : 0;
    this.decoder = header.decoder ? this.writeModel(header.decoder) : 0;
    this.memoryKv = header.memory_kv
      ? scope.structs(
          "Linear",
          header.memory_kv.map((linear) => this.pointers(linear)),
        )
      : 0;
    this.positions = Object.fromEntries(
      Object.entries(header.positions).map(([kind, { learned, types }]) => [
        kind,
        new PositionTables(
          engine.exports,
          scope,
          header.model,
          this.tensorFloats(learned),
          this.tensorFloats(types),
        ),
      ]),
    );
    this.failure = scope.struct("Failure", {});
  }

  /** Free the memory of the model. */
  close() {
    this.scope.close();
  }

  /** Return the address of a tensor, 0 for null.
      @type {(tensor: number | null) => number} */
  address(tensor) {
    return tensor === null ? 0 : this.block + this.header.tensors[tensor].offset;
  }

  /** Return a copy of a float32 tensor.
      @type {(tensor: number | null) => Float32Array | null} */
  tensorFloats(tensor) {
    if (tensor === null) return null;
    const count = this.header.tensors[tensor].shape.reduce((product, size) => product * size, 1);
    return this.memory.floats(this.address(tensor), count).slice();
  }

  /** Return a struct of the header with the addresses of its tensors instead of their indices.
      @type {(struct: StructValues) => StructValues} */
  pointers(struct) {
    return Object.fromEntries(
      Object.entries(struct).map(([name, value]) => {
        if (["weight", "scale", "bias"].includes(name)) {
          return [name, this.address(/** @type {number | null} */ (value))];
        }
        return [name, value !== null && typeof value === "object" ? this.pointers(value) : value];
      }),
    );
  }

  /** Write the struct Model of the encoder or decoder; return its address.
      @type {(struct: ModelHeader) => number} */
  writeModel(struct) {
    const { layers, norms, embedding, vocabulary, ...fields } = struct;
    return this.scope.struct("Model", {
      ...this.pointers(fields),
      layers: this.scope.structs(
        "Layer",
        layers.map((layer) => this.pointers(layer)),
      ),
      norms: this.scope.structs(
        "LayerNorm",
        norms.map((norm) => this.pointers(norm)),
      ),
      embedding: this.unpackEmbedding(embedding, vocabulary),
      vocabulary,
    });
  }

  /** Unpack an embedding from panels (V / P, D, P) to rows (V, D); return their address.
      @type {(tensor: number, vocabulary: number) => number} */
  unpackEmbedding(tensor, vocabulary) {
    const unpacked = this.embeddings.get(tensor);
    if (unpacked !== undefined) return unpacked;
    const { width, memory } = this;
    const panel = this.engine.panelWidth;
    const { type, scale } = this.header.tensors[tensor];
    const start = this.scope.allocate(4 * vocabulary * width);
    const { buffer } = memory.memory;
    const packed = new (type === "int8" ? Int8Array : Float32Array)(
      buffer,
      this.address(tensor),
      Math.ceil(vocabulary / panel) * panel * width,
    );
    const scales = scale === undefined ? null : memory.floats(this.address(scale), vocabulary);
    const rows = memory.floats(start, vocabulary * width);
    for (let v = 0; v < vocabulary; v++) {
      const factor = scales ? scales[v] : 1;
      const first = Math.floor(v / panel) * panel * width + (v % panel);
      for (let i = 0; i < width; i++) rows[v * width + i] = packed[first + i * panel] * factor;
    }
    this.embeddings.set(tensor, start);
    return start;
  }

  /** Return a view of the token embedding (V, D) of the encoder or decoder; it is valid until the
      memory grows.
      @type {(side: "encoder" | "decoder") => Float32Array} */
  embeddingRows(side) {
    const { embedding, vocabulary } = /** @type {ModelHeader} */ (this.header[side]);
    return this.memory.floats(this.unpackEmbedding(embedding, vocabulary), vocabulary * this.width);
  }

  /** Return the size in bytes of the workspace for `rows` rows that attend to at most `keys` keys.
      @type {(model: number, rows: number, keys: number) => number} */
  workspaceBytes(model, rows, keys) {
    return 4 * Number(this.engine.exports.workspace_size(model, BigInt(rows), BigInt(keys), 1n));
  }

  /** Write the factors of heads (L x H numbers); return their address, 0 for none.
      @type {(scope: MemoryScope, factors: Float32Array | undefined, layers: number) => number} */
  headFactors(scope, factors, layers) {
    const count = layers * this.heads;
    if (factors && factors.length !== count) {
      throw new EngineError(
        `${factors.length} factors of heads were given, but there are ${count} heads.`,
      );
    }
    return factors ? scope.floats(factors) : 0;
  }

  /** Encode a text.

      ids: S ids. options: types (token types), attention (whether to return it), vectors (whether
      to return queries, keys and values (L, S, 3, H, E)), headFactors.encoder (L x H numbers),
      positions (false: none). Call `release` of the result to free its memory.
      @param {number[]} ids @param {EngineOptions & { vectors?: boolean }} options */
  encode(ids, options = {}) {
    if (!ids.length) throw new EngineError("the text has no tokens.");
    const { memory, width, heads } = this;
    const layers = this.layers.encoder;
    const length = ids.length;
    const scratch = memory.scope();
    const encodingScope = memory.scope();
    try {
      const indices = ids.map((_, i) => i);
      const positions = this.encoderPositions(scratch, length, options);
      const weights = options.attention
        ? scratch.allocate(4 * layers * length * heads * length)
        : 0;
      const vectors = options.vectors ? scratch.allocate(4 * layers * length * 3 * width) : 0;
      const output = this.header.head ? scratch.allocate(4 * length * width) : 0;
      const input = scratch.struct("EncoderInput", {
        tokens: scratch.longs(ids),
        sentence_ids: scratch.longs(indices.map(() => 0)),
        positions: scratch.longs(indices),
        starts: scratch.longs([0, length]),
        position_signals: positions.signals,
        rotary: positions.rotary,
        sentences: 1,
        max_length: length,
        heads: {
          weights,
          vectors,
          factors: this.headFactors(scratch, options.headFactors?.encoder, layers),
        },
        output,
      });
      const memoryLayers = this.memoryKv ? this.layers.decoder : 0;
      const memoryAddresses = Array.from({ length: 2 * memoryLayers }, () =>
        encodingScope.allocate(4 * length * width),
      );
      const pointers = encodingScope.ints(memoryAddresses);
      const workspace = scratch.allocate(this.workspaceBytes(this.encoder, length, length));
      this.engine.call(
        "encode",
        this.failure,
        this.encoder,
        this.memoryKv,
        BigInt(memoryLayers),
        input,
        pointers,
        workspace,
        1,
      );
      return {
        length,
        pointers,
        memoryAddresses, // addresses of keys and values (H, S, E) of each decoder layer
        attention: weights
          ? transposeHeads(
              memory.floats(weights, layers * length * heads * length),
              layers,
              length,
              heads,
              length,
            )
          : new Float32Array(0),
        vectors: memory.floats(vectors, vectors && layers * length * 3 * width).slice(),
        output: memory.floats(output, output && length * width).slice(),
        release: () => encodingScope.close(),
      };
    } catch (error) {
      encodingScope.close();
      throw error;
    } finally {
      scratch.close();
    }
  }

  /** Return the addresses of the position signals and of the rotary cosines and sines of a text, or
      null.
      @type {(scratch: MemoryScope, length: number, options: EngineOptions) => { signals: number |
        null, rotary: number | null }} */
  encoderPositions(scratch, length, { types = null, positions = true }) {
    const tables = this.positions.encoder;
    const table = positions ? tables.tableFor(length) : { signals: null, rotary: null };
    if (positions && !types) return table;
    const signals = tables.tokenSignals(length, types, positions);
    return { signals: signals && scratch.floats(signals), rotary: table.rotary };
  }

  /** Return the logits of the classes, and the attention (L, H, S, S) if requested; arguments as in
      `encode`.
      @param {number[]} ids @param {EngineOptions} options */
  classify(ids, options = {}) {
    const encoding = this.encode(ids, options);
    encoding.release();
    const { width, settings } = this;
    const pooled = new Float32Array(width);
    if (settings.pooling === "cls") pooled.set(encoding.output.subarray(0, width));
    else {
      for (let s = 0; s < ids.length; s++) {
        for (let i = 0; i < width; i++) pooled[i] += encoding.output[s * width + i];
      }
      for (let i = 0; i < width; i++) pooled[i] /= ids.length;
    }
    const hidden = this.applyLinear("pooler", pooled).map(
      settings.pooler === "tanh" ? Math.tanh : (x) => Math.max(x, 0),
    );
    const logits = this.applyLinear("output", hidden);
    if (logits.some(Number.isNaN)) throw new EngineError(NAN_MESSAGE);
    return { logits, attention: { encoder: encoding.attention } };
  }

  /** Apply a linear layer of the head to a vector.
      @type {(name: "pooler" | "output", vector: Float32Array) => Float32Array} */
  applyLinear(name, vector) {
    const scope = this.memory.scope();
    try {
      const linear = /** @type {NonNullable<EngineHeader["head"]>} */ (this.header.head)[name];
      const { outputs } = linear;
      const result = scope.allocate(4 * outputs);
      this.engine.exports.linear_layer(
        scope.struct("Linear", this.pointers(linear)),
        BigInt(this.format),
        scope.floats(vector),
        1n,
        scope.allocate(4 * vector.length + 128),
        result,
      );
      return this.memory.floats(result, outputs).slice();
    } finally {
      scope.close();
    }
  }

  /** Return the log-probabilities (V) of logits (V), to the bits of the C decoder.
      @type {(logits: Float32Array) => Float32Array} */
  logProbabilities(logits) {
    const scope = this.memory.scope();
    const normalizer = this.engine.exports.log_sum_exp(scope.floats(logits), BigInt(logits.length));
    scope.close();
    return Float32Array.from(logits, (value) => value - normalizer);
  }

  /** Run the model by teacher forcing on a source and a target, or a language model on a text
      (source null).

      options: attention, headFactors {encoder, decoder, cross}, positions (false: none), causal
      (false: without the mask). Returns logits (T, V) and attention {encoder (L, H, S, S), decoder
      (L, H, T, T), cross (L, H, T, S)}.
      @type {(source: number[] | null, target: number[], options?: EngineOptions) => { logits:
        Float32Array, attention: { [kind: string]: Float32Array } }} */
  forward(source, target, options = {}) {
    const encoding = source && this.encode(source, options);
    try {
      const { logits, attention } = this.decodeTarget(encoding, target, {
        ...options,
        allLogits: true,
      });
      return {
        logits,
        attention: { ...attention, ...(encoding && { encoder: encoding.attention }) },
      };
    } finally {
      encoding?.release();
    }
  }

  /** Return the attention {decoder (L, H, T, T), cross (L, H, T, S)} of a target to an encoded
      source; options as in `forward`.
      @param {Encoding | null} encoding @param {number[]} target @param {EngineOptions} options */
  targetAttention(encoding, target, options = {}) {
    return this.decodeTarget(encoding, target, { ...options, attention: true, withLogits: false })
      .attention;
  }

  /** Append a target to an empty KV cache; return what DecoderCache.append returns.
      @param {Encoding | null} encoding
      @param {number[]} target
      @param {EngineOptions & AppendOptions} options */
  decodeTarget(encoding, target, options) {
    const cache = new DecoderCache(this, encoding, target.length, options);
    try {
      return cache.append(target, options);
    } finally {
      cache.release();
    }
  }

  /** Return { queries (T, E), keys (S, E), values (S, E) } of a head, with rotary positions after
      the rotation.

      kind: "encoder", "decoder" or "cross"; source is null for a language model; other arguments as
      in `forward` and `encode`.
      @param {HeadName} name
      @param {number[] | null} source
      @param {number[]} target
      @param {EngineOptions} options */
  headVectors({ kind, layer, head }, source, target, options = {}) {
    const { width, headDim } = this;
    /** @type {(array: Float32Array, first: number, stride: number, count: number) =>
          Float32Array} */
    const pick = (array, first, stride, count) => {
      const result = new Float32Array(count * headDim);
      for (let i = 0; i < count; i++) {
        result.set(array.subarray(first + i * stride, first + i * stride + headDim), i * headDim);
      }
      return result;
    };
    /** @type {(array: Float32Array, first: number, stride: number, count: number) =>
          HeadVectors} */
    const pickAll = (array, first, stride, count) => {
      const [queries, keys, values] = [0, 1, 2].map((i) =>
        pick(array, first + i * width + head * headDim, stride, count),
      );
      return { queries, keys, values };
    };
    const encoding = source && this.encode(source, { ...options, vectors: kind === "encoder" });
    const encoded = /** @type {Encoding} */ (encoding); // in kinds that need it
    let cache = null;
    try {
      if (kind === "encoder") {
        return pickAll(
          encoded.vectors,
          layer * encoded.length * 3 * width,
          3 * width,
          encoded.length,
        );
      }
      cache = new DecoderCache(this, encoding, target.length, options);
      const { vectors } = cache.append(target, { causal: options.causal, vectors: kind });
      if (kind === "decoder") {
        return pickAll(vectors, layer * 3 * width, this.layers.decoder * 3 * width, target.length);
      }
      const size = encoded.length * headDim;
      const [keys, values] = encoded.memoryAddresses
        .slice(2 * layer, 2 * layer + 2)
        .map((address) => this.memory.floats(address + 4 * head * size, size).slice());
      return {
        queries: pick(
          vectors,
          layer * width + head * headDim,
          this.layers.decoder * width,
          target.length,
        ),
        keys,
        values,
      };
    } finally {
      cache?.release();
      encoding?.release();
    }
  }
}

/** The KV cache of one sequence of the decoder. `encoding`: encoded source, null for a language
    model. */
export class DecoderCache {
  /** @param {EngineModel} model
      @param {Encoding | null} encoding
      @param {number} capacity
      @param {EngineOptions} options */
  constructor(model, encoding, capacity, options = {}) {
    const { memory, layers, width } = model;
    this.model = model;
    this.encoding = encoding;
    this.capacity = capacity;
    this.options = options;
    this.memory = memory;
    this.length = 0;
    this.scope = memory.scope();
    try {
      // (L, 2, H, C, E)
      this.store = this.scope.allocate(4 * layers.decoder * 2 * capacity * width);
      this.factors = Object.fromEntries(
        ["decoder", "cross"].map((kind) => [
          kind,
          model.headFactors(this.scope, options.headFactors?.[kind], layers.decoder),
        ]),
      );
    } catch (error) {
      this.scope.close();
      throw error;
    }
  }

  /** Remove all tokens from the cache. */
  clear() {
    this.length = 0;
  }

  release() {
    this.scope.close();
  }

  /** Append tokens. Returns the logits (V) after the last token, or with `allLogits` after each
      token (T, V); the attention if requested; and with `vectors`, "decoder" or "cross", the
      queries, keys and values of self-attention (T, L, 3, H, E) or the queries of cross-attention
      (T, L, H, E).

      Without the causal mask, or if the attention or the vectors are requested, all tokens are
      appended in one call.
      @param {number[]} tokens @param {AppendOptions} options */
  append(
    tokens,
    { allLogits = false, attention = false, causal = true, vectors = null, withLogits = true } = {},
  ) {
    const { model } = this;
    if (this.length + tokens.length > this.capacity) {
      throw new Error(`${tokens.length} tokens do not fit into the KV cache.`);
    }
    const size = causal && !attention && !vectors ? STEPS_PER_CALL : tokens.length;
    const logits = new Float32Array(
      withLogits ? (allLogits ? tokens.length : 1) * model.vocabulary : 0,
    );
    /** @type {{ attention: { [kind: string]: Float32Array }, vectors: Float32Array }} */
    let captured = { attention: {}, vectors: new Float32Array(0) };
    for (let first = 0; first < tokens.length; first += size) {
      const chunk = tokens.slice(first, first + size);
      captured = this.appendChunk(
        chunk,
        { allLogits, attention, causal, vectors, withLogits },
        (rows) => logits.set(rows, allLogits ? first * model.vocabulary : 0),
      );
    }
    return { logits, ...captured };
  }

  /** Append tokens in one call; pass a view of the requested logits to `onLogits`. Returns {
      attention, vectors }, empty unless requested.
      @param {number[]} tokens
      @param {Required<AppendOptions>} options
      @param {(rows: Float32Array) => void} onLogits */
  appendChunk(tokens, { allLogits, attention, causal, vectors: kind, withLogits }, onLogits) {
    const { model, memory, encoding } = this;
    const { engine, layers, heads, vocabulary } = model;
    const [rows, cached, sourceLength] = [tokens.length, this.length, encoding?.length ?? 0];
    const total = cached + rows;
    const scratch = memory.scope();
    try {
      const keys = Math.max(total, sourceLength);
      const sizes = {
        decoder: layers.decoder * heads * total,
        cross: layers.decoder * heads * sourceLength,
      };
      const weights = attention
        ? {
            decoder: scratch.allocate(4 * rows * sizes.decoder),
            cross: scratch.allocate(4 * rows * sizes.cross),
          }
        : null;
      const perStep = kind ? layers.decoder * (kind === "decoder" ? 3 : 1) * model.width : 0;
      const vectors = kind ? scratch.allocate(4 * rows * perStep) : 0;
      /** @type {(name: "decoder" | "cross", t: number) => StructValues} */
      const headFields = (name, t) => ({
        weights: weights ? weights[name] + 4 * t * sizes[name] : 0,
        factors: this.factors[name],
        vectors: kind === name ? vectors + 4 * t * perStep : 0,
      });
      const size = memory.sizeOf("Step");
      const steps = scratch.allocate(size * rows);
      const ids = scratch.longs(tokens);
      for (let t = 0; t < rows; t++) {
        memory.write("Step", steps + t * size, {
          ...this.stepPositions(cached + t),
          tokens: ids + 8 * t,
          cache: this.store,
          memory: encoding?.pointers ?? 0,
          sentences: 1,
          rows: 1,
          length: causal ? cached + t + 1 : total,
          capacity: this.capacity,
          source_length: sourceLength,
          source_capacity: sourceLength,
          shared_cache: 1,
          num_later: causal ? 0 : rows - 1 - t,
          self_heads: headFields("decoder", t),
          cross_heads: headFields("cross", t),
        });
      }
      const pointers = scratch.ints(tokens.map((_, t) => steps + t * size));
      const workspace = scratch.allocate(model.workspaceBytes(model.decoder, rows, keys));
      const logits = withLogits ? scratch.allocate(4 * rows * vocabulary) : 0;
      engine.call(
        "decoder_steps",
        model.failure,
        model.decoder,
        pointers,
        BigInt(rows),
        BigInt(keys),
        workspace,
        logits,
        1,
      );
      this.length = total;
      if (withLogits) {
        onLogits(
          allLogits
            ? memory.floats(logits, rows * vocabulary)
            : memory.floats(logits + 4 * (rows - 1) * vocabulary, vocabulary),
        );
      }
      return {
        attention: weights ? this.collectWeights(weights, rows, cached, total, causal) : {},
        vectors: memory.floats(vectors, rows * perStep).slice(),
      };
    } finally {
      scratch.close();
    }
  }

  /** @type {number | undefined} */
  zeroPosition;

  /** Return the position fields of a struct Step.
      @type {(position: number) => { position_signal: number, rotary: number }} */
  stepPositions(position) {
    const tables = this.model.positions.decoder;
    if (this.options.positions === false) {
      this.zeroPosition ??= this.scope.floats(tables.typeSignals(1) ?? [0]);
      return { position_signal: tables.types ? this.zeroPosition : 0, rotary: 0 };
    }
    const { signals, rotary } = tables.tableFor(position + 1);
    const { width, headDim } = this.model;
    return {
      position_signal: signals ? signals + 4 * position * width : 0,
      rotary: rotary ? rotary + 4 * position * headDim : 0,
    };
  }

  /** Gather the attention of T steps, each (L, H, N), into (L, H, T, total) and (L, H, T, S).
      @type {(weights: { decoder: number, cross: number }, rows: number, cached: number, total:
        number, causal: boolean) => { [kind: string]: Float32Array }} */
  collectWeights(weights, rows, cached, total, causal) {
    const { memory, encoding } = this;
    const { layers, heads } = this.model;
    const count = layers.decoder * heads;
    /** @type {(start: number, longest: number, lengthOf: (t: number) => number) => Float32Array} */
    const collect = (start, longest, lengthOf) => {
      const result = new Float32Array(count * rows * longest);
      for (let t = 0; t < rows; t++) {
        const length = lengthOf(t);
        const step = memory.floats(start + 4 * t * count * longest, count * length);
        for (let head = 0; head < count; head++) {
          result.set(
            step.subarray(head * length, (head + 1) * length),
            (head * rows + t) * longest,
          );
        }
      }
      return result;
    };
    return {
      decoder: collect(weights.decoder, total, (t) => (causal ? cached + t + 1 : total)),
      ...(encoding && { cross: collect(weights.cross, encoding.length, () => encoding.length) }),
    };
  }
}

/** Transpose attention weights from (L, R, H, N) to (L, H, R, N).
    @type {(weights: Float32Array, layers: number, rows: number, heads: number, keys: number) =>
      Float32Array} */
function transposeHeads(weights, layers, rows, heads, keys) {
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
