// src/manyheads/web/tasks/pause.js
var MAX_BLOCKING = 40;
function makeScheduler() {
  if (typeof setImmediate === "function") return setImmediate;
  const { port1, port2 } = new MessageChannel();
  let callback = () => {
  };
  port1.onmessage = () => callback();
  return (call) => {
    callback = call;
    port2.postMessage(0);
  };
}
function makePause() {
  const schedule = makeScheduler();
  let lastPause = performance.now();
  let pending = null;
  return () => {
    if (performance.now() - lastPause < MAX_BLOCKING) return void 0;
    pending ??= new Promise(
      (resolve) => schedule(() => {
        lastPause = performance.now();
        pending = null;
        resolve();
      })
    );
    return pending;
  };
}

// src/manyheads/web/engine/memory.js
var ALIGNMENT = 16;
var MEMORY_PAGE = 65536;
var MEMORY_LIMIT = 65536;
var LAYOUT_ENTRY = { offset: 8, size: 16, type: 24, bytes: 32 };
var EngineError = class extends Error {
};
var EngineMemory = class {
  /** @param {EngineExports} exports */
  constructor(exports) {
    this.memory = exports.memory;
    const start = alignUp(exports.__heap_base.value, ALIGNMENT);
    this.free = [{ start, size: this.memory.buffer.byteLength - start }];
    this.blocks = /* @__PURE__ */ new Map();
    this.layout = this.readLayout(exports.struct_layout);
  }
  /** @type {{ bytes: Uint8Array, floats: Float32Array, ints: Int32Array, data: DataView }
        | null} */
  current = null;
  /** Return typed views of the whole memory; growth detaches them, so callers must not store
      them. */
  get views() {
    const { buffer } = this.memory;
    if (this.current?.bytes.buffer !== buffer) {
      this.current = {
        bytes: new Uint8Array(buffer),
        floats: new Float32Array(buffer),
        ints: new Int32Array(buffer),
        data: new DataView(buffer)
      };
    }
    return this.current;
  }
  /** Return the address of a new aligned block of `bytes` bytes, with undefined content.
      @type {(bytes: number) => number} */
  allocate(bytes) {
    const size = alignUp(Math.max(bytes, 1), ALIGNMENT);
    let index = this.free.findIndex((block2) => block2.size >= size);
    if (index < 0) {
      this.grow(size);
      index = this.free.length - 1;
    }
    const block = this.free[index];
    const { start } = block;
    if (block.size === size) this.free.splice(index, 1);
    else Object.assign(block, { start: start + size, size: block.size - size });
    this.blocks.set(start, size);
    return start;
  }
  /** Free a block.
      @type {(start: number) => void} */
  release(start) {
    let size = this.blocks.get(start);
    if (size === void 0) throw new Error(`no block begins at ${start}`);
    this.blocks.delete(start);
    let index = this.free.findIndex((block) => block.start > start);
    if (index < 0) index = this.free.length;
    const before = this.free[index - 1];
    const after = this.free[index];
    if (after && start + size === after.start) {
      size += after.size;
      this.free.splice(index, 1);
    }
    if (before && before.start + before.size === start) before.size += size;
    else this.free.splice(index, 0, { start, size });
  }
  /** Add pages, so that the last free block has at least `size` bytes.
      @type {(size: number) => void} */
  grow(size) {
    const end = this.memory.buffer.byteLength;
    const last = this.free.at(-1);
    const available = last && last.start + last.size === end ? last.size : 0;
    const pages = Math.ceil((size - available) / MEMORY_PAGE);
    try {
      if (end / MEMORY_PAGE + pages > MEMORY_LIMIT) throw new RangeError("4 GiB");
      this.memory.grow(pages);
    } catch {
      const mebibytes = Math.ceil(size / 2 ** 20);
      throw new EngineError(
        `there is no memory for ${mebibytes} MiB more: the text or the model is too large for this page.`
      );
    }
    if (last && available) last.size += pages * MEMORY_PAGE;
    else this.free.push({ start: end, size: pages * MEMORY_PAGE });
  }
  /** Return an allocator whose blocks are freed together. */
  scope() {
    return new MemoryScope(this);
  }
  /** Return a view of the numbers at an address; it is valid until the memory grows.
      @type {(address: number, count: number) => Uint8Array} */
  bytes(address, count) {
    return this.views.bytes.subarray(address, address + count);
  }
  /** @type {(address: number, count: number) => Float32Array} */
  floats(address, count) {
    return this.views.floats.subarray(address / 4, address / 4 + count);
  }
  /** @type {(address: number, count: number) => Int32Array} */
  ints(address, count) {
    return this.views.ints.subarray(address / 4, address / 4 + count);
  }
  /** @type {(address: number, count: number) => BigInt64Array} */
  longs(address, count) {
    return new BigInt64Array(this.memory.buffer, address, count);
  }
  /** @type {(address: number, count: number) => Float64Array} */
  doubles(address, count) {
    return new Float64Array(this.memory.buffer, address, count);
  }
  /** Return the value of a constant of an enumeration of the C code.
      @type {(name: string) => number} */
  constant(name) {
    return this.layoutOf(name).offset;
  }
  /** Read the layout from the module: a map from struct and field to { offset, size, type }.
      @type {(structLayout: EngineExports["struct_layout"]) =>
        Map<string, { offset: number, size: number, type: string }>} */
  readLayout(structLayout) {
    const start = this.allocate(8);
    const first = structLayout(start);
    const { data } = this.views;
    const count = Number(data.getBigInt64(start, true));
    this.release(start);
    const layout = /* @__PURE__ */ new Map();
    for (let entry = first; entry < first + count * LAYOUT_ENTRY.bytes; entry += LAYOUT_ENTRY.bytes) {
      const [offset, size] = [LAYOUT_ENTRY.offset, LAYOUT_ENTRY.size].map(
        (field) => Number(data.getBigInt64(entry + field, true))
      );
      layout.set(this.text(data.getUint32(entry, true)), {
        offset,
        size,
        type: this.text(data.getUint32(entry + LAYOUT_ENTRY.type, true))
      });
    }
    return layout;
  }
  /** Return the layout of a struct, a field or a constant.
      @type {(name: string) => { offset: number, size: number, type: string }} */
  layoutOf(name) {
    const found = this.layout.get(name);
    if (!found) throw new Error(`there is no ${name} in the layout of the module`);
    return found;
  }
  /** Return the size of a struct in bytes.
      @type {(struct: string) => number} */
  sizeOf(struct) {
    return this.layoutOf(struct).size;
  }
  /** Return the offset and type of a field; `path` is dotted for inner structs, as in
      "step.tokens".
      @type {(struct: string, path: string) => { offset: number, type: string }} */
  findField(struct, path) {
    let offset = 0;
    let type = struct;
    for (const name of path.split(".")) {
      const field = this.layoutOf(`${type}.${name}`);
      offset += field.offset;
      type = field.type;
    }
    return { offset, type };
  }
  /** Write the fields of a struct; fields without a value become 0. A pointer is an address, null
      is 0.
      @type {(struct: string, address: number, values: StructValues) => void} */
  write(struct, address, values) {
    this.bytes(address, this.sizeOf(struct)).fill(0);
    this.update(struct, address, values);
  }
  /** Write some fields of a struct.
      @type {(struct: string, address: number, values: StructValues) => void} */
  update(struct, address, values) {
    for (const [name, value] of Object.entries(values)) {
      const { offset, type } = this.findField(struct, name);
      if (this.layout.has(type)) {
        this.write(
          type,
          address + offset,
          /** @type {StructValues} */
          value ?? {}
        );
      } else this.set(type, address + offset, Number(value ?? 0));
    }
  }
  /** Write a number of a C type.
      @type {(type: string, address: number, value: number) => void} */
  set(type, address, value) {
    const { data } = this.views;
    if (type === "int64") data.setBigInt64(address, BigInt(value), true);
    else if (type === "int32") data.setInt32(address, value, true);
    else if (type === "float") data.setFloat32(address, value, true);
    else if (type === "double") data.setFloat64(address, value, true);
    else data.setUint32(address, value, true);
  }
  /** Read a number from a field.
      @type {(struct: string, address: number, path: string) => number} */
  get(struct, address, path) {
    const { offset, type } = this.findField(struct, path);
    const { data } = this.views;
    if (type === "int64") return Number(data.getBigInt64(address + offset, true));
    if (type === "int32") return data.getInt32(address + offset, true);
    if (type === "float") return data.getFloat32(address + offset, true);
    if (type === "double") return data.getFloat64(address + offset, true);
    return data.getUint32(address + offset, true);
  }
  /** Read the zero-terminated string at an address.
      @type {(address: number) => string} */
  text(address) {
    const { bytes } = this.views;
    return new TextDecoder().decode(bytes.subarray(address, bytes.indexOf(0, address)));
  }
};
var MemoryScope = class {
  /** @param {EngineMemory} memory */
  constructor(memory) {
    this.memory = memory;
    this.starts = /* @__PURE__ */ new Set();
  }
  /** @type {(bytes: number) => number} */
  allocate(bytes) {
    const start = this.memory.allocate(bytes);
    this.starts.add(start);
    return start;
  }
  /** @type {(start: number) => void} */
  release(start) {
    if (this.starts.delete(start)) this.memory.release(start);
  }
  /** Copy numbers into a new block.
      @type {(values: number[]) => number} */
  longs(values) {
    const start = this.allocate(8 * values.length);
    const target = this.memory.longs(start, values.length);
    for (let i = 0; i < values.length; i++) target[i] = BigInt(values[i]);
    return start;
  }
  /** @type {(values: ArrayLike<number>) => number} */
  floats(values) {
    const start = this.allocate(4 * values.length);
    this.memory.floats(start, values.length).set(values);
    return start;
  }
  /** @type {(values: ArrayLike<number>) => number} */
  ints(values) {
    const start = this.allocate(4 * values.length);
    this.memory.ints(start, values.length).set(values);
    return start;
  }
  /** @type {(values: ArrayLike<number>) => number} */
  doubles(values) {
    const start = this.allocate(8 * values.length);
    this.memory.doubles(start, values.length).set(values);
    return start;
  }
  /** Allocate and write a struct.
      @type {(type: string, values: StructValues) => number} */
  struct(type, values) {
    const start = this.allocate(this.memory.sizeOf(type));
    this.memory.write(type, start, values);
    return start;
  }
  /** Allocate and write an array of structs.
      @type {(type: string, items: StructValues[]) => number} */
  structs(type, items) {
    const size = this.memory.sizeOf(type);
    const start = this.allocate(size * items.length);
    items.forEach((values, i) => this.memory.write(type, start + i * size, values));
    return start;
  }
  close() {
    for (const start of this.starts) this.memory.release(start);
    this.starts.clear();
  }
};
var alignUp = (value, unit) => Math.ceil(value / unit) * unit;

// src/manyheads/web/engine/header.js
var HEADER_FORMAT = 1;
var TENSOR_BYTES = { float32: 4, int8: 1 };
var TENSOR_TYPES = { fp32: "float32", int8: "int8" };
var MODEL_PARTS = {
  translation: ["encoder", "decoder", "memory_kv"],
  classification: ["encoder", "head"],
  "language-modeling": ["decoder", "window"]
};
var LARGEST_SIZE = 2 ** 31;
function checkHeader(header, panelWidth) {
  const check = (valid, name) => {
    if (!valid) {
      throw new EngineError(`the file of the model is damaged: ${name} is not what it should be.`);
    }
  };
  check(header !== null && typeof header === "object", "the header");
  if (header.format !== HEADER_FORMAT) {
    throw new EngineError(
      `the model has format ${header.format}, but this engine reads format ${HEADER_FORMAT}.`
    );
  }
  if (header.panel_width !== panelWidth) {
    throw new EngineError(
      `the model has panels of ${header.panel_width}, but the engine has panels of ${panelWidth}.`
    );
  }
  const isSize = (value) => Number.isInteger(value) && value > 0 && value < LARGEST_SIZE;
  check(
    MODEL_PARTS[header.task]?.every((part) => header[part]),
    "task"
  );
  check(TENSOR_TYPES[header.precision], "precision");
  check(
    header.special_ids && /** @type {const} */
    ["unk", "pad", "bos", "eos"].every(
      (name) => Number.isInteger(header.special_ids[name])
    ),
    "special_ids"
  );
  check(header.search && Object.values(header.search).every(Number.isFinite), "search");
  check(
    isSize(header.search.beam_size ?? 1) && Number.isInteger(header.search.max_length_offset ?? 0),
    "search"
  );
  check(header.window === void 0 || isSize(header.window), "window");
  check(Number.isInteger(header.bytes) && header.bytes > 0, "bytes");
  const { model, tensors, positions } = header;
  check(
    model && [model.d_model, model.num_heads, model.max_positions].every(isSize) && model.d_model % model.num_heads === 0,
    "model"
  );
  check(["sinusoidal", "learned", "rotary"].includes(model.positions), "model.positions");
  const width = model.d_model;
  check(
    model.positions === "learned" || (model.positions === "rotary" ? width / model.num_heads : width) % 2 === 0,
    "model.d_model"
  );
  check(Array.isArray(tensors), "tensors");
  const count = ({ shape }) => shape.reduce((product, size) => product * size, 1);
  tensors.forEach((tensor, i) => {
    const valid = tensor && TENSOR_BYTES[tensor.type] && Array.isArray(tensor.shape) && tensor.shape.every(isSize) && Number.isInteger(tensor.offset);
    check(
      valid && tensor.offset >= 0 && tensor.offset % 16 === 0 && tensor.offset + count(tensor) * TENSOR_BYTES[tensor.type] <= header.bytes,
      `tensor ${i}`
    );
  });
  const end = Math.max(
    0,
    ...tensors.map((tensor) => tensor.offset + count(tensor) * TENSOR_BYTES[tensor.type])
  );
  check(header.bytes === Math.ceil(end / 16) * 16, "bytes");
  const checkTensor = (index, type, size, name) => check(tensors[index]?.type === type && count(tensors[index]) === size, name);
  const checkMatrix = (index, scale, outputs, inputs, name) => {
    check(isSize(outputs) && isSize(inputs), name);
    const padded = Math.ceil(outputs / panelWidth) * panelWidth;
    checkTensor(index, TENSOR_TYPES[header.precision], padded * inputs, `the weight of ${name}`);
    if (header.precision === "int8") {
      checkTensor(scale ?? -1, "float32", padded, `the scale of ${name}`);
    }
    return padded;
  };
  const checkLinear = (linear, inputs, outputs, name) => {
    check(linear && linear.inputs === inputs && linear.outputs === outputs, name);
    const padded = checkMatrix(linear.weight, linear.scale, outputs, inputs, name);
    if (linear.bias !== null) checkTensor(linear.bias, "float32", padded, `the bias of ${name}`);
  };
  const checkNorm = (norm, name) => {
    check(norm && (norm.weight !== null || norm.bias === null), name);
    for (const index of [norm.weight, norm.bias]) {
      if (index !== null) checkTensor(index, "float32", width, name);
    }
  };
  const checkModel = (struct, kind) => {
    const { layers, norms, d_ff: inner, activation, vocabulary } = struct;
    const cross = kind === "decoder" && header.task === "translation";
    check(Array.isArray(layers) && layers.length === struct.num_layers, `${kind}.layers`);
    check(
      Array.isArray(norms) && norms.length === (cross ? 3 : 2) * layers.length + 1,
      `${kind}.norms`
    );
    check(
      struct.d_model === width && struct.num_heads === model.num_heads && isSize(inner) && isSize(vocabulary),
      kind
    );
    check(
      Number.isInteger(activation) && activation >= 0 && activation <= 5 && [0, 1, false, true].includes(struct.pre_norm),
      `${kind}.activation`
    );
    check(struct.format === (header.precision === "int8" ? 2 : 0), `${kind}.format`);
    check(
      Number.isFinite(struct.embedding_scale) && Number.isFinite(struct.norm_epsilon),
      `${kind}.embedding_scale`
    );
    layers.forEach((layer, l) => {
      const name = `${kind}.layers[${l}]`;
      checkLinear(layer?.self_qkv, width, 3 * width, `${name}.self_qkv`);
      checkLinear(layer.self_out, width, width, `${name}.self_out`);
      for (
        const part of
        /** @type {const} */
        ["cross_query", "cross_out"]
      ) {
        if (cross) checkLinear(layer[part], width, width, `${name}.${part}`);
        else check(layer[part] === null, `${name}.${part}`);
      }
      checkLinear(layer.expand, width, activation === 5 ? 2 * inner : inner, `${name}.expand`);
      checkLinear(layer.contract, inner, width, `${name}.contract`);
    });
    norms.forEach((norm, n) => checkNorm(norm, `${kind}.norms[${n}]`));
    checkNorm(struct.embedding_norm, `${kind}.embedding_norm`);
    checkMatrix(
      struct.embedding,
      tensors[struct.embedding]?.scale,
      vocabulary,
      width,
      `${kind}.embedding`
    );
    if (kind === "decoder") checkLinear(struct.output, width, vocabulary, "decoder.output");
    else check(struct.output === null, "encoder.output");
    const tables = positions?.[kind];
    check(
      tables && tables.learned === null === (model.positions !== "learned"),
      `positions.${kind}`
    );
    if (tables.learned !== null) {
      checkTensor(
        tables.learned,
        "float32",
        model.max_positions * width,
        `positions.${kind}.learned`
      );
    }
    check(tables.types === null === !model.token_types, `positions.${kind}.types`);
    if (tables.types !== null) {
      checkTensor(tables.types, "float32", model.token_types * width, `positions.${kind}.types`);
    }
  };
  const { encoder, decoder, head } = header;
  if (encoder) checkModel(encoder, "encoder");
  if (decoder) checkModel(decoder, "decoder");
  if (header.memory_kv) {
    check(
      Array.isArray(header.memory_kv) && header.memory_kv.length === decoder?.num_layers,
      "memory_kv"
    );
    header.memory_kv.forEach(
      (linear, l) => checkLinear(linear, width, 2 * width, `memory_kv[${l}]`)
    );
  }
  if (head) {
    checkLinear(head.pooler, width, width, "head.pooler");
    checkLinear(head.output, width, head.output?.outputs, "head.output");
  }
  if (decoder) {
    check(
      Object.values(header.special_ids).every((id) => id >= 0 && id < decoder.vocabulary),
      "special_ids"
    );
  }
}

// src/manyheads/web/engine/positions.js
var MIN_POSITIONS = 64;
var PositionTables = class {
  /** learned, types: Float32Array (N, D) or null.
      @param {EngineExports} exports
      @param {MemoryScope} scope
      @param {ModelSettings} settings
      @param {Float32Array | null} learned
      @param {Float32Array | null} types */
  constructor(exports, scope, settings, learned, types) {
    const { d_model: width, num_heads: heads } = settings;
    this.exports = exports;
    this.scope = scope;
    this.settings = settings;
    this.learned = learned;
    this.types = types;
    this.width = width;
    this.headDim = width / heads;
    this.count = 0;
    this.table = { signals: null, rotary: null };
  }
  /** Return the addresses of a table of at least `count` positions: signals (N, D), and rotary
      cosines and sines (N, E / 2, 2), or null.
      @type {(count: number) => { signals: number | null, rotary: number | null }} */
  tableFor(count) {
    if (this.learned && count > this.learned.length / this.width) {
      const limit = this.learned.length / this.width;
      throw new EngineError(
        `an input of ${count} tokens is longer than model.max_positions = ${limit}, the limit of this model.`
      );
    }
    if (count > this.count) {
      this.count = Math.max(MIN_POSITIONS, 2 * count);
      if (this.learned) this.count = Math.min(this.count, this.learned.length / this.width);
      const rotary = this.settings.positions === "rotary";
      const signals = rotary ? this.typeSignals(this.count) : this.addType(this.positionSignals(this.count));
      this.table = {
        signals: signals && this.scope.floats(signals),
        rotary: rotary ? this.scope.floats(this.compute("rotary_positions", this.count, this.headDim)) : null
      };
    }
    return this.table;
  }
  /** Return a table (count, width) that a function of the module computes.
      @type {(name: "sinusoidal_positions" | "rotary_positions", count: number, width: number) =>
        Float32Array} */
  compute(name, count, width) {
    const { memory } = this.scope;
    const start = memory.allocate(4 * count * width);
    this.exports[name](BigInt(count), BigInt(width), start);
    const table = memory.floats(start, count * width).slice();
    memory.release(start);
    return table;
  }
  /** Return the signals (count, D) of positions 0 to count - 1, without token types.
      @type {(count: number) => Float32Array} */
  positionSignals(count) {
    return this.learned ? this.learned.slice(0, count * this.width) : this.compute("sinusoidal_positions", count, this.width);
  }
  /** Return the embedding of token type 0, `count` times, without positions; null without token
      types.
      @type {(count: number) => Float32Array | null} */
  typeSignals(count) {
    return this.types && this.addType(new Float32Array(count * this.width));
  }
  /** Add the embedding of token type 0 to each position.
      @type {(signals: Float32Array) => Float32Array} */
  addType(signals) {
    if (this.types) {
      for (let i = 0; i < signals.length; i++) signals[i] += this.types[i % this.width];
    }
    return signals;
  }
  /** Return the signals (S, D) of the tokens of a text with these types, with or without positions;
      null if there is nothing to add.
      @type {(count: number, types: number[] | null, withPositions: boolean) => Float32Array |
        null} */
  tokenSignals(count, types, withPositions) {
    const { width } = this;
    const added = withPositions && this.settings.positions !== "rotary";
    if (!added && !this.types) return null;
    if (added) this.tableFor(count);
    const signals = added ? this.positionSignals(count) : new Float32Array(count * width);
    if (this.types) {
      for (let s = 0; s < count; s++) {
        const type = types?.[s] ?? 0;
        for (let i = 0; i < width; i++) signals[s * width + i] += this.types[type * width + i];
      }
    }
    return signals;
  }
};

// src/manyheads/web/engine/model.js
var STEPS_PER_CALL = 32;
var NAN_MESSAGE = "the model gave values that are not numbers (NaN): its weights are damaged.";
async function createEngine(wasmBytes) {
  if (typeof WebAssembly === "undefined") throw new EngineError("this browser has no WebAssembly.");
  let module;
  try {
    module = await WebAssembly.compile(wasmBytes);
  } catch (error) {
    throw new EngineError(
      `this browser cannot run WebAssembly with SIMD (${error.message}). Use a newer browser.`
    );
  }
  const { exports } = await WebAssembly.instantiate(module, {});
  return new Engine(
    /** @type {EngineExports} */
    /** @type {unknown} */
    exports
  );
}
var Engine = class {
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
          `the tensors of the model have ${written} bytes instead of ${header.bytes}.`
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
    const [value, low, high] = ["value", "low", "high"].map(
      (field) => this.memory.get("Failure", failure, field)
    );
    const quantity = this.memory.text(this.memory.get("Failure", failure, "quantity"));
    throw new EngineError(
      `the engine was given ${quantity} ${value}; the range is ${low}..${high}.`
    );
  }
};
var EngineModel = class {
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
      decoder: header.decoder?.num_layers ?? 0
    };
    this.vocabulary = header.decoder?.output.outputs ?? 0;
    this.embeddings = /* @__PURE__ */ new Map();
    this.encoder = header.encoder ? this.writeModel(header.encoder) : 0;
    this.decoder = header.decoder ? this.writeModel(header.decoder) : 0;
    this.memoryKv = header.memory_kv ? scope.structs(
      "Linear",
      header.memory_kv.map((linear) => this.pointers(linear))
    ) : 0;
    this.positions = Object.fromEntries(
      Object.entries(header.positions).map(([kind, { learned, types }]) => [
        kind,
        new PositionTables(
          engine.exports,
          scope,
          header.model,
          this.tensorFloats(learned),
          this.tensorFloats(types)
        )
      ])
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
          return [name, this.address(
            /** @type {number | null} */
            value
          )];
        }
        return [name, value !== null && typeof value === "object" ? this.pointers(value) : value];
      })
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
        layers.map((layer) => this.pointers(layer))
      ),
      norms: this.scope.structs(
        "LayerNorm",
        norms.map((norm) => this.pointers(norm))
      ),
      embedding: this.unpackEmbedding(embedding, vocabulary),
      vocabulary
    });
  }
  /** Unpack an embedding from panels (V / P, D, P) to rows (V, D); return their address.
      @type {(tensor: number, vocabulary: number) => number} */
  unpackEmbedding(tensor, vocabulary) {
    const unpacked = this.embeddings.get(tensor);
    if (unpacked !== void 0) return unpacked;
    const { width, memory } = this;
    const panel = this.engine.panelWidth;
    const { type, scale } = this.header.tensors[tensor];
    const start = this.scope.allocate(4 * vocabulary * width);
    const { buffer } = memory.memory;
    const packed = new (type === "int8" ? Int8Array : Float32Array)(
      buffer,
      this.address(tensor),
      Math.ceil(vocabulary / panel) * panel * width
    );
    const scales = scale === void 0 ? null : memory.floats(this.address(scale), vocabulary);
    const rows = memory.floats(start, vocabulary * width);
    for (let v = 0; v < vocabulary; v++) {
      const factor = scales ? scales[v] : 1;
      const first = Math.floor(v / panel) * panel * width + v % panel;
      for (let i = 0; i < width; i++) rows[v * width + i] = packed[first + i * panel] * factor;
    }
    this.embeddings.set(tensor, start);
    return start;
  }
  /** Return a view of the token embedding (V, D) of the encoder or decoder; it is valid until the
      memory grows.
      @type {(side: "encoder" | "decoder") => Float32Array} */
  embeddingRows(side) {
    const { embedding, vocabulary } = (
      /** @type {ModelHeader} */
      this.header[side]
    );
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
        `${factors.length} factors of heads were given, but there are ${count} heads.`
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
      const weights = options.attention ? scratch.allocate(4 * layers * length * heads * length) : 0;
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
          factors: this.headFactors(scratch, options.headFactors?.encoder, layers)
        },
        output
      });
      const memoryLayers = this.memoryKv ? this.layers.decoder : 0;
      const memoryAddresses = Array.from(
        { length: 2 * memoryLayers },
        () => encodingScope.allocate(4 * length * width)
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
        1
      );
      return {
        length,
        pointers,
        memoryAddresses,
        // addresses of keys and values (H, S, E) of each decoder layer
        attention: weights ? transposeHeads(
          memory.floats(weights, layers * length * heads * length),
          layers,
          length,
          heads,
          length
        ) : new Float32Array(0),
        vectors: memory.floats(vectors, vectors && layers * length * 3 * width).slice(),
        output: memory.floats(output, output && length * width).slice(),
        release: () => encodingScope.close()
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
      settings.pooler === "tanh" ? Math.tanh : (x) => Math.max(x, 0)
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
      const linear = (
        /** @type {NonNullable<EngineHeader["head"]>} */
        this.header.head[name]
      );
      const { outputs } = linear;
      const result = scope.allocate(4 * outputs);
      this.engine.exports.linear_layer(
        scope.struct("Linear", this.pointers(linear)),
        BigInt(this.format),
        scope.floats(vector),
        1n,
        scope.allocate(4 * vector.length + 128),
        result
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
        allLogits: true
      });
      return {
        logits,
        attention: { ...attention, ...encoding && { encoder: encoding.attention } }
      };
    } finally {
      encoding?.release();
    }
  }
  /** Return the attention {decoder (L, H, T, T), cross (L, H, T, S)} of a target to an encoded
      source; options as in `forward`.
      @param {Encoding | null} encoding @param {number[]} target @param {EngineOptions} options */
  targetAttention(encoding, target, options = {}) {
    return this.decodeTarget(encoding, target, { ...options, attention: true, withLogits: false }).attention;
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
    const pick = (array, first, stride, count) => {
      const result = new Float32Array(count * headDim);
      for (let i = 0; i < count; i++) {
        result.set(array.subarray(first + i * stride, first + i * stride + headDim), i * headDim);
      }
      return result;
    };
    const pickAll = (array, first, stride, count) => {
      const [queries, keys, values] = [0, 1, 2].map(
        (i) => pick(array, first + i * width + head * headDim, stride, count)
      );
      return { queries, keys, values };
    };
    const encoding = source && this.encode(source, { ...options, vectors: kind === "encoder" });
    const encoded = (
      /** @type {Encoding} */
      encoding
    );
    let cache = null;
    try {
      if (kind === "encoder") {
        return pickAll(
          encoded.vectors,
          layer * encoded.length * 3 * width,
          3 * width,
          encoded.length
        );
      }
      cache = new DecoderCache(this, encoding, target.length, options);
      const { vectors } = cache.append(target, { causal: options.causal, vectors: kind });
      if (kind === "decoder") {
        return pickAll(vectors, layer * 3 * width, this.layers.decoder * 3 * width, target.length);
      }
      const size = encoded.length * headDim;
      const [keys, values] = encoded.memoryAddresses.slice(2 * layer, 2 * layer + 2).map((address) => this.memory.floats(address + 4 * head * size, size).slice());
      return {
        queries: pick(
          vectors,
          layer * width + head * headDim,
          this.layers.decoder * width,
          target.length
        ),
        keys,
        values
      };
    } finally {
      cache?.release();
      encoding?.release();
    }
  }
};
var DecoderCache = class {
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
      this.store = this.scope.allocate(4 * layers.decoder * 2 * capacity * width);
      this.factors = Object.fromEntries(
        ["decoder", "cross"].map((kind) => [
          kind,
          model.headFactors(this.scope, options.headFactors?.[kind], layers.decoder)
        ])
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
  append(tokens, { allLogits = false, attention = false, causal = true, vectors = null, withLogits = true } = {}) {
    const { model } = this;
    if (this.length + tokens.length > this.capacity) {
      throw new Error(`${tokens.length} tokens do not fit into the KV cache.`);
    }
    const size = causal && !attention && !vectors ? STEPS_PER_CALL : tokens.length;
    const logits = new Float32Array(
      withLogits ? (allLogits ? tokens.length : 1) * model.vocabulary : 0
    );
    let captured = { attention: {}, vectors: new Float32Array(0) };
    for (let first = 0; first < tokens.length; first += size) {
      const chunk = tokens.slice(first, first + size);
      captured = this.appendChunk(
        chunk,
        { allLogits, attention, causal, vectors, withLogits },
        (rows) => logits.set(rows, allLogits ? first * model.vocabulary : 0)
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
        cross: layers.decoder * heads * sourceLength
      };
      const weights = attention ? {
        decoder: scratch.allocate(4 * rows * sizes.decoder),
        cross: scratch.allocate(4 * rows * sizes.cross)
      } : null;
      const perStep = kind ? layers.decoder * (kind === "decoder" ? 3 : 1) * model.width : 0;
      const vectors = kind ? scratch.allocate(4 * rows * perStep) : 0;
      const headFields = (name, t) => ({
        weights: weights ? weights[name] + 4 * t * sizes[name] : 0,
        factors: this.factors[name],
        vectors: kind === name ? vectors + 4 * t * perStep : 0
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
          cross_heads: headFields("cross", t)
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
        1
      );
      this.length = total;
      if (withLogits) {
        onLogits(
          allLogits ? memory.floats(logits, rows * vocabulary) : memory.floats(logits + 4 * (rows - 1) * vocabulary, vocabulary)
        );
      }
      return {
        attention: weights ? this.collectWeights(weights, rows, cached, total, causal) : {},
        vectors: memory.floats(vectors, rows * perStep).slice()
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
      rotary: rotary ? rotary + 4 * position * headDim : 0
    };
  }
  /** Gather the attention of T steps, each (L, H, N), into (L, H, T, total) and (L, H, T, S).
      @type {(weights: { decoder: number, cross: number }, rows: number, cached: number, total:
        number, causal: boolean) => { [kind: string]: Float32Array }} */
  collectWeights(weights, rows, cached, total, causal) {
    const { memory, encoding } = this;
    const { layers, heads } = this.model;
    const count = layers.decoder * heads;
    const collect = (start, longest, lengthOf) => {
      const result = new Float32Array(count * rows * longest);
      for (let t = 0; t < rows; t++) {
        const length = lengthOf(t);
        const step = memory.floats(start + 4 * t * count * longest, count * length);
        for (let head = 0; head < count; head++) {
          result.set(
            step.subarray(head * length, (head + 1) * length),
            (head * rows + t) * longest
          );
        }
      }
      return result;
    };
    return {
      decoder: collect(weights.decoder, total, (t) => causal ? cached + t + 1 : total),
      ...encoding && { cross: collect(weights.cross, encoding.length, () => encoding.length) }
    };
  }
};
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

// src/manyheads/web/text/assigned.js
var RANGES = `
  oo 2 6 4 7 1 1 1 k 1 b1 1 12 2 1e 2 3 1 1j 8 r 4 6 b 7i 1 1o 2 2t e 1n 2 1d 2 f 1 s 2 1 1 b 5 v
  1 2 6 6k 1 8 2 2 2 m 1 7 1 1 3 4 2 9 2 2 2 4 8 1 4 2 1 5 2 p 2 3 1 6 4 2 2 m 1 7 1 2 1 2 1 2 2 1
  1 5 4 2 2 3 3 1 7 4 1 1 7 h a 3 1 9 1 3 1 m 1 7 1 2 1 5 2 a 1 3 1 3 2 1 f 4 2 c 7 7 1 3 1 8 2 2
  2 m 1 7 1 2 1 5 2 9 2 2 2 3 7 3 4 2 1 5 2 i a 2 1 6 3 3 1 4 3 2 1 1 1 2 3 2 3 3 3 c 4 5 3 3 1 4
  2 1 6 1 e l 5 d 1 3 1 n 1 g 2 9 1 3 1 4 7 2 1 3 2 1 2 4 2 a 7 m 1 3 1 n 1 a 1 5 2 9 1 3 1 4 7 2
  6 2 1 4 2 a 1 2 d d 1 3 1 1f 1 3 1 6 4 g 2 q 1 3 1 i 3 o 1 9 1 1 2 7 3 1 4 6 1 1 1 8 6 a 2 3 c
  1m 4 t 11 2 1 1 1 5 1 o 1 1 1 n 2 5 1 1 1 6 2 a 2 4 w 20 1 10 4 13 1 10 1 f 1 d 11 5i 1 1 5 1 2
  ah 1 4 2 7 1 1 1 4 2 15 1 4 2 x 1 4 2 7 1 1 1 4 2 f 1 1l 1 4 2 1v 2 w 3 q 6 2e 2 6 2 il 3 2h 7 m
  9 o 9 k c d 1 3 1 2 c 2m 2 a 6 a 6 q 6 2h 7 17 5 1y a v 1 c 4 c 4 1 3 16 2 5 b 18 4 q 6 b 3 1q 2
  1t 1 t 2 b 6 a 6 e 2 v 1d 25 3 1b 1 38 8 1o 3 f 3 1o 7 17 2 b 8 17 5 eu 2 6 2 12 2 6 2 8 1 1 1 1
  1 1 1 v 2 1h 1 f 1 e 2 6 1 j 2 3 1 9 1 2t 1 c 2 r 1 d 3 x f x f 3w 4 if p b l 1ec 2 w 1 9p 5 19
  1 1 5 1 2 1k 7 2 e o 9 7 1 7 1 7 1 7 1 7 1 7 1 7 1 7 1 3i y q 1 2h c 5y q c 4 1s 1 2e 2 2v 5 17
  1 2m 1 2c c 1b 1 mlp 3 1j 9 9o k 54 8 5n 5 2 1 1 1 5 o 1n 3 a 6 1k 8 1y 8 c 6 38 b u 3 26 1 b 4
  x 1 1j 9 e 2 a 2 2v o s a 6 2 6 2 6 9 7 1 7 1 1o 4 3i 2 a 6 8mc c n 4 1d 4 6su 2 2y 12 7 c 5 5 q
  1 5 1 1 1 2 1 2 1 3h g cd 2 1i 7 1 w 16 6 1f 1 j 1 4 4 5 1 3r 2 1 1 5a 3 6 2 6 2 6 2 3 3 7 1 7 a
  5 2 c 1 q 1 j 1 2 1 f 2 e y 3f 5 3 4 19 3 2g 1 d 3 1 1b 1a 3m t 3 1d f s 4 10 9 u 5 17 5 u 1 11
  4 e 16 4e 2 a 6 10 4 10 4 14 8 1g b c 1 f 1 7 1 2 1 b 1 f 1 7 1 2 1v 8n 9 m a 8 o 6 1 16 1 9 1x
  6 2 1 1 18 1 2 3 1 2 n 1 20 8 9 1c j 1 2 5 x 3 r 5 1 1s 1k 4 k 2 1e 1 2 5 8 1 3 1 t 2 3 4 a 7 9
  7 1s w 13 4 c 9 1i 3 t 2 r 5 q 7 4 c 7 28 21 1j 1f d 1f 7 1a 8 a 86 v 1 16 1 3 2 2 26 14 8 16 m
  q 12 s k n 9 26 4 10 9 1w a 1 2 p 7 a 6 1h 1 i 8 13 9 2o 1 k b i 1 18 1t 7 1 1 1 4 1 f 1 b 6 1n
  5 a 6 4 1 8 2 2 2 m 1 7 1 2 1 5 1 a 2 2 2 3 2 1 6 1 5 7 2 7 3 5 3v 2k 1 5 u 20 8 a 4m 1i 2 12 y
  1x b a 6 d j 1m 6 a 1i r 2 f 4 n 55 1o 2s 2b c 8 2 1 2 8 1 2 1 u 1 2 2 c 9 a 1y 8 2 1a 2 b r 20
  8 2b d 21 7b 9 1 19 1 e a t 3 w 2 m 1 e 21 7 1 2 1 18 3 1 1 2 1 9 8 a 6 6 1 2 1 11 1 2 1 6 7 a
  8m p 53 1 f 1e d pn 2u 33 1 5 b 5g 218 2r d tr 1 9 347 g7 6nt ft 7 v 1 a 4 29 1 a 6 u 2 6 a 1y a
  a 1 7 1 l 5 j j4 2j 2t 23 4 1l 7 h 1s 5 b 2 e 4qg 8 ye 16 9 6w7 4 1 7 1 2 1 83 19 3 h 4 8 b0 1s4
  2z 5 d 3 9 7 a 2 8 3mk 1a 2 n 9 38 1o 6u a 13 2 5e l 1y 4a k c 2f 9 p 3r 2d 1 1z 1 2 2 1 2 2 2 4
  1 c 1 1 1 7 1 1t 1 4 2 8 1 7 1 s 1 4 1 5 1 1 3 7 1 9g 2 84 2 ji f 5 1 f uo v 69 7 1 h 2 7 1 2 1
  5 5x 19 3 e 2 a 4 2 8w v h 1m 5 1 yo 7 1 4 1 2 1 f 1 5h 2 g 15 24 4 a 4 2 lt 1w 24 1p 5e 4 1 r 1
  2 1 1 2 1 1 a 1 4 1 1 1 1 6 1 4 1 1 1 1 1 1 3 1 2 1 1 2 1 1 1 1 1 1 1 1 1 1 2 1 1 2 4 1 7 1 4 1
  4 1 1 1 a 1 h 5 3 1 5 1 h 1g 2 7i 18 4 2s c f 2 f 1 f 1 11 a 4u 1k t d 18 4 9 7 2 e 6 4a rc 5 g
  3 d 3 38 c 2h 7 c 4 1 f c 4 1k 8 a 6 14 8 u 2 2 26 9g c e 2 5 3 5 3 7 9 t 3 b 5 6 a a 6 8 8 7 9
  43 1 1j 11 a sm 2t4w e1oh 1 u 2o 3k 6o 1e6o 1eke 2 1eke 2
`;

// src/manyheads/web/text/unicode.js
var WHITE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
var code = 0;
var RANGES_OF_NEW = RANGES.trim().split(/\s+/).map((length, index) => {
  const first = String.fromCodePoint(code);
  code += parseInt(length, 36);
  return index % 2 ? `${first}-${String.fromCodePoint(code - 1)}` : "";
});
var NEW = new RegExp(`[${RANGES_OF_NEW.join("")}]`, "gu");
var BLANK_RUN = new RegExp(`[${WHITE}]+`, "u");
var LEADING_BLANKS = new RegExp(`^[${WHITE}]+`, "u");
var ONE_BLANK = new RegExp(`^[${WHITE}]$`, "u");
var LETTER_OR_NUMBER = /^[\p{L}\p{N}]+$/u;
var DECIMAL_OR_DIGIT = new RegExp(
  "^[\\p{Nd}\\xb2\\xb3\\xb9\\u1369-\\u1371\\u19da\\u2070\\u2074-\\u2079\\u2080-\\u2089\\u2460-\\u2468\\u2474-\\u247c\\u2488-\\u2490\\u24ea\\u24f5-\\u24fd\\u24ff\\u2776-\\u277e\\u2780-\\u2788\\u278a-\\u2792\\u{10a40}-\\u{10a43}\\u{10e60}-\\u{10e68}\\u{11052}-\\u{1105a}\\u{1f100}-\\u{1f10a}]+$",
  "u"
);
var WIDE = new RegExp(
  "^(?![\\u{1f1e6}-\\u{1f1ff}])[\\p{Emoji_Presentation}\\u1100-\\u115f\\u2329\\u232a\\u2e80-\\u303e\\u3041-\\u3247\\u3250-\\u4dbf\\u4e00-\\ua4c6\\ua960-\\ua97c\\uf900-\\ufaff\\ufe10-\\ufe19\\ufe30-\\ufe6b\\uff01-\\uff60\\uffe0-\\uffe6\\u{16fe0}-\\u{1b2fb}\\u{1f200}-\\u{1f265}\\u{20000}-\\u{3fffd}]$",
  "u"
);
var known = (text) => text.replace(NEW, (character) => character.length > 1 ? "\u{F0000}" : "\uE000").replace(/[\u{20000}-\u{3ffff}]/gu, "\u{20000}");
function onKnown(change, text) {
  const found = text.match(NEW);
  return found ? change(text.replace(NEW, "\uFFFF")).replace(/\uffff/g, () => found.shift() ?? "") : change(text);
}
var isBlank = (character) => ONE_BLANK.test(character);
var hasText = (text) => /[^\p{White_Space}\p{Cc}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]/u.test(text);
var hasLetters = (text) => new RegExp("(?!\\p{Default_Ignorable_Code_Point})\\p{L}", "u").test(known(text));
var isAlphanumeric = (text) => LETTER_OR_NUMBER.test(known(text));
var isDigits = (text) => DECIMAL_OR_DIGIT.test(text);
var isUpper = (text) => new RegExp("\\p{Uppercase}", "u").test(text) && !/[\p{Lowercase}\p{Lt}]/u.test(text);
var isWide = (character) => WIDE.test(known(character));
var isCombining = (character) => character === "\u0345" || !/[\u0f73\u0f75\u0f81]/.test(character) && !`\u0345${known(character)}`.normalize("NFD").startsWith("\u0345");
var wellFormed = (text) => text.replace(new RegExp("\\p{Cs}", "gu"), "\uFFFD");
var splitBlanks = (text) => text.split(BLANK_RUN).filter(Boolean);
var stripStart = (text) => text.replace(LEADING_BLANKS, "");
function stripEnd(text) {
  let end = text.length;
  while (end && isBlank(text[end - 1])) end -= 1;
  return text.slice(0, end);
}
var strip = (text) => stripEnd(stripStart(text));
var characterAt = (text, index) => index < text.length ? String.fromCodePoint(text.codePointAt(index) ?? 0) : "";
var characterBefore = (text, index) => {
  const pair = index > 1 && (text.codePointAt(index - 2) ?? 0) > 65535;
  return text.slice(index - (pair ? 2 : 1), index);
};
function moveOffset(text, index, characters) {
  let moved = index;
  for (let remaining = characters; remaining > 0 && moved < text.length; remaining -= 1) {
    moved += characterAt(text, moved).length;
  }
  for (let remaining = characters; remaining < 0 && moved > 0; remaining += 1) {
    moved -= characterBefore(text, moved).length;
  }
  return moved;
}
function titleCase(character) {
  const code2 = character.codePointAt(0) ?? 0;
  if (code2 >= 4304 && code2 <= 4351) return character;
  if (code2 >= 452 && code2 <= 460) {
    return String.fromCharCode(453 + 3 * Math.floor((code2 - 452) / 3));
  }
  if (code2 >= 497 && code2 <= 499) return "\u01F2";
  const upper = character.toUpperCase();
  if (/[ß\u0587\ufb00-\ufb06\ufb13-\ufb17]/.test(character)) {
    return upper[0] + upper.slice(1).toLowerCase();
  }
  if (code2 >= 8064 && code2 <= 8188 && upper.length > 1 && upper.endsWith("\u0399")) {
    return `${upper.slice(0, -1)}\u0345`.normalize("NFC");
  }
  return upper;
}
function caseLocale(language) {
  const base = language.split("-")[0];
  return ["az", "crh", "gag", "tr"].includes(base) ? "tr" : base === "lt" ? "lt" : "";
}
var lowerCase = (text, language) => onKnown((changed) => changed.toLocaleLowerCase(caseLocale(language) || "en"), text);
var upperCase = (text, language) => onKnown((changed) => changed.toLocaleUpperCase(caseLocale(language) || "en"), text);
function capitalize(text, language = "") {
  const first = characterAt(text, 0);
  if (caseLocale(language)) {
    return upperCase(first, language) + lowerCase(text.slice(first.length), language);
  }
  return onKnown((changed) => {
    const start = characterAt(changed, 0);
    return start && titleCase(start) + changed.toLowerCase().slice(start.toLowerCase().length);
  }, text);
}

// src/manyheads/web/text/normalize.js
var CONTROL_CHARACTERS = new RegExp(`(?![${WHITE}])[\\p{Cc}\\ufeff]`, "gu");
var NO_BREAK = /[\xa0\u202f]/g;
var SPACES = new RegExp(`[${WHITE}]+`, "gu");
var compose = (text) => onKnown((known2) => known2.normalize("NFC"), wellFormed(text).replace(CONTROL_CHARACTERS, ""));
var clean = (text) => strip(compose(text));
var normalize = (text) => splitBlanks(compose(text)).join(" ");
var unify = (text) => compose(text).replace(/\r\n?/g, "\n");
var lower = (text) => onKnown((known2) => known2.toLowerCase().normalize("NFC"), text);
var normalizeTarget = (text) => clean(text).replace(SPACES, (run) => run.replace(NO_BREAK, "") ? " " : run[0]);
function sourceForm(text, { invisible, unspaced, wide, eastAsian, eastAsianWide }) {
  const bare = text.replace(invisible, "");
  const joined = bare.search(unspaced) < 0 ? bare.replaceAll("\u200B", "") : bare;
  const folded = joined.replace(
    joined.search(eastAsian) < 0 ? wide : eastAsianWide,
    (run) => run.normalize("NFKC")
  );
  return folded.replace(NO_BREAK, " ");
}

// src/manyheads/web/text/utf8.js
var UTF8 = new TextEncoder();
var STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
var utf8Bytes = (text) => UTF8.encode(text);
function decodeStrictUtf8(bytes) {
  try {
    return STRICT_UTF8.decode(Uint8Array.from(bytes));
  } catch {
    return null;
  }
}
function brokenCharacters(bytes) {
  const broken = [];
  if (decodeStrictUtf8(bytes) !== null) return broken;
  for (let start = 0; start < bytes.length; ) {
    const lead = bytes[start];
    const length = lead < 128 ? 1 : lead < 224 ? 2 : lead < 240 ? 3 : 4;
    if (decodeStrictUtf8(bytes.slice(start, start + length)) !== null) {
      start += length;
      continue;
    }
    let end = start + 1;
    while (end < start + length && end < bytes.length && isBeginning(bytes.slice(start, end + 1), length)) {
      end += 1;
    }
    broken.push([start, end]);
    start = end;
  }
  return broken;
}
function isBeginning(bytes, length) {
  const rest = new Array(length - bytes.length);
  return decodeStrictUtf8([...bytes, ...rest.fill(128)]) !== null || decodeStrictUtf8([...bytes, ...rest.fill(191)]) !== null;
}
function decodeUtf8(bytes) {
  const valid = decodeStrictUtf8(bytes);
  if (valid !== null) return valid;
  let text = "";
  let start = 0;
  for (const [first, last] of [...brokenCharacters(bytes), [bytes.length, bytes.length]]) {
    text += decodeStrictUtf8(bytes.slice(start, first));
    start = last;
  }
  return text;
}
var bytePiece = (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
function fromBase64(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let index = 0; index < letters.length; index += 1) bytes[index] = letters.charCodeAt(index);
  return bytes;
}

// src/manyheads/web/text/base.js
var UNK = 0;
var PAD = 1;
var BOS = 2;
var EOS = 3;
var SPECIALS = ["<unk>", "<pad>", "<s>", "</s>"];
var Tokenizer = class {
  size = 0;
  /** @type {boolean | undefined} */
  letters;
  /** @param {TokenizerDescription} description */
  constructor({ kind, lowercase = false, keepSpace = false, marksBetween = 1, side = "", marks }) {
    this.kind = kind;
    this.lowercase = lowercase;
    this.keepSpace = keepSpace;
    this.marksBetween = marksBetween;
    this.side = side;
    this.marks = marks && Object.fromEntries(
      Object.entries(marks).map(([name, pattern]) => [name, new RegExp(pattern, "gu")])
    );
  }
  /** Return the tokenizer with the normal form of a side.
      @param {"" | "source" | "target"} side */
  forSide(side) {
    return Object.assign(Object.create(Object.getPrototypeOf(this)), this, { side });
  }
  /** Return the token ids of a text.
      @type {(text: string) => number[]} */
  encode() {
    throw new Error("a subclass encodes");
  }
  /** Return the text of token ids.
      @type {(ids: number[]) => string} */
  decode() {
    throw new Error("a subclass decodes");
  }
  /** Return the texts of token ids for display.
      @type {(ids: number[]) => string[]} */
  pieces() {
    throw new Error("a subclass has pieces");
  }
  /** Whether text with letters can be encoded; not so in a task of numbers alone. */
  get knowsLetters() {
    this.letters ??= this.kind === "bytes" || this.pieces(
      Array.from({ length: this.size - SPECIALS.length }, (_, i) => SPECIALS.length + i)
    ).some((piece) => !piece.startsWith("<0x") && hasLetters(piece));
    return this.letters;
  }
  /** Return a source without typographic marks; any other text as it is.
      @type {(text: string) => string} */
  formed(text) {
    return this.side === "source" && this.marks ? sourceForm(text, this.marks) : text;
  }
  /** Normalise a text, and lower-case it if the tokenizer was trained so.
      @type {(text: string) => string} */
  prepare(text) {
    const normal = this.keepSpace ? unify(text) : this.side === "target" ? normalizeTarget(text) : normalize(this.formed(text));
    return this.lowercase ? lower(normal) : normal;
  }
  /** Return a copy of the ids; throw a RangeError if one is outside the vocabulary.
      @type {(ids: number[]) => number[]} */
  check(ids) {
    const invalid = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= this.size);
    if (invalid !== void 0) {
      throw new RangeError(`token id ${invalid} is outside this vocabulary of ${this.size}`);
    }
    return [...ids];
  }
  /** The byte of UTF-8 of each id that stands for one: a Map.
      @type {Map<number, number>} */
  byteValues = /* @__PURE__ */ new Map();
  /** Leave out ids of bytes that form no character; if exactly one character of the text `source`
      begins with them, complete it. Returns { whole, broken }: the ids, and the number of broken
      characters.
      @type {(ids: number[], source?: string) => { whole: number[], broken: number }} */
  wholeCharacters(ids, source = "") {
    const values = this.byteValues;
    const whole = [];
    let broken = 0;
    if (!ids.some((id) => values.has(id))) return { whole: [...ids], broken };
    for (let start = 0, end; start < ids.length; start = end) {
      for (end = start; end < ids.length && values.has(ids[end]); ) end += 1;
      const bytes = ids.slice(start, end).flatMap((id) => values.get(id) ?? []);
      let kept = 0;
      for (const [first, last] of brokenCharacters(bytes)) {
        whole.push(
          ...ids.slice(start + kept, start + first),
          ...this.completed(bytes.slice(first, last), source)
        );
        kept = last;
        broken += 1;
      }
      whole.push(...ids.slice(start + kept, end));
      for (; end < ids.length && !values.has(ids[end]); end += 1) whole.push(ids[end]);
    }
    return { whole, broken };
  }
  /** The ids of the placeholders of literals, all or none (manyheads/text/reserved.py).
      @type {number[]} */
  placeholderIds = [];
  /** Return the text of the output of a model; `source` as in wholeCharacters.
      @type {(ids: number[], source?: string) => string} */
  outputText(ids, source = "") {
    return this.decode(this.wholeCharacters(ids, source).whole);
  }
  /** Return the ids of the only character of a text with this beginning in UTF-8; [] if there is
      not one.
      @type {(beginning: number[], source: string) => number[]} */
  completed(beginning, source) {
    const found = [...new Set(source)].filter(
      (character) => beginning.every((byte, index) => utf8Bytes(character)[index] === byte)
    );
    if (found.length !== 1) return [];
    const ids = new Map([...this.byteValues].map(([id, byte]) => [byte, id]));
    return [...utf8Bytes(found[0])].flatMap((byte) => ids.get(byte) ?? []);
  }
  /** Return the ids without padding, begin and end symbols.
      @type {(ids: number[]) => number[]} */
  textIds(ids) {
    return this.check(ids).filter((id) => id === UNK || id > EOS);
  }
  /** Decode each run of known ids by `decode`, and each run of unknown ids as one "<unk>"; join the
      texts by blanks.
      @type {(ids: number[], decode: (run: number[]) => string) => string} */
  decodeRuns(ids, decode) {
    const runs = [];
    for (const id of this.textIds(ids)) {
      const last = runs.at(-1);
      if (last && last[0] === UNK === (id === UNK)) last.push(id);
      else runs.push([id]);
    }
    return runs.map((run) => run[0] === UNK ? SPECIALS[UNK] : decode(run)).join(" ");
  }
};

// src/manyheads/web/text/merges.js
function mergeSymbols(symbols, pairRank) {
  const texts = [...symbols];
  const next = texts.map((_, index) => index + 1);
  const previous = texts.map((_, index) => index - 1);
  const heap = new PairHeap();
  const add = (left, right) => {
    if (left < 0 || right >= texts.length) return;
    const rank = pairRank(texts[left], texts[right]);
    if (rank !== void 0) {
      heap.push({ rank, left, right, length: texts[left].length + texts[right].length });
    }
  };
  for (let left = 0; left < texts.length - 1; left += 1) add(left, left + 1);
  for (let pair = heap.pop(); pair; pair = heap.pop()) {
    const { left, right, length } = pair;
    if (!texts[left] || !texts[right] || texts[left].length + texts[right].length !== length) {
      continue;
    }
    texts[left] += texts[right];
    texts[right] = "";
    next[left] = next[right];
    if (next[right] < texts.length) previous[next[right]] = left;
    add(previous[left], left);
    add(left, next[left]);
  }
  return texts.filter(Boolean);
}
var PairHeap = class {
  /** @type {SymbolPair[]} */
  pairs = [];
  /** @type {(pair: SymbolPair) => void} */
  push(pair) {
    const { pairs } = this;
    let index = pairs.length;
    for (let parent; index && comesBefore(pair, pairs[parent = index - 1 >> 1]); index = parent) {
      pairs[index] = pairs[parent];
    }
    pairs[index] = pair;
  }
  /** @type {() => SymbolPair | undefined} */
  pop() {
    const { pairs } = this;
    const first = pairs[0];
    const last = pairs.pop();
    if (!last || !pairs.length) return first;
    let index = 0;
    for (let child = 1; child < pairs.length; child = 2 * index + 1) {
      if (child + 1 < pairs.length && comesBefore(pairs[child + 1], pairs[child])) child += 1;
      if (!comesBefore(pairs[child], last)) break;
      pairs[index] = pairs[child];
      index = child;
    }
    pairs[index] = last;
    return first;
  }
};
var comesBefore = (a, b) => a.rank < b.rank || a.rank === b.rank && a.left < b.left;

// src/manyheads/web/text/huggingface.js
var UNICODE_WHITE = "\\t-\\r\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
var UNICODE_BLANKS = new RegExp(`[${UNICODE_WHITE}]`, "gu");
var PretrainedTokenizer = class extends Tokenizer {
  /** @param {TokenizerDescription} description */
  constructor(description) {
    super(description);
    this.symbols = [...SPECIALS, ...description.symbols];
    this.size = this.symbols.length;
    this.unusedRows = new Set(description.rows);
    const added = new Set(description.added);
    this.ids = /* @__PURE__ */ new Map();
    this.symbols.forEach((symbol, id) => {
      if (id >= SPECIALS.length && !this.unusedRows.has(id) && !added.has(id)) {
        this.ids.set(symbol, id);
      }
    });
  }
  /** @type {(ids: number[]) => string} */
  decode(ids) {
    return this.decodeRuns(ids, (run) => {
      const used = run.filter((id) => !this.unusedRows.has(id));
      return this.decodeTokens(used.map((id) => this.symbols[id]));
    });
  }
  /** @type {(ids: number[]) => string[]} */
  pieces(ids) {
    return this.check(ids).map(
      (id) => id < SPECIALS.length || this.unusedRows.has(id) ? this.symbols[id] : this.displayText(this.symbols[id])
    );
  }
  /** Join tokens to a text.
      @type {(tokens: string[]) => string} */
  decodeTokens() {
    throw new Error("a subclass joins tokens");
  }
  /** Return the text of a token for display.
      @type {(symbol: string) => string} */
  displayText(symbol) {
    return symbol;
  }
};
var CHINESE = new RegExp(
  "[\\u4e00-\\u9fff\\u3400-\\u4dbf\\u{20000}-\\u{2a6df}\\u{2a700}-\\u{2b81f}\\u{2b920}-\\u{2ceaf}\\uf900-\\ufaff\\u{2f800}-\\u{2fa1f}]",
  "gu"
);
var BERT_WORDS = new RegExp(`[\\p{P}$+<=>^\`|~]|[^\\p{P}$+<=>^\`|~${UNICODE_WHITE}]+`, "gu");
var CLEAN_UPS = [
  [" .", "."],
  [" ?", "?"],
  [" !", "!"],
  [" ,", ","],
  [" ' ", "'"],
  [" n't", "n't"],
  [" 'm", "'m"],
  [" do not", " don't"],
  [" 's", "'s"],
  [" 've", "'ve"],
  [" 're", "'re"]
];
var WordPieceTokenizer = class extends PretrainedTokenizer {
  /** @param {TokenizerDescription} description */
  constructor(description) {
    super(description);
    this.settings = /** @type {WordPieceSettings} */
    description.wordpiece;
  }
  /** @type {(text: string) => number[]} */
  encode(text) {
    return this.words(text).flatMap((word) => this.wordPieces(word));
  }
  /** Return the words and punctuation marks of a text.
      @type {(text: string) => string[]} */
  words(text) {
    return this.normalizeText(wellFormed(text)).match(BERT_WORDS) ?? [];
  }
  /** Normalise a text as BERT's normaliser does.
      @type {(text: string) => string} */
  normalizeText(text) {
    const { cleanText, splitChinese, stripAccents, lowerText } = this.settings;
    let normal = text;
    if (cleanText) {
      normal = normal.replace(/[\0\ufffd]|(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}]/gu, "").replace(UNICODE_BLANKS, " ");
    }
    if (splitChinese) normal = normal.replace(CHINESE, " $& ");
    if (stripAccents) normal = normal.normalize("NFD").replace(new RegExp("\\p{Mn}", "gu"), "");
    return lowerText ? Array.from(normal, (character) => character.toLowerCase()).join("") : normal;
  }
  /** Return the ids of a word; the unknown id if it cannot be divided into pieces.
      @type {(word: string) => number[]} */
  wordPieces(word) {
    const { longestWord, unknown, prefix } = this.settings;
    const characters = [...word];
    if (characters.length > longestWord) return [unknown];
    const ids = [];
    for (let start = 0; start < characters.length; ) {
      let end = characters.length;
      let id;
      for (; end > start; end -= 1) {
        id = this.ids.get((start ? prefix : "") + characters.slice(start, end).join(""));
        if (id !== void 0) break;
      }
      if (id === void 0) return [unknown];
      ids.push(id);
      start = end;
    }
    return ids;
  }
  /** Join tokens to a text; remove the blanks before punctuation marks if `cleanUp` is set.
      @type {(tokens: string[]) => string} */
  decodeTokens(tokens) {
    const { prefix, cleanUp } = this.settings;
    return tokens.map((token, index) => {
      const text = !index ? token : token.startsWith(prefix) ? token.slice(prefix.length) : ` ${token}`;
      return cleanUp ? CLEAN_UPS.reduce((clean2, [old, shorter]) => clean2.replaceAll(old, shorter), text) : text;
    }).join("");
  }
};
var BYTE_LEVEL_WORDS = new RegExp(
  `'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^${UNICODE_WHITE}\\p{L}\\p{N}]+|[${UNICODE_WHITE}]+(?![^${UNICODE_WHITE}])|[${UNICODE_WHITE}]+`,
  "gu"
);
var BYTE_CHARACTERS = [];
for (let byte = 0, others = 0; byte < 256; byte += 1) {
  const printable = byte > 32 && byte < 127 || byte > 160 && byte !== 173;
  BYTE_CHARACTERS.push(String.fromCharCode(printable ? byte : 256 + others++));
}
var BYTE_OF_CHARACTER = new Map(BYTE_CHARACTERS.map((character, byte) => [character, byte]));
function bytesOf(symbol) {
  const bytes = [...symbol].flatMap((character) => BYTE_OF_CHARACTER.get(character) ?? []);
  return bytes.length === [...symbol].length ? bytes : null;
}
var ByteLevelTokenizer = class extends PretrainedTokenizer {
  /** @param {TokenizerDescription} description */
  constructor(description) {
    super(description);
    this.addBlank = description.bytelevel.addBlank;
    this.ranks = new Map(description.bytelevel.merges.map((pair, rank) => [pair, rank]));
  }
  /** @type {(text: string) => number[]} */
  encode(text) {
    const valid = wellFormed(text);
    const prepared = this.addBlank && valid && !valid.startsWith(" ") ? ` ${valid}` : valid;
    const rank = (left, right) => this.ranks.get(`${left} ${right}`);
    return (prepared.match(BYTE_LEVEL_WORDS) ?? []).flatMap((word) => {
      const symbols = Array.from(utf8Bytes(word), (byte) => BYTE_CHARACTERS[byte]);
      const known2 = symbols.filter((symbol) => this.ids.has(symbol));
      return mergeSymbols(known2, rank).flatMap((symbol) => this.ids.get(symbol) ?? []);
    });
  }
  /** @type {(tokens: string[]) => string} */
  decodeTokens(tokens) {
    return decodeUtf8(tokens.flatMap((token) => bytesOf(token) ?? [...utf8Bytes(token)]));
  }
  /** Return the text of a token for display: a blank as "▁", a byte of incomplete UTF-8 as <0xEA>.
      @type {(symbol: string) => string} */
  displayText(symbol) {
    const bytes = bytesOf(symbol);
    return bytes ? decodeStrictUtf8(bytes)?.replaceAll(" ", "\u2581") ?? bytes.map(bytePiece).join("") : symbol;
  }
};

// src/manyheads/web/text/charsmap.js
var labelOf = (unit) => unit & 2147483903;
var hasLeaf = (unit) => unit >>> 8 & 1;
var offsetOf = (unit) => unit >>> 10 << ((unit & 512) >>> 6);
var valueOf = (unit) => unit & 2147483647;
var Charsmap = class {
  /** Read the rules from base64: the size of the trie, the trie, and the replacements, each
      terminated by a zero byte.
      @param {string} base64 */
  constructor(base64) {
    const bytes = fromBase64(base64);
    const view = new DataView(bytes.buffer);
    const size = view.getUint32(0, true);
    this.units = Uint32Array.from(
      { length: size >>> 2 },
      (_, index) => view.getUint32(4 + 4 * index, true)
    );
    this.replacements = bytes.subarray(4 + size);
  }
  /** Return the replacement by the longest matching rule at an offset of a text, and the length of
      the text it replaces; null if no rule matches.
      @type {(text: string, index: number) => [string, number] | null} */
  longestRule(text, index) {
    const { units } = this;
    let node = offsetOf(units[0]);
    let end = index;
    let match = null;
    while (end < text.length) {
      const character = characterAt(text, end);
      end += character.length;
      for (const byte of utf8Bytes(character)) {
        node ^= byte;
        const unit = units[node];
        if (labelOf(unit) !== byte) return this.replacement(match);
        node ^= offsetOf(unit);
        if (hasLeaf(unit)) match = [valueOf(units[node]), end - index];
      }
    }
    return this.replacement(match);
  }
  /** Return the text of a replacement and the length of the text it replaces, from a match [offset
      of the replacement, length]; null for null.
      @type {(match: [number, number] | null) => [string, number] | null} */
  replacement(match) {
    return match && [
      decodeUtf8(this.replacements.subarray(match[0], this.replacements.indexOf(0, match[0]))),
      match[1]
    ];
  }
};

// src/manyheads/web/text/sentencepiece.js
var SPACE_SIGN = "\u2581";
var UNKNOWN_PENALTY = 10;
var SYMBOL_BONUS = 0.1;
var SentencePieceModel = class {
  /** @param {SentencePieceDescription} description */
  constructor({
    algorithm,
    pieces,
    scores,
    unknown,
    unknownText,
    control,
    bytes,
    user,
    dummyPrefix,
    removeExtraBlanks,
    charsmap
  }) {
    this.algorithm = algorithm;
    this.pieces = pieces;
    this.unknown = unknown;
    this.unknownText = unknownText;
    this.dummyPrefix = dummyPrefix;
    this.removeExtraBlanks = removeExtraBlanks;
    this.scores = new Float32Array(fromBase64(scores).buffer);
    this.control = new Set(control);
    this.placeholderIds = control.filter((id) => /^<keep-\d>$/.test(pieces[id])).sort((a, b) => pieces[a].localeCompare(pieces[b]));
    this.byteIds = bytes;
    this.byteOf = new Map(bytes.map((id, byte) => [id, byte]));
    this.user = new Set(user);
    this.userSymbols = user.map((id) => pieces[id]).sort((a, b) => b.length - a.length);
    this.charsmap = charsmap ? new Charsmap(charsmap) : null;
    this.ids = /* @__PURE__ */ new Map();
    pieces.forEach((piece, id) => {
      if (id !== unknown && !this.control.has(id) && !this.byteOf.has(id)) this.ids.set(piece, id);
    });
    this.longest = 0;
    let lowest = Infinity;
    for (const [piece, id] of this.ids) {
      this.longest = Math.max(this.longest, piece.length);
      if (!this.user.has(id)) lowest = Math.min(lowest, this.scores[id]);
    }
    this.unknownScore = Math.fround(lowest - UNKNOWN_PENALTY);
  }
  /** Encode a text as pieces [text, id]. A run of characters without a piece becomes its bytes, or
      one unknown piece if the model has no bytes. `substitute` is a character that replaces "▁" in
      the text.
      @type {(text: string, substitute?: string) => [string, number][]} */
  encode(text, substitute = "") {
    const normal = this.normalizeText(text);
    const result = [];
    for (const pair of this.algorithm === "bpe" ? this.mergePieces(normal) : this.likeliestPieces(normal)) {
      const [piece, id] = pair;
      const last = result.at(-1);
      if (id !== this.unknown) result.push(pair);
      else if (this.byteIds.length) {
        for (const byte of utf8Bytes(piece === substitute ? SPACE_SIGN : piece)) {
          result.push([bytePiece(byte), this.byteIds[byte]]);
        }
      } else if (last?.[1] === this.unknown) last[0] += piece;
      else result.push(pair);
    }
    return result;
  }
  /** Return the user-defined symbol at an offset of a text; undefined if there is none.
      @type {(text: string, index: number) => string | undefined} */
  userSymbolAt(text, index) {
    return this.userSymbols.find((symbol) => text.startsWith(symbol, index));
  }
  /** Normalise a text as the library does, with "▁" for blanks.
      @type {(text: string) => string} */
  normalizeText(text) {
    let result = "";
    let afterBlank = this.removeExtraBlanks;
    for (let index = 0; index < text.length; ) {
      const [normal, length] = this.normalizePrefix(text, index);
      const part = afterBlank ? normal.replace(/^ +/, "") : normal;
      index += length;
      if (part) afterBlank = this.removeExtraBlanks && part.endsWith(" ");
      result += part.replaceAll(" ", SPACE_SIGN);
    }
    if (this.removeExtraBlanks) {
      while (result.endsWith(SPACE_SIGN)) result = result.slice(0, -1);
    }
    const isEmpty = this.removeExtraBlanks ? !result : !text;
    return isEmpty ? "" : (this.dummyPrefix ? SPACE_SIGN : "") + result;
  }
  /** Return the normalised text of the first characters at an offset, and their number of UTF-16
      units.
      @type {(text: string, index: number) => [string, number]} */
  normalizePrefix(text, index) {
    const symbol = this.userSymbolAt(text, index);
    if (symbol) return [symbol, symbol.length];
    const replacement = this.charsmap?.longestRule(text, index);
    if (replacement) return replacement;
    const character = characterAt(text, index);
    return [character, character.length];
  }
  /** Return the pieces [text, id] after all merges, the pair with the highest score first
      (byte-pair encoding).
      @type {(text: string) => [string, number][]} */
  mergePieces(text) {
    const symbols = [];
    const frozen = this.user;
    for (let index = 0, symbol; index < text.length; index += symbol.length) {
      symbol = this.userSymbolAt(text, index) ?? characterAt(text, index);
      symbols.push(symbol);
    }
    const pairRank = (left, right) => {
      const id = this.ids.get(left + right);
      const isFrozen = frozen.size && [left, right].some((symbol) => frozen.has(this.ids.get(symbol) ?? -1));
      return id === void 0 || isFrozen ? void 0 : -this.scores[id];
    };
    return mergeSymbols(symbols, pairRank).map((piece) => [
      piece,
      this.ids.get(piece) ?? this.unknown
    ]);
  }
  /** Return the likeliest pieces [text, id] (Viterbi). Sums are float32 as in the library, so that
      ties are resolved alike.
      @type {(text: string) => [string, number][]} */
  likeliestPieces(text) {
    const best = new Float32Array(text.length + 1);
    const starts = new Int32Array(text.length + 1).fill(-1);
    const ids = new Int32Array(text.length + 1);
    const update = (start, end, id, score) => {
      const total = Math.fround(best[start] + score);
      if (starts[end] < 0 || total > best[end]) {
        [best[end], starts[end], ids[end]] = [total, start, id];
      }
    };
    for (let start = 0, step; start < text.length; start += step) {
      step = characterAt(text, start).length;
      let hasSingle = false;
      for (let end = start + step; end <= Math.min(text.length, start + this.longest); end += 1) {
        const piece = text.slice(start, end);
        const id = this.ids.get(piece);
        if (id === void 0) continue;
        update(start, end, id, this.scoreOf(id, piece));
        hasSingle ||= end === start + step;
      }
      if (!hasSingle) update(start, start + step, this.unknown, this.unknownScore);
    }
    const pieces = [];
    for (let end = text.length; end > 0; end = starts[end]) {
      pieces.push([text.slice(starts[end], end), ids[end]]);
    }
    return pieces.reverse();
  }
  /** Return the score of a piece: a log-probability, or a positive number for a user-defined
      symbol.
      @type {(id: number, piece: string) => number} */
  scoreOf(id, piece) {
    return this.user.has(id) ? SYMBOL_BONUS * (utf8Bytes(piece).length - 1) : this.scores[id];
  }
  /** Decode pieces, given as ids, or as texts that need not be pieces of this model.
      @type {(pieces: (number | string)[]) => string} */
  decode(pieces) {
    let text = "";
    let atStart = true;
    let blankRemoved = false;
    let bytes = [];
    const flush = () => {
      text += decodeUtf8(bytes);
      bytes = [];
    };
    for (const piece of pieces) {
      const id = typeof piece === "number" ? piece : this.ids.get(piece) ?? this.reservedId(piece);
      const byte = this.byteOf.get(id);
      if (byte !== void 0) {
        bytes.push(byte);
        continue;
      }
      flush();
      if (blankRemoved || text) atStart = false;
      blankRemoved = false;
      const symbol = typeof piece === "number" ? this.pieces[id] : piece;
      if (this.control.has(id)) continue;
      if (id === this.unknown) {
        text += symbol === this.pieces[id] ? this.unknownText : symbol;
        continue;
      }
      const removeBlank = atStart && (this.dummyPrefix || this.removeExtraBlanks) && symbol.startsWith(SPACE_SIGN);
      blankRemoved = removeBlank && !this.removeExtraBlanks;
      text += (removeBlank ? symbol.slice(1) : symbol).replaceAll(SPACE_SIGN, " ");
    }
    flush();
    return text;
  }
  /** Return the id of a control symbol or a byte by its text; the unknown id for any other text.
      @type {(piece: string) => number} */
  reservedId(piece) {
    const byte = this.byteIds.find((id) => this.pieces[id] === piece);
    return byte ?? [...this.control].find((id) => this.pieces[id] === piece) ?? this.unknown;
  }
};

// src/manyheads/web/text/subwords.js
var SubwordTokenizer = class extends Tokenizer {
  /** @param {TokenizerDescription} description */
  constructor(description) {
    super(description);
    this.model = new SentencePieceModel(description.model);
    this.size = this.model.pieces.length;
    this.byteValues = this.model.byteOf;
    this.placeholderIds = this.model.placeholderIds;
  }
  /** @type {(text: string) => number[]} */
  encode(text) {
    const prepared = this.prepare(text);
    const substitute = prepared.includes(SPACE_SIGN) ? this.unusedCharacter(prepared) : "";
    return this.model.encode(substitute ? prepared.replaceAll(SPACE_SIGN, substitute) : prepared, substitute).map(([, id]) => id);
  }
  /** @type {(ids: number[]) => string} */
  decode(ids) {
    return this.model.decode(this.check(ids));
  }
  /** @type {(ids: number[]) => string[]} */
  pieces(ids) {
    return this.check(ids).map((id) => this.model.pieces[id]);
  }
  /** Return a private-use character that neither the text nor the vocabulary has; it replaces "▁",
      which the model would read as a blank.
      @type {(text: string) => string} */
  unusedCharacter(text) {
    for (let code2 = 983040; ; code2 += 1) {
      const character = String.fromCodePoint(code2);
      if (!text.includes(character) && !this.model.ids.has(character)) return character;
    }
  }
};
var MarianTokenizer = class extends Tokenizer {
  /** @param {TokenizerDescription} description */
  constructor(description) {
    super(description);
    this.model = new SentencePieceModel(description.model);
    this.symbols = [...SPECIALS, ...description.symbols];
    this.ids = new Map(
      description.symbols.map((symbol, index) => [symbol, index + SPECIALS.length])
    );
    this.size = this.symbols.length;
    this.model.byteIds.forEach((id, byte) => {
      const own = this.ids.get(this.model.pieces[id]);
      if (own !== void 0) this.byteValues.set(own, byte);
    });
  }
  /** @type {(text: string) => number[]} */
  encode(text) {
    const prepared = this.prepare(text);
    const end = prepared.startsWith(">>") ? prepared.indexOf("<<") : -1;
    const [code2, rest] = end < 0 ? [[], prepared] : [[prepared.slice(0, end + 2)], prepared.slice(end + 2)];
    const pieces = [...code2, ...this.model.encode(rest).map(([piece]) => piece)];
    return pieces.map((piece) => this.ids.get(piece) ?? UNK);
  }
  /** @type {(ids: number[]) => string} */
  decode(ids) {
    const text = this.decodeRuns(
      ids,
      (run) => this.model.decode(run.map((id) => this.symbols[id]))
    );
    return strip(text.replaceAll(SPACE_SIGN, " "));
  }
  /** @type {(ids: number[]) => string[]} */
  pieces(ids) {
    return this.check(ids).map((id) => this.symbols[id]);
  }
};

// src/manyheads/web/text/symbols.js
var SymbolTokenizer = class extends Tokenizer {
  /** @param {TokenizerDescription} description @param {string} separator */
  constructor(description, separator) {
    super(description);
    this.separator = separator;
    this.symbols = [...SPECIALS, ...description.symbols];
    this.ids = new Map(
      description.symbols.map((symbol, index) => [symbol, index + SPECIALS.length])
    );
    this.size = this.symbols.length;
  }
  /** @type {(ids: number[]) => string} */
  decode(ids) {
    return this.textIds(ids).map((id) => this.symbols[id]).join(this.separator);
  }
  /** @type {(ids: number[]) => string[]} */
  pieces(ids) {
    return this.check(ids).map((id) => this.symbols[id].replaceAll(" ", "\u2581"));
  }
};
var CharacterTokenizer = class extends SymbolTokenizer {
  /** @param {TokenizerDescription} description */
  constructor(description) {
    super(description, "");
  }
  /** @type {(text: string) => number[]} */
  encode(text) {
    return Array.from(this.prepare(text), (character) => this.ids.get(character) ?? UNK);
  }
};
var ByteTokenizer = class extends Tokenizer {
  size = SPECIALS.length + 256;
  byteValues = new Map(Array.from({ length: 256 }, (_, byte) => [byte + SPECIALS.length, byte]));
  /** @type {(text: string) => number[]} */
  encode(text) {
    return Array.from(utf8Bytes(this.prepare(text)), (byte) => byte + SPECIALS.length);
  }
  /** @type {(ids: number[]) => string} */
  decode(ids) {
    return decodeUtf8(
      this.textIds(ids).flatMap(
        (id) => id === UNK ? [...utf8Bytes(SPECIALS[UNK])] : [id - SPECIALS.length]
      )
    );
  }
  /** @type {(ids: number[]) => string[]} */
  pieces(ids) {
    return this.check(ids).map((id) => SPECIALS[id] ?? bytePiece(id - SPECIALS.length));
  }
};

// src/manyheads/web/text/wordrules.js
var LONG_WORD = new RegExp(`([^${WHITE}]{200})(?=[^${WHITE}])`, "gu");
var SEPARATOR = "\0";
var WordTokenizer = class extends SymbolTokenizer {
  /** @param {TokenizerDescription} description */
  constructor(description) {
    super(description, " ");
    const { prefix, suffix, infix, url, special } = description.rules;
    this.prefix = new RegExp(prefix, "u");
    this.suffix = new RegExp(suffix, "u");
    this.url = new RegExp(url, "u");
    this.infix = new RegExp(infix, "gu");
    this.special = new Map(Object.entries(special));
    this.sequences = /* @__PURE__ */ new Set();
    this.maxSequence = 0;
    for (const word of this.special.keys()) {
      if (![this.prefix, this.suffix].some((pattern) => pattern.test(word)) && word.search(this.infix) < 0 && !word.includes(" ")) {
        continue;
      }
      const words = this.splitText(word, /* @__PURE__ */ new Map()).map((token) => token.text);
      this.sequences.add(words.join(SEPARATOR));
      this.maxSequence = Math.max(this.maxSequence, words.length);
    }
  }
  /** @type {(text: string) => number[]} */
  encode(text) {
    const words = this.words(text).filter((word) => this.ids.has(word) || splitBlanks(word).length);
    return words.map((word) => this.ids.get(word) ?? UNK);
  }
  /** Return the words of a text, in lower case if the tokenizer was trained so.
      @type {(text: string) => string[]} */
  words(text) {
    const tokens = this.splitText(clean(this.formed(text)).replace(LONG_WORD, "$1 "), this.special);
    const words = this.joinSpecial(tokens);
    return this.lowercase ? words.map(lower) : words;
  }
  /** Return the tokens of a text as { text, blank }, where `blank` says whether a blank follows.
      Further white space is a token.
      @type {(text: string, special: Map<string, string[]>) => WordToken[]} */
  splitText(text, special) {
    const tokens = [];
    let start = 0;
    let inBlank = text !== "" && isBlank(text[0]);
    const add = (end) => {
      if (start < end) {
        tokens.push(
          ...this.splitWord(text.slice(start, end), special).map((word) => ({
            text: word,
            blank: false
          }))
        );
      }
    };
    for (let index = 0; index < text.length; index += 1) {
      if (isBlank(text[index]) === inBlank) continue;
      add(index);
      if (text[index] === " ") tokens[tokens.length - 1].blank = true;
      start = text[index] === " " ? index + 1 : index;
      inBlank = !inBlank;
    }
    add(text.length);
    return tokens;
  }
  /** Split a text without white space into tokens: first at prefixes and suffixes, then at infixes.
      @type {(word: string, special: Map<string, string[]>) => string[]} */
  splitWord(word, special) {
    const prefixes = [];
    const suffixes = [];
    let rest = word;
    for (let length = 0; rest && rest.length !== length && !special.has(rest); ) {
      length = rest.length;
      const before = this.prefix.exec(rest)?.[0].length ?? 0;
      if (before && special.has(rest.slice(before))) {
        prefixes.push(rest.slice(0, before));
        rest = rest.slice(before);
        break;
      }
      const after = this.suffix.exec(rest.slice(before))?.[0].length ?? 0;
      if (after && special.has(rest.slice(0, -after))) {
        suffixes.push(rest.slice(-after));
        rest = rest.slice(0, -after);
        break;
      }
      if (before) prefixes.push(rest.slice(0, before));
      if (after) suffixes.push(rest.slice(-after));
      rest = rest.slice(before, after ? -after : void 0);
    }
    return [...prefixes, ...this.splitInfixes(rest, special), ...suffixes.reverse()];
  }
  /** Split a word without prefixes and suffixes into tokens at its infixes.
      @type {(word: string, special: Map<string, string[]>) => string[]} */
  splitInfixes(word, special) {
    if (!word) return [];
    const whole = special.get(word);
    if (whole) return whole;
    const tokens = [];
    let start = 0;
    for (const match of this.url.test(word) ? [] : word.matchAll(this.infix)) {
      if (!match.index) continue;
      tokens.push(word.slice(start, match.index), match[0]);
      start = match.index + match[0].length;
    }
    return [...tokens, word.slice(start)].filter(Boolean);
  }
  /** Return the words of tokens; tokens that form a special word are replaced by the tokens of that
      word, the longest first, then the leftmost.
      @type {(tokens: WordToken[]) => string[]} */
  joinSpecial(tokens) {
    const spans = [];
    for (let start = 0; start < tokens.length; start += 1) {
      let sequence = "";
      for (let end = start + 1; end <= Math.min(tokens.length, start + this.maxSequence); end += 1) {
        sequence += (sequence && SEPARATOR) + tokens[end - 1].text;
        if (this.sequences.has(sequence)) spans.push([start, end]);
      }
    }
    spans.sort((a, b) => b[1] - b[0] - (a[1] - a[0]) || a[0] - b[0]);
    const seen = /* @__PURE__ */ new Set();
    const ends = /* @__PURE__ */ new Map();
    for (const [start, end] of spans) {
      if (!seen.has(start) && !seen.has(end - 1)) ends.set(start, end);
      for (let index = start; index < end; index += 1) seen.add(index);
    }
    const words = [];
    for (let index = 0; index < tokens.length; ) {
      const end = ends.get(index) ?? index + 1;
      const span = tokens.slice(index, end);
      const text = span.map((token, i) => token.text + (token.blank && i < span.length - 1 ? " " : "")).join("");
      words.push(
        ...ends.has(index) && this.special.get(text) || span.map((token) => token.text)
      );
      index = end;
    }
    return words;
  }
};

// src/manyheads/web/text/tokenizer.js
function loadTokenizer(description) {
  switch (description.kind) {
    case "bpe":
    case "unigram":
      return new SubwordTokenizer(description);
    case "words":
      return new WordTokenizer(description);
    case "characters":
      return new CharacterTokenizer(description);
    case "bytes":
      return new ByteTokenizer(description);
    case "marian":
      return new MarianTokenizer(description);
    case "huggingface":
      return description.wordpiece ? new WordPieceTokenizer(description) : new ByteLevelTokenizer(description);
    default:
      throw new RangeError(`there is no tokenizer of the kind "${description.kind}"`);
  }
}

// src/manyheads/web/engine/sampling.js
function makeRandom(seed, sample, context) {
  const key = `${seed},${sample},${context.join(",")}`;
  const hash = (salt) => {
    let state = 2166136261 ^ salt;
    for (let i = 0; i < key.length; i++) state = Math.imul(state ^ key.charCodeAt(i), 16777619);
    return state >>> 0;
  };
  let [a, b, c, counter] = [hash(0), hash(1), hash(2), 1];
  const next = () => {
    const sum = a + b + counter++ | 0;
    a = b ^ b >>> 9;
    b = c + (c << 3) | 0;
    c = (c << 21 | c >>> 11) + sum | 0;
    return sum >>> 0;
  };
  for (let i = 0; i < 15; i++) next();
  return () => ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992;
}
function pickToken(values, sampling, random, suppressed) {
  const excluded = new Set(suppressed);
  let likeliest2 = -1;
  for (let token = 0; token < values.length; token++) {
    if (!excluded.has(token) && values[token] > (values[likeliest2] ?? -Infinity)) likeliest2 = token;
  }
  if (!sampling || !random || likeliest2 < 0) return likeliest2;
  const weights = samplingWeights(values, values[likeliest2], sampling, excluded);
  let total = 0;
  for (const weight of weights) total += weight;
  const target = random() * total;
  let cumulative = 0;
  for (let token = 0; token < weights.length; token++) {
    cumulative += weights[token];
    if (cumulative > target) return token;
  }
  return likeliest2;
}
function samplingWeights(values, largest, { temperature = 1, topK = 0, topP = 1 }, excluded = /* @__PURE__ */ new Set()) {
  const weights = Float64Array.from(
    values,
    (value, token) => excluded.has(token) ? 0 : Math.exp((value - largest) / temperature)
  );
  if (!topK && topP >= 1) return weights;
  const order = [...weights.keys()].sort((a, b) => weights[b] - weights[a] || a - b).slice(0, topK || weights.length);
  const limit = topP * order.reduce((sum, token) => sum + weights[token], 0);
  const kept = new Float64Array(weights.length);
  let cumulative = 0;
  for (const token of order) {
    if (cumulative >= limit) break;
    kept[token] = weights[token];
    cumulative += weights[token];
  }
  return kept;
}

// src/manyheads/web/engine/search.js
var CACHE_MARGIN = 8;
var SearchCancelled = class extends Error {
};
async function translateIds(model, ids, options = {}) {
  const encoding = model.encode([...ids, model.special.eos], options);
  let search = null;
  try {
    const Search = options.causal === false ? RecomputingSearch : BeamSearch;
    search = new Search(model, encoding, {
      ...options,
      maxLength: maxOutputLength(model, ids.length, options)
    });
    await runSteps(search, options);
    const { skip = 0, lengthPenalty = model.search.length_penalty } = options;
    const outputs = withoutFirst(search.outputs(), skip, lengthPenalty).filter(
      options.accept ?? (() => true)
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
function withoutFirst(outputs, count, lengthPenalty) {
  if (!count) return outputs;
  const shorter = outputs.map(({ tokens, tokenScores, ended }) => ({
    ...makeOutput([], [...tokenScores].slice(count), ended, lengthPenalty),
    tokens: [...tokens].slice(count)
  }));
  return shorter.sort((a, b) => b.score - a.score);
}
function maxOutputLength(model, sourceLength, options = {}) {
  const {
    maxLengthRatio = model.search.max_length_ratio,
    maxLengthOffset = model.search.max_length_offset,
    prefix = []
  } = options;
  const limit = Math.trunc(maxLengthRatio * sourceLength) + maxLengthOffset;
  return Math.min(Math.max(limit, prefix.length), model.settings.max_positions - 1);
}
async function runSteps(search, { pause, signal }) {
  while (search.step()) {
    if (pause) await pause();
    if (signal?.aborted) throw new SearchCancelled("the search was cancelled");
  }
}
var BeamSearch = class {
  /** @type {DecoderCache} */
  cache;
  store = 0;
  // the addresses of the blocks of the search
  beam = 0;
  values = 0;
  tokens = 0;
  best = 0;
  beamOptions = 0;
  beams = 0;
  workspace = 0;
  logits = 0;
  capacity = 0;
  // of the KV cache, in tokens
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
      prefix = []
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
        `the prefix has ${prefix.length} tokens, but the longest output is ${maxLength}.`
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
    if (!noPositions) model.positions.decoder.tableFor(maxLength + 1);
    const divisors = Array.from(
      { length: maxLength + 2 },
      (_, count) => lengthDivisor(count, this.lengthPenalty)
    );
    this.beamOptions = scope.struct("BeamOptions", {
      beam_size: beamSize,
      n_best: this.nBest,
      eos,
      signal_stride: noPositions ? 0 : model.width,
      rotary_stride: noPositions ? 0 : model.headDim,
      divisors: scope.doubles(divisors)
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
        cross_heads: { weights: 0, factors: this.cache.factors.cross }
      }
    });
    const begin = (block) => Number(begin_beam(model.decoder, this.beamOptions, BigInt(bos), this.beam, block));
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
      tokens: this.tokens
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
    this.capacity = prefix.length + 1 + beamSize * Math.min(maxLength, encoding.length + CACHE_MARGIN);
    this.cache = new DecoderCache(model, encoding, this.capacity, this.options);
    this.store = this.cache.store;
    if (!prefix.length) return [];
    const { logits } = this.cache.append([model.special.bos, ...prefix.slice(0, -1)], {
      allLogits: true
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
      done: memory.doubles(this.get("best_scores"), 1)[0] > -Infinity
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
      1
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
    const enlarge = (cache) => Number(model.engine.exports.enlarge_cache(model.decoder, this.beamOptions, this.beam, cache));
    const store = scope.allocate(4 * enlarge(0));
    enlarge(store);
    this.cache.scope.release(this.store);
    scope.release(this.store);
    this.store = store;
  }
  /** Return the outputs of a search that has ended, best first; of equal ones the earlier is first.
      @type {() => Output[]} */
  outputs() {
    const { memory } = this;
    return Array.from({ length: this.get("num_outputs") }, (_, rank) => {
      const output = this.get("outputs") + rank * memory.sizeOf("Output");
      const read = (name) => memory.get("Output", output, name);
      const first = 4 * rank * (this.maxLength + 1);
      const length = read("length");
      return {
        tokens: [...memory.ints(this.get("tokens") + first, length)],
        tokenScores: [...memory.floats(this.get("token_scores") + first, length + read("ended"))],
        logProbability: read("total"),
        score: read("score"),
        ended: read("ended") !== 0
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
      const read = (name) => memory.get("Candidate", candidate, name);
      return {
        parent: read("row"),
        token: read("token"),
        value: read("log_prob"),
        total: read("total")
      };
    });
    const likeliest2 = (array) => [...array].filter((_, i) => i % perRow === 0);
    const stuck = candidates[0].total === -Infinity && !done;
    const closed = stuck || this.maxLength <= length;
    const ends = candidates.map(
      ({ token, total }) => !closed && token === eos && total > -Infinity
    );
    const kept = candidates.map((_, rank) => rank).filter((rank) => !ends[rank]).slice(0, beamSize);
    return {
      length,
      candidates,
      finished: ends.map((end, rank) => end && rank < beamSize),
      kept,
      closed,
      lastTokens: likeliest2(memory.longs(this.tokens, rows * perRow)).map(Number),
      lastValues: likeliest2(memory.floats(this.values, rows * perRow)),
      active: status !== memory.constant("BEAM_ENDED"),
      scores: [...memory.doubles(this.get("best_scores"), beamSize)]
    };
  }
  close() {
    this.cache?.release();
    this.scope.close();
  }
};
var RecomputingSearch = class extends BeamSearch {
  /** As in BeamSearch; each token of the prefix is scored given only the tokens before it. */
  prefill() {
    const { model, prefix, beamSize, maxLength, encoding } = this;
    this.cache = new DecoderCache(model, encoding, maxLength + 1, this.options);
    this.store = this.cache.store;
    this.capacity = prefix.length + 1 + beamSize * (maxLength + 1);
    const scores = prefix.map(
      (token, t) => model.logProbabilities(this.prefixLogits(prefix.slice(0, t)))[token]
    );
    this.recordPrefix(scores);
    return scores;
  }
  advance() {
    const { model, memory, beamSize, suppressed } = this;
    const [rows, length, perRow] = [this.get("step.rows"), this.get("length"), beamSize + 1];
    const { read_prefix } = model.engine.exports;
    const prefix = this.get("tokens");
    for (let row = 0; row < rows; row++) {
      read_prefix(this.beam, this.beamOptions, BigInt(length), BigInt(row), prefix, 0);
      const logits = this.prefixLogits([...memory.ints(prefix, length)]);
      const best = bestTokens(model.logProbabilities(logits), perRow, suppressed);
      memory.floats(this.values + 4 * row * perRow, perRow).set(best.map(({ value }) => value));
      memory.longs(this.tokens + 8 * row * perRow, perRow).set(best.map(({ token }) => BigInt(token)));
    }
    model.engine.call(
      "extend_beam",
      model.failure,
      model.decoder,
      this.beamOptions,
      this.beam,
      this.best
    );
  }
  /** Return the logits (V) after a prefix.
      @type {(prefix: number[]) => Float32Array} */
  prefixLogits(prefix) {
    this.cache.clear();
    return this.cache.append([this.model.special.bos, ...prefix], { causal: false }).logits;
  }
};
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
    scores: Array(beamSize).fill(-Infinity)
  };
}
function lengthDivisor(length, lengthPenalty) {
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
function makeOutput(tokens, tokenScores, ended, lengthPenalty) {
  const logProbability = tokenScores.reduce((sum, score) => sum + score, 0);
  return {
    tokens: ended ? tokens.slice(0, -1) : tokens,
    tokenScores,
    logProbability,
    score: logProbability / lengthDivisor(tokenScores.length, lengthPenalty),
    ended
  };
}
function bestTokens(values, count, suppressed = []) {
  const excluded = new Set(suppressed);
  const best = [];
  for (let token = 0; token < values.length; token++) {
    const value = values[token];
    if (best.length === count && !(value > best[count - 1].value) || excluded.has(token)) {
      continue;
    }
    let rank = best.length === count ? count - 1 : best.length;
    for (; rank > 0 && value > best[rank - 1].value; rank--) best[rank] = best[rank - 1];
    best[rank] = { token, value };
  }
  return best;
}
async function generateIds(model, context, options = {}) {
  const { sampling = null, sample = 0, maxTokens = 256, onToken, pause, signal } = options;
  const { unk, pad, bos, eos } = model.special;
  const random = sampling && makeRandom(sampling.seed ?? 1, sample, context);
  const cache = new WindowCache(model, options);
  const tokens = [];
  const scores = [];
  let ended = false;
  try {
    let logits = cache.prefill(
      context.slice(context.length - contextLength(context.length, model.window))
    );
    for (; ; ) {
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
function contextLength(length, window) {
  if (length <= window) return length;
  const step = windowStep(window);
  return window - step + 1 + (length - window - 1) % step;
}
var windowStep = (window) => Math.max(1, Math.floor(window / 2));
var WindowCache = class {
  /** @param {EngineModel} model @param {EngineOptions} options */
  constructor(model, options) {
    this.model = model;
    this.options = options;
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
};

// src/manyheads/web/translation/alignment.js
var TOLERANCE = 1e-6;
function wordIndices(tokenizer, ids, source = "", decode = tokenizer.decode.bind(tokenizer)) {
  const texts = ids.map(
    (_, end) => decode(tokenizer.wholeCharacters(ids.slice(0, end + 1), source).whole)
  );
  const counts = texts.map((text) => splitBlanks(text).length);
  for (let end = ids.length - 2; end >= 0; end -= 1) {
    if (tokenizer.byteValues.has(ids[end]) && texts[end] === (texts[end - 1] ?? "")) {
      counts[end] = counts[end + 1];
    }
  }
  return counts.map((count) => Math.max(0, Math.min(count, counts[counts.length - 1]) - 1));
}
function wordAlignment(attention, sourceWords, targetWords) {
  if (!sourceWords.length || !targetWords.length) return [];
  const merged = Array.from(
    { length: targetWords[targetWords.length - 1] + 1 },
    () => new Float64Array(sourceWords[sourceWords.length - 1] + 1)
  );
  targetWords.forEach(
    (target, t) => sourceWords.forEach((source, s) => {
      merged[target][source] += attention[t][s];
    })
  );
  return [...new Set(targetWords)].sort((a, b) => a - b).map((target) => {
    const highest = merged[target].reduce((a, b) => Math.max(a, b));
    return [merged[target].findIndex((weight) => weight >= highest - TOLERANCE), target];
  });
}
var pharaoh = (links) => links.map(([source, target]) => `${source}-${target}`).join(" ");
function nextWord(before, text) {
  const continued = before && text && !isBlank(before.slice(-1)) && !isBlank(text[0]);
  return splitBlanks(before).length - (continued ? 1 : 0);
}
function copiedLinks(source, target, copied) {
  const sourceStart = nextWord(source, copied);
  const targetStart = nextWord(target, copied);
  return splitBlanks(copied).map((_, word) => [sourceStart + word, targetStart + word]);
}
function lineAlignment(line, outputs, { source, target }, longest) {
  const links = [];
  let end = 0;
  let before = "";
  line.parts.forEach((part, index) => {
    const { tokens, attention } = outputs[index];
    const text = part.outputText(target, tokens);
    const gap = line.between(index, [...before].at(-1) ?? "", [...text][0] ?? "");
    links.push(...copiedLinks(line.text.slice(0, end), before, gap));
    before += gap;
    const firstSource = nextWord(line.text.slice(0, part.start), part.text);
    const firstTarget = nextWord(before, text);
    const sourceWords = wordIndices(
      source,
      part.ids.slice(0, longest),
      "",
      (ids) => part.decode(source, ids)
    );
    const targetWords = wordIndices(target, tokens, part.text, (ids) => part.decode(target, ids));
    const numbers = splitBlanks(part.text).flatMap(
      (word, number) => source.prepare(word) ? [number] : []
    );
    for (const [from, to] of wordAlignment(attention, sourceWords, targetWords)) {
      const number = numbers[Math.min(from, numbers.length - 1)] ?? 0;
      links.push([firstSource + number, firstTarget + to]);
    }
    end = part.end;
    before += text;
  });
  return [...links, ...copiedLinks(line.text.slice(0, end), before, line.text.slice(end))];
}

// src/manyheads/web/tasks/arrays.js
function packArray(shape, numbers) {
  let low = 0;
  let high = 1;
  for (const number of numbers) {
    if (number < low) low = number;
    if (number > high) high = number;
  }
  const bytes = new Uint8Array(2 * numbers.length);
  const view = new DataView(bytes.buffer);
  numbers.forEach(
    (number, i) => view.setUint16(2 * i, Math.round((number - low) / (high - low) * 65535), true)
  );
  return { shape, low, high, uint16: toBase64(bytes) };
}
function toBase64(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) {
    text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  }
  return btoa(text);
}
function logSoftmax(logits, temperature = 1) {
  let largest = -Infinity;
  let sum = 0;
  for (const logit of logits) if (logit > largest) largest = logit;
  for (const logit of logits) sum += Math.exp((logit - largest) / temperature);
  const normalizer = Math.log(sum);
  return Float64Array.from(logits, (logit) => (logit - largest) / temperature - normalizer);
}

// src/manyheads/web/tasks/inspection.js
var SPECIAL_IDS = [PAD, BOS, EOS];
var MAX_SHOWN_TOKENS = 256;
var ALTERNATIVES = 5;
var NEIGHBOURS = 5;
var withEndSymbol = ({ tokens, ended }) => ended ? [...tokens, EOS] : [...tokens];
var RequestError = class extends Error {
};
function checkLength(tokens, name, longest, allowEmpty = false) {
  const limit = Math.min(longest, MAX_SHOWN_TOKENS);
  if (tokens > limit) {
    throw new RequestError(
      `the ${name} has ${tokens} tokens; ${limit} can be looked at. Give one sentence.`
    );
  }
  if (!tokens && !allowEmpty) throw new RequestError(`the ${name} is empty.`);
}
function tokensOf(tokenizer, ids, source = "") {
  const plain = ids.filter((id) => !SPECIAL_IDS.includes(id));
  const words = wordIndices(tokenizer, plain, source);
  const pieces = tokenizer.pieces(ids);
  let next = 0;
  return ids.map((id, i) => ({
    id,
    piece: pieces[i],
    word: SPECIAL_IDS.includes(id) ? null : words[next++]
  }));
}
function textOf(tokenizer, ids, text, language, source = "") {
  const plain = ids.filter((id) => !SPECIAL_IDS.includes(id));
  return {
    text,
    language,
    tokens: tokensOf(tokenizer, ids, source),
    words: splitBlanks(tokenizer.outputText(plain, source))
  };
}
function withoutEachWord(tokenizer, ids) {
  const words = tokensOf(tokenizer, ids).map((token) => token.word);
  const distinct = new Set(words.filter((word) => word !== null));
  const indices = [...distinct].sort((a, b) => a - b);
  return indices.map((index) => ({ word: index, ids: ids.filter((_, i) => words[i] !== index) }));
}
function alternativesOf(logProbabilities, tokenizer, count = ALTERNATIVES, excluded = -1) {
  const ids = bestTokens(logProbabilities, count, [PAD, BOS, excluded]).filter(({ value }) => value > -Infinity).map(({ token }) => token);
  const pieces = tokenizer.pieces(ids);
  return ids.map((id, i) => ({
    id,
    piece: pieces[i],
    log_probability: logProbabilities[id],
    probability: Math.exp(logProbabilities[id])
  }));
}
function predictionsOf(logits, ids, tokenizer, given, temperature = 1) {
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
      forced: position < given
    };
  });
}
var maskOf = (rows, columns, causal) => Float32Array.from(
  { length: rows * columns },
  (_, i) => causal && i % columns > Math.floor(i / columns) ? 0 : 1
);
function meanHeads({ heads, layers }, weights, rows, columns) {
  const layer = layers.decoder - 1;
  return Array.from(
    { length: rows },
    (_, t) => Float64Array.from({ length: columns }, (__, s) => {
      let sum = 0;
      for (let head = 0; head < heads; head += 1) {
        sum += weights[((layer * heads + head) * rows + t) * columns + s];
      }
      return sum / heads;
    })
  );
}
function attentionOf(kind, weights, [layers, heads, rows, columns], causal) {
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
    entropy: packArray([layers, heads], entropy)
  };
}
function neighboursOf(rows, width, ids, tokenizer) {
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
      near: near.map((other, i) => ({ id: other, piece: pieces[i], cosine: cosines[other] }))
    };
  });
}
function headSteps(model, { kind, layer, head }, source, target, engine) {
  const { queries, keys, values } = model.headVectors(
    { kind, layer, head },
    source,
    target,
    engine
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
    const masked = scores.subarray(first, first + columns).map((score, column) => mask[first + column] ? score : -Infinity);
    weights.set(logSoftmax(masked).map(Math.exp), first);
    for (let column = 0; column < columns; column += 1) {
      for (let e = 0; e < headDim; e += 1) {
        outputs[row * headDim + e] += weights[first + column] * values[column * headDim + e];
      }
    }
  }
  const [vectors, pairs] = [
    { queries, keys, values, outputs },
    { scores, mask, weights }
  ];
  return {
    kind,
    layer,
    head,
    ...Object.fromEntries(
      Object.entries(vectors).map(([name, array]) => [
        name,
        packArray([array.length / headDim, headDim], array)
      ])
    ),
    ...Object.fromEntries(
      Object.entries(pairs).map(([name, array]) => [name, packArray([rows, columns], array)])
    )
  };
}
function checkHead({ task, layers, heads }, { kind, layer = 0, head = 0 }) {
  const kinds = (
    /** @type {{ [task: string]: AttentionKind[] }} */
    {
      translation: ["encoder", "decoder", "cross"],
      classification: ["encoder"],
      "language-modeling": ["decoder"]
    }[task]
  );
  if (!kinds.includes(kind)) {
    throw new RequestError(
      `this model has no attention of kind "${kind}"; it has ${kinds.join(", ")}.`
    );
  }
  const count = layers[kind === "encoder" ? "encoder" : "decoder"];
  const isIndex = (number, size) => Number.isInteger(number) && number >= 0 && number < size;
  if (!isIndex(layer, count) || !isIndex(head, heads)) {
    throw new RequestError(
      `there is no head ${kind}.${layer}.${head}: this model has layers 0 to ${count - 1} and heads 0 to ${heads - 1}.`
    );
  }
  return { kind, layer, head };
}
function engineChanges(model, { heads = [], mask = true, positions = true } = {}) {
  const headFactors = {};
  for (const name of heads) {
    const [given, ...numbers] = name.split(".");
    const { kind, layer, head } = checkHead(model, {
      kind: (
        /** @type {AttentionKind} */
        given
      ),
      layer: Number(numbers[0]),
      head: Number(numbers[1])
    });
    headFactors[kind] ??= new Float32Array(
      model.layers[kind === "encoder" ? "encoder" : "decoder"] * model.heads
    ).fill(1);
    headFactors[kind][layer * model.heads + head] = 0;
  }
  if (!mask && !model.layers.decoder) {
    throw new RequestError(
      "this model has no causal mask: each of its tokens attends to all others."
    );
  }
  return { ...heads.length && { headFactors }, positions, causal: mask };
}

// src/manyheads/web/tasks/classification.js
var MIN_LOG_PROBABILITY = Math.log(22250738585072014e-324);
var likeliest = (logProbabilities) => logProbabilities.indexOf(Math.max(...logProbabilities));
var PageClassifier = class {
  /** @param {EngineModel} model @param {Tokenizer} tokenizer @param {PageSettings} settings */
  constructor(model, tokenizer, settings) {
    this.model = model;
    this.tokenizer = tokenizer;
    this.settings = settings;
  }
  /** Return the log-probabilities of the classes, and the attention if requested.
      @param {number[]} ids @param {EngineOptions} options */
  forward(ids, options) {
    const input = [BOS, ...ids, EOS];
    const { logits, attention } = this.model.classify(input, {
      ...options,
      types: this.types(input)
    });
    return { logProbabilities: logSoftmax(logits), attention };
  }
  /** Return the type of each token, 1 after the first end symbol; null if the model has no types.
      @type {(input: number[]) => number[] | null} */
  types(input) {
    if (this.model.settings.token_types <= 1) return null;
    const first = input.indexOf(EOS);
    return input.map((_, i) => i > first ? 1 : 0);
  }
  /** Return the ids of a text, or of two texts (separated by a tab) with the end symbols of the
      tokenizer between them.
      @type {(text: string) => number[]} */
  encode(text) {
    const { tokenizer, settings } = this;
    const texts = settings.texts === 2 ? text.split("	").slice(0, 2) : [text];
    return texts.flatMap((part, i) => [
      ...i ? Array(tokenizer.marksBetween).fill(EOS) : [],
      ...tokenizer.encode(part)
    ]);
  }
  /** Return the classes of a text with their probabilities, the likeliest first.
      @type {(text: string) => { label: string, probability: number }[]} */
  classify(text) {
    const { logProbabilities } = this.forward(
      this.encode(text).slice(0, this.settings.longest),
      {}
    );
    const classes = this.settings.labels.map((label, i) => ({
      label,
      probability: Math.exp(logProbabilities[i])
    }));
    return classes.sort((a, b) => b.probability - a.probability);
  }
  /** Return the ids of a text to inspect; throw a RequestError if it is too long.
      @type {(text: string) => number[]} */
  checkedIds(text) {
    const ids = this.encode(text);
    checkLength(ids.filter((id) => id !== EOS).length, "text", this.settings.longest);
    return ids;
  }
  /** Compute the intermediate values of a head; options as in POST /api/head.
      @param {string} text @param {HeadRequest} options */
  head(text, { changes, ...options }) {
    const name = checkHead(this.model, options);
    const input = [BOS, ...this.checkedIds(text), EOS];
    return headSteps(this.model, name, input, [], {
      ...engineChanges(this.model, changes),
      types: this.types(input)
    });
  }
  /** Inspect a text; options as in POST /api/inspect.
      @param {string} text @param {InspectOptions} options */
  async inspect(text, { occlusion = true, changes, ...control } = {}) {
    const { model, tokenizer, settings } = this;
    const ids = this.checkedIds(text);
    const engine = engineChanges(model, changes);
    const { logProbabilities, attention } = this.forward(ids, { ...engine, attention: true });
    const best = likeliest(logProbabilities);
    const input = [BOS, ...ids, EOS];
    return {
      kind: "classification",
      run: settings.run,
      model: settings.facts,
      text: textOf(tokenizer, input, text, settings.language),
      attention: [
        attentionOf(
          "encoder",
          attention.encoder,
          [model.layers.encoder, model.heads, input.length, input.length],
          false
        )
      ],
      label: settings.labels[best],
      classes: settings.labels.map((label, i) => ({
        label,
        probability: Math.exp(logProbabilities[i])
      })),
      pooling: model.settings.pooling,
      occlusion: occlusion ? await this.leaveOutWords(ids, logProbabilities, best, engine, control) : null,
      neighbours: neighboursOf(model.embeddingRows("encoder"), model.width, input, tokenizer)
    };
  }
  /** Leave out each word in turn; return the drop in log-probability of each class, and the
      likeliest class without the word.
      @param {number[]} ids
      @param {Float64Array} baseline
      @param {number} label
      @param {EngineOptions} engine
      @param {Control} control */
  async leaveOutWords(ids, baseline, label, engine, { pause, signal }) {
    const { labels } = this.settings;
    const words = [];
    for (const { word, ids: rest } of withoutEachWord(this.tokenizer, ids)) {
      await pause?.();
      if (signal?.aborted) throw new SearchCancelled("the inspection was cancelled");
      const { logProbabilities } = this.forward(rest, engine);
      const drops = labels.map(
        (_, i) => Math.max(baseline[i], MIN_LOG_PROBABILITY) - Math.max(logProbabilities[i], MIN_LOG_PROBABILITY)
      );
      words.push({
        word,
        drop: drops[label],
        drops,
        output: labels[likeliest(logProbabilities)]
      });
    }
    return { columns: labels, words };
  }
};

// src/manyheads/web/tasks/generation.js
var SHOWN_TOKENS = 20;
var PageGenerator = class {
  /** @param {EngineModel} model @param {Tokenizer} tokenizer @param {PageSettings} settings */
  constructor(model, tokenizer, settings) {
    this.model = model;
    this.tokenizer = tokenizer;
    this.settings = settings;
  }
  /** Return the ids of a prompt, at least one: the token `first` begins an empty prompt, or every
      prompt if each line is a document.
      @type {(text: string) => number[]} */
  context(text) {
    const { first, lines } = this.settings;
    const ids = this.tokenizer.encode(text);
    return lines || !ids.length ? [first, ...ids] : ids;
  }
  /** Generate the text after a prompt. `sampling`: { temperature, topK, topP, seed }, or null for
      the likeliest tokens.
      @type {(text: string, options?: { sampling?: Sampling | null, maxTokens?: number, changes?:
        ModelChanges } & Control) => Promise<string>} */
  async generate(text, { sampling = null, maxTokens = 100, changes, pause, signal } = {}) {
    const output = await generateIds(this.model, this.context(text), {
      sampling,
      maxTokens,
      pause,
      signal,
      ...engineChanges(this.model, changes)
    });
    return this.tokenizer.decode(output.tokens);
  }
  /** Return the likeliest next tokens, with their probabilities, and their shares after
      temperature, top-k and top-p.
      @param {string} text @param {{ sampling?: Sampling, changes?: ModelChanges }} options */
  next(text, { sampling = {}, changes } = {}) {
    const { model, tokenizer } = this;
    const context = this.context(text);
    const inputs = context.slice(context.length - contextLength(context.length, model.window));
    const { logits } = model.forward(null, inputs, engineChanges(model, changes));
    const values = model.logProbabilities(logits.subarray((inputs.length - 1) * model.vocabulary));
    const suppressed = /* @__PURE__ */ new Set([UNK, PAD, BOS]);
    const best = bestTokens(values, SHOWN_TOKENS, suppressed);
    const weights = samplingWeights(values, best[0].value, sampling, suppressed);
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    const prompt = tokenizer.decode(context);
    const tokens = best.map(({ token, value }) => {
      const longer = tokenizer.decode([...context, token]);
      return {
        id: token,
        piece: tokenizer.pieces([token])[0],
        text: longer.startsWith(prompt) ? longer.slice(prompt.length) : "",
        probability: Math.exp(value),
        share: weights[token] / total
      };
    });
    return { tokens, kept: weights.filter((weight) => weight > 0).length };
  }
  /** Return the ids of a text to inspect, continued greedily by up to `max_tokens`, and the number
      of ids before the continuation.
      @param {string} text
      @param {{ prefix?: number[], max_tokens?: number } & Control} options
      @param {EngineOptions} engine */
  async continueText(text, { prefix = [], max_tokens: maxTokens = 0, pause, signal }, engine) {
    const given = [...this.tokenizer.encode(text), ...prefix];
    const ids = [...given];
    if (maxTokens && given.at(-1) !== EOS) {
      const output = await generateIds(this.model, [...this.context(text), ...prefix], {
        maxTokens,
        pause,
        signal,
        ...engine
      });
      ids.push(...output.tokens, ...output.ended ? [EOS] : []);
    }
    checkLength(ids.length, "text", this.model.window - 1);
    return { ids, given: given.length };
  }
  /** Compute the intermediate values of a head; options as in POST /api/head.
      @param {string} text @param {HeadRequest & InspectOptions} options */
  async head(text, { changes, ...options }) {
    const name = checkHead(this.model, options);
    const engine = engineChanges(this.model, changes);
    const { ids } = await this.continueText(text, options, engine);
    return headSteps(this.model, name, null, [this.settings.first, ...ids], engine);
  }
  /** Inspect a text; options as in POST /api/inspect.
      @param {string} text @param {InspectOptions} options */
  async inspect(text, { temperature = 1, changes, ...options } = {}) {
    const { model, tokenizer, settings } = this;
    const engine = engineChanges(model, changes);
    const { ids, given } = await this.continueText(text, options, engine);
    const inputs = [settings.first, ...ids];
    const { logits, attention } = model.forward(null, inputs, { ...engine, attention: true });
    const size = model.vocabulary;
    const predictions = predictionsOf(
      logits.subarray(0, ids.length * size),
      ids,
      tokenizer,
      given,
      temperature
    );
    return {
      kind: "language-modeling",
      run: settings.run,
      model: settings.facts,
      text: textOf(tokenizer, ids, tokenizer.decode(ids), settings.language),
      inputs: tokensOf(tokenizer, inputs.slice(0, -1)),
      attention: [
        attentionOf(
          "decoder",
          attention.decoder,
          [model.layers.decoder, model.heads, inputs.length, inputs.length],
          engine.causal
        )
      ],
      predictions,
      next: alternativesOf(logSoftmax(logits.subarray(ids.length * size)), tokenizer),
      log_probability: predictions.reduce((sum, prediction) => sum + prediction.log_probability, 0),
      prefix: given,
      neighbours: neighboursOf(model.embeddingRows("decoder"), model.width, ids, tokenizer)
    };
  }
};

// src/manyheads/web/translation/unliketraining.js
var FEW = 0.1;
var SourceModel = class {
  /** @param {SourceModelDescription} description */
  constructor({ mean, limits, several, ...lists }) {
    const [counts, pairs] = [lists.counts, lists.pairs].map(
      (numbers) => numbers.split(" ").map(Number)
    );
    this.counts = counts;
    this.mean = mean;
    this.limits = limits;
    this.singleSentences = several < FEW;
    this.total = counts.reduce((sum, count) => sum + count, counts.length);
    this.pairs = /* @__PURE__ */ new Map();
    this.after = new Float64Array(counts.length);
    this.kinds = new Float64Array(counts.length);
    for (let at = 0; at < pairs.length; at += 3) {
      const [first, second, count] = pairs.slice(at, at + 3);
      this.pairs.set(first * counts.length + second, count);
      this.after[first] += count;
      this.kinds[first] += 1;
    }
  }
  /** Return the probability of a piece after another.
      @type {(first: number, second: number) => number} */
  probability(first, second) {
    const alone = (this.counts[second] + 1) / this.total;
    const kinds = this.kinds[first];
    if (!kinds) return alone;
    return ((this.pairs.get(first * this.counts.length + second) ?? 0) + kinds * alone) / (this.after[first] + kinds);
  }
  /** Return the surprise of the pieces of a text and of its end, summed, in nats.
      @type {(ids: number[]) => number} */
  surprise(ids) {
    return [...ids, EOS].reduce(
      (nats, id, at) => nats - Math.log(this.probability(at ? ids[at - 1] : BOS, id)),
      0
    );
  }
  /** Return whether a text of one or several rows of ids is unlike the training sources.
      @type {(rows: number[][]) => boolean} */
  isUnlike(rows) {
    const nats = rows.reduce((sum, ids) => sum + this.surprise(ids), 0);
    const pieces = rows.reduce((sum, ids) => sum + ids.length + 1, 0);
    const measures = [nats / pieces, (nats - this.mean * pieces) / Math.sqrt(pieces)];
    return pieces > 0 && measures.some((value, at) => value > this.limits[at]);
  }
};
var UnlikeTraining = class {
  /** @param {PageTranslator} translator */
  constructor({ settings: { sources } }) {
    this.sources = sources && new SourceModel(sources);
  }
  /** @type {Partial<SplitterOptions>} */
  get splitting() {
    return this.sources?.singleSentences ? { split: "sentences" } : {};
  }
  /** @type {(draft: Draft) => { [name: string]: boolean }} */
  warnings({ line }) {
    return { "unlike-training": !!this.sources?.isUnlike(line.rows) };
  }
};

// src/manyheads/web/translation/confidence.js
var LEVELS = ["low", "medium", "high"];
var SIGNS_OF_FAILURE = ["unlike-training", "repetition", "length-ratio", "broken-character"];
var ConfidenceModel = class {
  /** @param {ConfidenceDescription} description */
  constructor({ bias, weights, usual_ratio: usualRatio, limits }) {
    this.bias = bias;
    this.weights = weights;
    this.usualRatio = usualRatio;
    this.limits = limits;
  }
  /** Return the confidence in the translation of a line, from 0 to 1. `tokenScores` are those of
      all parts, `rows` the ids of the parts, `sources` the model of the training sources, if there
      is one.
      @param {number[]} tokenScores
      @param {number[][]} rows
      @param {SourceModel | null | undefined} sources
      @param {string[]} warnings
      @param {boolean} truncated */
  estimate(tokenScores, rows, sources, warnings, truncated) {
    const count = tokenScores.length;
    const pieces = rows.reduce((sum, row) => sum + row.length + 1, 0);
    const total = (values) => values.reduce((sum, value2) => sum + value2, 0);
    const surprise = sources ? total(rows.map((row) => sources.surprise(row))) / pieces : 0;
    const ratio = Math.abs(Math.log(count / pieces) - this.usualRatio);
    const terms = [
      total(tokenScores) / count,
      total(tokenScores.map(Math.exp)) / count,
      surprise,
      ratio
    ];
    let value = this.bias + total(terms.map((term, index) => this.weights[index] * term));
    if (truncated || warnings.some((name) => SIGNS_OF_FAILURE.includes(name))) {
      value = Math.min(value, this.limits[0] / 2);
    }
    return Math.min(1, Math.max(0, value));
  }
  /** Return the word for a confidence.
      @type {(confidence: number) => string} */
  level(confidence) {
    return LEVELS[this.limits.filter((limit) => confidence > limit).length];
  }
};
var Confidence = class {
  /** @param {PageTranslator} translator */
  constructor(translator) {
    const { confidence } = translator.settings;
    this.translator = translator;
    this.model = confidence && new ConfidenceModel(confidence);
  }
  /** @type {(translation: PlainTranslation, draft: Draft) => Partial<Translation>} */
  fields(translation, { line }) {
    if (!this.model || !line.parts.length) return { confidence: null, confidence_level: null };
    const training = this.translator.stages.find((stage) => stage instanceof UnlikeTraining);
    const confidence = this.model.estimate(
      translation.hypotheses[0].token_scores,
      line.rows,
      training?.sources,
      translation.warnings,
      translation.truncated
    );
    return { confidence, confidence_level: this.model.level(confidence) };
  }
};

// src/manyheads/web/translation/directions.js
var Direction = class {
  /** @param {PageTranslator} translator */
  constructor({ prefix }) {
    this.prefix = prefix;
  }
  /** @type {(draft: Draft) => Draft} */
  before(draft) {
    const forced = { prefix: this.prefix, skip: this.prefix.length };
    return { ...draft, options: { ...draft.options, ...forced } };
  }
};
function settingsByName(settings, name) {
  const found = settings.directions?.find(({ run }) => run === name);
  return found ? { ...settings, ...found, directions: null } : settings;
}
function settingsByLanguages(settings, source, target) {
  const trained = settings.directions ?? [settings];
  const fitting = trained.filter(
    (direction) => [direction.source, ""].includes(source) && [direction.target, ""].includes(target)
  );
  if (fitting.length !== 1) {
    const names = trained.map((direction) => `${direction.source}-${direction.target}`).join(", ");
    throw new RangeError(
      `${source || "any"} to ${target || "any"} is not one of the directions ${names}.`
    );
  }
  return settingsByName(settings, fitting[0].run);
}

// src/manyheads/web/text/sentences.js
var WIDE_MARKS = "\u3002\uFF01\uFF1F\uFF61\uFF0E";
var MARKS = new RegExp("(?:\u2026|(?![\\u{10000}-\\u{10ffff}])\\p{Sentence_Terminal})+", "gu");
var CLOSING_MARKS = `"'\u201D\u2019\xBB\xAB\u201C\u2018\u203A\u2039)]}\u300D\u300F\uFF09\u3011\u300B\u3009\uFF3D\uFF5D`;
var OPENING_MARKS = `"'\u201C\u201E\u201A\u201D\u2018\u2019\xAB\xBB\u2039\u203A([{\u300C\u300E\uFF08\u3010\u300A\u3008\uFF3B\xBF\xA1-\u2013\u2014*\u2022`;
var UNSPACED_END = /[。！？｡．、，；：]["'”’»«“‘›‹)\]}」』）】》〉］｝]*$/u;
var LINE_ENDS = /[\n\r\v\f\x85\u2028\u2029]/g;
var CONTINUATIONS = "\u3068\u3063\u3066\u306F\u304C\u3092\u3082\u306B\u306E\u3067\u3084\u3001";
var LAST_WORD = new RegExp(`[^${WHITE}(\\["'\u201C\u201E\xAB\xBB-]+$`, "u");
var MAX_WORD = 40;
var ABBREVIATIONS = new Set(
  "mr mrs ms dr prof st mt gen col lt sgt capt rev hon sen rep gov pres hr fr frl dipl ing bzw sog vgl ca z.b d.h u.a z.t v.a o.g u.u i.d.r inkl exkl zzgl ggf evtl gem geb gest hg hrsg jhd mio mrd vs cf approx dept est e.g i.e al resp".split(" ")
);
var NUMBER_ABBREVIATIONS = new Set(
  // only before a number
  "no nos nr vol vols ch p pp sec eq art fig figs bd abb tab abs kap s str tel jan feb mar apr jun jul aug sep sept oct okt nov dec dez".split(" ")
);
var ORDINAL_DOT = new Set("de da nb nn no fi et cs sk sl hr bs sr pl hu lv tr is lb".split(" "));
var DATE = new RegExp(`\\p{Nd}\\.[${WHITE}]?\\p{Nd}{1,2}$`, "u");
var INITIAL = /^(?:[\p{L}\p{Nl}\p{No}]\.)*[\p{L}\p{Nl}\p{No}]$/u;
var NO_INITIAL = ["a.m", "p.m"];
var AFTER_LETTER = new RegExp(
  `(?<![\\p{L}\\p{N}])[\\p{L}\\p{Nl}\\p{No}]\\.[${WHITE}][\\p{L}\\p{Nl}\\p{No}]$`,
  "u"
);
var BEFORE_LETTER = new RegExp(`^\\.[${WHITE}](?:[\\p{L}\\p{Nl}\\p{No}]|Chr)\\.`, "u");
var ENUMERATION = new RegExp("^(?:\\p{Nd}{1,3}|[a-zA-Z])$", "u");
var lineSpans = (text) => spansBetween(text, LINE_ENDS).flatMap((span) => trimmedSpan(text, span));
function sentenceSpans(text, language = "") {
  const ordinals = ORDINAL_DOT.has(language.split("-")[0]);
  const seen = known(text);
  return spansBetween(seen, LINE_ENDS).flatMap(
    ([start, end]) => sentencesOfLine(seen, start, end, ordinals)
  );
}
function sentenceCase(text, language) {
  let result = "";
  let end = 0;
  for (const [start, stop] of sentenceSpans(text, language)) {
    result += text.slice(end, start) + capitalize(text.slice(start, stop), language);
    end = stop;
  }
  return result + text.slice(end);
}
function spansBetween(text, separator) {
  const spans = [];
  let start = 0;
  for (const match of text.matchAll(separator)) {
    spans.push([start, match.index]);
    start = match.index + match[0].length;
  }
  return [...spans, [start, text.length]];
}
function trimmedSpan(text, [start, end]) {
  const first = skipBlanks(text, start, end);
  if (first === end) return [];
  let last = end;
  while (isBlank(text[last - 1])) last -= 1;
  return [[first, last]];
}
function skipBlanks(text, start, end) {
  let index = start;
  while (index < end && isBlank(text[index])) index += 1;
  return index;
}
function sentencesOfLine(text, start, end, ordinals) {
  const spans = [];
  let first = start;
  for (const match of text.slice(start, end).matchAll(MARKS)) {
    const mark = start + match.index;
    const marks = match[0];
    const closers = mark + marks.length;
    const cut = skipClosingMarks(text, closers, end);
    const isWideMark = WIDE_MARKS.includes(marks.slice(-1));
    if (cut < end && !isBlank(text[cut]) && !isWideMark) continue;
    const after = skipBlanks(text, cut, end);
    if (after === end) break;
    const following = firstCharacter(text, after, end);
    const endsSentence = isWideMark ? !(cut > closers && after === cut && CONTINUATIONS.includes(text[cut]) || marks === "\uFF0E" && isDigits(characterAt(text, cut))) : beginsSentence(following) && !(marks === "." && isAbbreviation(text, first, mark, following, ordinals));
    if (!endsSentence) continue;
    spans.push(...trimmedSpan(text, [first, cut]));
    first = after;
  }
  return [...spans, ...trimmedSpan(text, [first, end])];
}
function skipClosingMarks(text, start, end) {
  let index = start;
  while (index < end) {
    if (CLOSING_MARKS.includes(text[index])) index += 1;
    else if (isBlank(text[index]) && index + 1 < end && text[index + 1] === "\xBB" && (index + 2 === end || isBlank(text[index + 2]))) {
      index += 2;
    } else break;
  }
  return index;
}
function firstCharacter(text, start, end) {
  let index = start;
  for (let remaining = 8; remaining && index < end; remaining -= 1) {
    const character = characterAt(text, index);
    if (!OPENING_MARKS.includes(character) && !isBlank(character)) return character;
    index += character.length;
  }
  return "";
}
var beginsSentence = (character) => isAlphanumeric(character) && (!new RegExp("\\p{Lowercase}", "u").test(character) || character === capitalize(character));
function isAbbreviation(text, first, dot, following, ordinals) {
  const from = Math.max(first, moveOffset(text, dot, -MAX_WORD));
  const before = text.slice(from, dot);
  const match = LAST_WORD.exec(before);
  if (!match) return false;
  const word = match[0];
  const lowerCase2 = word.toLowerCase();
  if (from + match.index === first && ENUMERATION.test(word)) return true;
  if (isDigits(word)) {
    return DATE.test(before) || isDigits(following) || ordinals && [...word].length <= 2;
  }
  if (ABBREVIATIONS.has(lowerCase2) || NUMBER_ABBREVIATIONS.has(lowerCase2) && isDigits(following)) {
    return true;
  }
  const isSmall = new RegExp("^\\p{Lowercase}$", "u").test(word);
  if (isSmall && (AFTER_LETTER.test(before) || BEFORE_LETTER.test(text.slice(dot, dot + 6)))) {
    return true;
  }
  return INITIAL.test(word) && (isUpper(word) || word.includes(".")) && !NO_INITIAL.includes(lowerCase2);
}
var CLAUSES = new RegExp(
  `(?<=[,;:\u060C\u061B])[${WHITE}]+|(?<=[\u3001\uFF0C\uFF1B\uFF1A])|(?<![${WHITE},;:\u060C\u061B])[${WHITE}]+(?=[\u2013\u2014-][${WHITE}])`,
  "gu"
);
var BLANKS = new RegExp(`[${WHITE}]+`, "gu");
function piecesWithin(text, span, limit, count) {
  if (count(text.slice(...span)) <= limit) return [span];
  return packUnits(divideSpan(text, span, limit, count, [CLAUSES, BLANKS]), limit).map(
    (unit) => unit.span
  );
}
function packUnits(units, limit) {
  const total = units.reduce((sum, unit) => sum + unit.tokens, 0);
  const target = total / Math.max(1, Math.ceil(total / limit));
  const pieces = [];
  for (const { span, tokens } of units) {
    const last = pieces.at(-1) ?? { span, tokens: limit };
    const larger = last.tokens + tokens + 1;
    if (larger <= limit && larger - target <= target - last.tokens) {
      pieces[pieces.length - 1] = { span: [last.span[0], span[1]], tokens: larger };
    } else pieces.push({ span, tokens });
  }
  return pieces;
}
function divideSpan(text, span, limit, count, separators) {
  if (!separators.length) return halveSpan(text, span, limit, count);
  const [start, end] = span;
  const inner = spansBetween(text.slice(start, end), separators[0]).map(([first, last]) => [
    start + first,
    start + last
  ]);
  return inner.flatMap((part) => trimmedSpan(text, part)).flatMap((part) => {
    const tokens = count(text.slice(...part));
    return tokens <= limit ? [{ span: part, tokens }] : packUnits(divideSpan(text, part, limit, count, separators.slice(1)), limit);
  });
}
function halveSpan(text, [start, end], limit, count) {
  const word = text.slice(start, end);
  const tokens = count(word);
  const length = [...word].length;
  if (tokens <= limit || length === 1) return [{ span: [start, end], tokens }];
  const middle = characterStart(text, moveOffset(text, start, Math.floor(length / 2)), end);
  return [
    ...halveSpan(text, [start, middle], limit, count),
    ...halveSpan(text, [middle, end], limit, count)
  ];
}
function characterStart(text, index, end) {
  let later = index;
  for (let remaining = 8; remaining && later < end; remaining -= 1) {
    const character = characterAt(text, later);
    if (!isCombining(character)) return later;
    later += character.length;
  }
  return index;
}

// src/manyheads/web/translation/parts.js
var CODE = /^(`{3,}|~{3,})[^`]*$/u;
var LONGEST_END = 8;
var Part = class {
  /** @param {number} start @param {string} text @param {number[]} ids @param {boolean} capitals */
  constructor(start, text, ids, capitals = false) {
    this.start = start;
    this.text = text;
    this.ids = ids;
    this.capitals = capitals;
  }
  get end() {
    return this.start + this.text.length;
  }
  /** Return the text of tokens of the part or of its output.
      @type {(tokenizer: Tokenizer, tokens: number[]) => string} */
  decode(tokenizer, tokens) {
    return tokenizer.decode(tokens);
  }
  /** Return the text of an output, without broken characters.
      @type {(tokenizer: Tokenizer, tokens: number[]) => string} */
  outputText(tokenizer, tokens) {
    return this.decode(tokenizer, tokenizer.wholeCharacters(tokens, this.text).whole);
  }
};
var Line = class {
  /** @param {{ text: string, parts: Part[], cutSentences?: number, target?: string }} fields */
  constructor({ text, parts, cutSentences = 0, target = "" }) {
    this.text = text;
    this.parts = parts;
    this.cutSentences = cutSentences;
    this.target = target;
  }
  /** The token ids of each part. */
  get rows() {
    return this.parts.map(({ ids }) => ids);
  }
  /** Join the outputs of the parts, with the white space and the copied text around and between
      them.
      @type {(outputs: string[]) => string} */
  join(outputs) {
    let joined = "";
    let last = "";
    outputs.forEach((output, index) => {
      const cased = this.parts[index].capitals ? upperCase(output, this.target) : output;
      joined += this.between(index, last, characterAt(cased, 0)) + cased;
      if (cased) last = characterBefore(cased, cased.length);
    });
    return joined + this.text.slice(this.parts.at(-1)?.end ?? 0);
  }
  /** Return the white space and the copied text before the output of a part; `last` and `first` are
      the characters on its two sides.
      @type {(index: number, last: string, first: string) => string} */
  between(index, last, first) {
    const start = index ? this.parts[index - 1].end : 0;
    const end = this.parts[index].start;
    return this.text.slice(start, end) || blankBetween(this.text.slice(Math.max(0, start - LONGEST_END), start), last, first);
  }
};
function blankBetween(before, last, first) {
  const wide = [last, first].some((character) => isWide(character));
  return UNSPACED_END.test(before) && !wide && last && first ? " " : "";
}
var Splitter = class {
  /** @param {SplitterOptions} options */
  constructor({
    tokenizer,
    language,
    split = "auto",
    trainedLength,
    longest,
    spansToTranslate = (line) => [[0, line.length]],
    lowerCapitals = false,
    target = ""
  }) {
    this.tokenizer = tokenizer;
    this.language = language;
    this.split = split;
    this.lowerCapitals = lowerCapitals;
    this.target = target;
    this.spansToTranslate = spansToTranslate;
    this.limit = Math.min(trainedLength, longest);
  }
  /** Split a text into a Line.
      @param {string} text */
  line(text) {
    const sentences = this.stretches(text).flatMap((span) => this.sentences(text, span));
    return new Line({
      text,
      parts: sentences.flat().filter((part) => part.ids.length && this.translates(part.text)),
      cutSentences: sentences.filter((pieces) => pieces.length > 1).length,
      target: this.target
    });
  }
  /** Return the part of a text in a span.
      @type {(text: string, span: Span) => Part} */
  part(text, [start, end]) {
    const own = text.slice(start, end);
    return new Part(start, own, this.encode(own), this.inCapitals(own));
  }
  /** Return the parts of each sentence of a span: one, or the pieces of a sentence that is too
      long. A span that fits counts as one sentence.
      @type {(text: string, span: Span) => Part[][]} */
  sentences(text, [start, end]) {
    const whole = this.part(text, [start, end]);
    if (this.fits(whole.ids)) return [[whole]];
    return sentenceSpans(whole.text, this.language).map((span) => {
      const sentence = this.part(text, [start + span[0], start + span[1]]);
      if (sentence.ids.length <= this.limit) return [sentence];
      const count = (piece) => this.encode(piece).length;
      return piecesWithin(whole.text, span, this.limit, count).map(
        ([first, last]) => this.part(text, [start + first, start + last])
      );
    });
  }
  /** Return the token ids of a text; with `lowerCapitals`, a text in capitals is encoded in
      sentence case.
      @type {(text: string) => number[]} */
  encode(text) {
    return this.tokenizer.encode(this.inCapitals(text) ? sentenceCase(text, this.language) : text);
  }
  /** Return whether a text with these tokens is left unsplit.
      @type {(ids: number[]) => boolean} */
  fits(ids) {
    return this.split === "none" || this.split === "auto" && ids.length <= this.limit;
  }
  /** Return whether a text has at least two letters, all of them capitals; never without
      `lowerCapitals`.
      @type {(text: string) => boolean} */
  inCapitals(text) {
    const letters = this.lowerCapitals ? known(text).match(new RegExp("\\p{L}", "gu")) ?? [] : [];
    return letters.length > 1 && letters.every((letter) => new RegExp("\\p{Uppercase}", "u").test(letter));
  }
  /** Return the spans that are not copied: the lines of a text, or what lies between copied texts
      in them.
      @type {(text: string) => Span[]} */
  stretches(text) {
    const lines = this.translatedLines(text);
    if (!this.tokenizer.knowsLetters) return lines;
    return lines.flatMap(
      ([start, end]) => this.spansToTranslate(text.slice(start, end)).map(
        ([first, last]) => (
          /** @type {Span} */
          [start + first, start + last]
        )
      )
    );
  }
  /** Return the spans of the lines of a text that are not copied as a whole.
      @type {(text: string) => Span[]} */
  translatedLines(text) {
    return outsideCode(text).filter((span) => this.translates(text.slice(...span)));
  }
  /** Return the spans of the translated lines of a text, or of the sentences of a line that is too
      long.
      @type {(text: string) => Span[]} */
  units(text) {
    return this.translatedLines(text).flatMap(([start, end]) => {
      const line = text.slice(start, end);
      return this.fits(this.encode(line)) ? [[start, end]] : sentenceSpans(line, this.language).map(([first, last]) => [start + first, start + last]);
    });
  }
  /** Return whether a text is translated, not copied.
      @type {(text: string) => boolean} */
  translates(text) {
    return hasLetters(text) || hasText(text) && !this.tokenizer.knowsLetters;
  }
};
function outsideCode(text) {
  const outside = [];
  let held = [];
  let mark = "";
  for (const span of lineSpans(text)) {
    const line = text.slice(...span);
    const begin = CODE.exec(line);
    if (mark && line.startsWith(mark) && [...line].every((character) => character === mark[0])) {
      [held, mark] = [[], ""];
    } else if (mark) held.push(span);
    else if (begin) [held, mark] = [[span], begin[1]];
    else outside.push(span);
  }
  return [...outside, ...held];
}

// src/manyheads/web/translation/literals.js
var BEFORE = "([{<\"'\u201E\u201C\u201A\u2018\xAB\u2039\xBB\u203A\u300C\u300E\uFF08\u3010\xBF\xA1*_~`|=";
var AFTER = new RegExp(`[^\\p{L}\\p{N}_${WHITE}<{@$%]*`, "uy");
var BRANCH = /,[^{}\\]*\{|\}[^{}\\]*[{}]/u;
var ORDERED = /^(?:[<[\]*_~}\\]|\{(?:[/\\]|\d{1,4}[>\]]))/u;
var NO_BLANK_AFTER = "([{\xAB\u201E\u201C\u201A\u2018\xBF\xA1";
var NO_BLANK_BEFORE = ".,;:!?\u2026)]}\xBB\u201D\u2019\u3002\u3001\uFF0C\uFF01\uFF1F";
var WIDE_BEAM = 10;
var LiteralKinds = class _LiteralKinds {
  /** @param {LiteralKind[]} kinds */
  constructor(kinds) {
    this.kinds = kinds.map(({ pattern, needs }) => ({
      pattern,
      needs: needs && new RegExp(needs, "u")
    }));
    const layout = kinds.filter((kind) => kind.layout);
    this.layout = layout.length === kinds.length ? this : new _LiteralKinds(layout);
    this.patterns = /* @__PURE__ */ new Map();
  }
  /** Return the expression of all kinds that a text may hold.
      @type {(text: string) => RegExp} */
  patternFor(text) {
    const joined = this.kinds.filter(({ needs }) => !needs || needs.test(text)).map(({ pattern }) => pattern).join("|");
    const found = this.patterns.get(joined) ?? new RegExp(joined, "gu");
    this.patterns.set(joined, found);
    return found;
  }
  /** Return the spans of the literals of a text.
      @type {(text: string) => Span[]} */
  find(text) {
    return Array.from(text.matchAll(this.patternFor(text)), (match) => [
      match.index,
      match.index + match[0].length
    ]);
  }
  /** Return the parts of a line of a text between marks of its layout that have literals inside,
      and letters beside them; not the branches of a message.
      @type {(text: string, span: Span) => Sentence[]} */
  sentences(text, [lineStart, lineEnd]) {
    const line = text.slice(lineStart, lineEnd);
    const literals = this.find(line);
    return (literals.length ? this.layout.spansToTranslate(line) : []).flatMap(([start, end]) => {
      const spans = [];
      for (const [first, last] of literals) {
        if (first >= end || start >= last) continue;
        const joined = spans.length && !hasLetters(line.slice(start + spans[spans.length - 1][1], first));
        spans.push([joined ? (spans.pop() ?? [0])[0] : first - start, last - start]);
      }
      if (!spans.length || spans[0][0] < 0 || spans[spans.length - 1][1] > end - start) return [];
      const sentence = {
        start: lineStart + start,
        text: line.slice(start, end),
        literals: spans
      };
      return !isMessage(sentence) && hasLetters(textsBeside(sentence).join("")) ? [sentence] : [];
    });
  }
  /** Return the spans of a text between literals that contain letters, without white space at their
      ends.
      @type {(text: string) => Span[]} */
  spansToTranslate(text) {
    const spans = [];
    let start = 0;
    for (const [literal, after] of [...this.find(text), [text.length, text.length]]) {
      if (start && !isBlank(text[start - 1])) {
        AFTER.lastIndex = start;
        start = Math.min(literal, start + (AFTER.exec(known(text))?.[0].length ?? 0));
      }
      let end = literal;
      while (literal < text.length && !isBlank(text[literal]) && end > start && BEFORE.includes(text[end - 1])) {
        end -= 1;
      }
      const part = text.slice(start, end);
      if (hasLetters(part)) {
        const first = start + part.length - stripStart(part).length;
        spans.push([first, first + strip(part).length]);
      }
      start = after;
    }
    return spans;
  }
};
var isMessage = ({ text, literals }) => literals.map((span) => text.slice(...span)).some(
  (literal) => literal.split("{").length !== literal.split("}").length && BRANCH.test(literal)
);
function textsBeside({ text, literals }) {
  const borders = [0, ...literals.flat(), text.length];
  return Array.from(
    { length: literals.length + 1 },
    (_, index) => text.slice(borders[2 * index], borders[2 * index + 1])
  );
}
var SentenceWithPlaceholders = class extends Part {
  /** @param {Sentence} sentence @param {number[]} ids @param {boolean} capitals */
  constructor({ start, text, literals }, ids, capitals) {
    super(start, text, ids, capitals);
    this.literals = literals;
  }
  /** Return whether an output holds the placeholder of each literal once; `tokenizer` is that of
      the target.
      @type {(tokenizer: Tokenizer, tokens: number[]) => boolean} */
  isComplete(tokenizer, tokens) {
    const { numbers } = splitAtPlaceholders(tokenizer, tokens);
    const found = this.literals.some(([start]) => ORDERED.test(this.text.slice(start))) ? numbers : [...numbers].sort((a, b) => a - b);
    return found.length === this.literals.length && found.every((number, index) => number === index);
  }
  /** Return the text of tokens, with the literals in the place of their placeholders.
      @type {(tokenizer: Tokenizer, tokens: number[]) => string} */
  decode(tokenizer, tokens) {
    const { runs, numbers } = splitAtPlaceholders(tokenizer, tokens);
    const [first, ...others] = runs.map((run) => tokenizer.decode(run));
    let text = first;
    numbers.forEach((number, index) => {
      const [start, end] = this.literals[number];
      const after = others[index];
      const tag = this.text[end - 1] === ">";
      if (text) {
        text += blankBeside(
          characterBefore(this.text, start),
          characterBefore(text, text.length),
          NO_BLANK_AFTER,
          tag
        );
      }
      text += this.text.slice(start, end);
      if (after) {
        text += blankBeside(characterAt(this.text, end), characterAt(after, 0), NO_BLANK_BEFORE, tag) + after;
      }
    });
    return text;
  }
};
function withPlaceholders(line, splitter, kinds) {
  const sentences = splitter.translatedLines(line.text).flatMap((span) => kinds.sentences(line.text, span)).flatMap((sentence) => sentencesWithin(sentence, splitter));
  let { parts } = line;
  for (const sentence of sentences) {
    const ids = idsWithPlaceholders(sentence, splitter.tokenizer);
    const letters = textsBeside(sentence).join("");
    if (!ids || ids.length > splitter.limit || splitter.inCapitals(letters)) continue;
    const whole = new SentenceWithPlaceholders(sentence, ids, splitter.inCapitals(sentence.text));
    parts = [...parts.filter((part) => part.end <= whole.start || whole.end <= part.start), whole];
  }
  return new Line({ ...line, parts: [...parts].sort((a, b) => a.start - b.start) });
}
function sentencesWithin(whole, splitter) {
  const { start, text, literals } = whole;
  const ids = idsWithPlaceholders(whole, splitter.tokenizer);
  if (ids && splitter.fits(ids)) return [whole];
  const starts = sentenceSpans(text, splitter.language).map(([first]) => first).filter((at) => !literals.some(([first, last]) => first < at && at < last));
  return starts.map((first, index) => {
    const last = first + strip(text.slice(first, starts[index + 1])).length;
    const own = literals.filter(([from, to]) => first <= from && to <= last);
    return {
      start: start + first,
      text: text.slice(first, last),
      literals: own.map(([from, to]) => (
        /** @type {Span} */
        [from - first, to - first]
      ))
    };
  }).filter((part) => part.literals.length && hasLetters(textsBeside(part).join("")));
}
function idsWithPlaceholders(sentence, tokenizer) {
  if (sentence.literals.length > tokenizer.placeholderIds.length) return null;
  return textsBeside(sentence).flatMap((text, index) => [
    ...index ? [tokenizer.placeholderIds[index - 1]] : [],
    ...tokenizer.encode(text)
  ]);
}
function splitAtPlaceholders({ placeholderIds }, tokens) {
  const runs = [[]];
  const numbers = [];
  for (const token of tokens) {
    if (placeholderIds.includes(token)) {
      numbers.push(placeholderIds.indexOf(token));
      runs.push([]);
    } else runs[runs.length - 1].push(token);
  }
  return { runs, numbers };
}
function blankBeside(source, output, noBlank, tag) {
  const wide = isWide(source) || source >= "\uAC00" && source <= "\uD7A3";
  const joined = source && !isBlank(source) && (tag || !wide);
  return joined && (isAlphanumeric(source) || !isAlphanumeric(output)) || noBlank.includes(output) ? "" : " ";
}
var Literals = class {
  /** @param {PageTranslator} translator */
  constructor(translator) {
    this.translator = translator;
    this.kinds = new LiteralKinds(translator.settings.literals);
  }
  /** @type {Partial<SplitterOptions>} */
  get splitting() {
    return { spansToTranslate: (line) => this.kinds.spansToTranslate(line) };
  }
  /** @type {(draft: Draft) => Draft} */
  before(draft) {
    const { tokenizers, splitter } = this.translator;
    const { source, target } = tokenizers;
    if (!source.placeholderIds.length || !target.placeholderIds.length) return draft;
    return { ...draft, line: withPlaceholders(draft.line, splitter, this.kinds), cut: draft };
  }
  /** @type {(part: Part, output: Output) => boolean} */
  accepts(part, { tokens }) {
    const { target } = this.translator.tokenizers;
    return !(part instanceof SentenceWithPlaceholders) || part.isComplete(target, tokens);
  }
  /** @type {(draft: Draft) => Draft} */
  change(draft) {
    const { options, cut } = draft;
    const size = Math.max(WIDE_BEAM, options.beamSize ?? 0);
    const wide = { ...options, beamSize: size, nBest: size };
    return cut && options.nBest === size ? cut : { ...draft, options: wide };
  }
};

// src/manyheads/web/translation/outputchecks.js
var MAX_PERIOD = 16;
var MIN_REPETITIONS = 4;
var MIN_LOOP_LENGTH = 8;
var OutputChecks = class {
  /** @param {PageTranslator} translator */
  constructor({ tokenizers: { target } }) {
    this.tokenizer = target;
  }
  /** @type {(draft: Draft) => { [name: string]: boolean }} */
  warnings({ line, outputs }) {
    const best = outputs.map(([first]) => first);
    const pairs = line.rows.map((ids, index) => (
      /** @type {const} */
      [ids, best[index].tokens]
    ));
    return {
      "sentence-cut": line.cutSentences > 0,
      repetition: pairs.some(([source, output]) => repeatsItself(source, output)),
      "length-ratio": pairs.some(([source, output]) => unusualLength(source.length, output.length)),
      "broken-character": best.some(
        ({ tokens }) => this.tokenizer.wholeCharacters(tokens).broken > 0
      )
    };
  }
};
function maxRepetitions(tokens) {
  let most = 1;
  for (let period = 1; period <= Math.min(MAX_PERIOD, Math.floor(tokens.length / 2)); period += 1) {
    let run = 0;
    for (let index = period; index < tokens.length; index += 1) {
      run = tokens[index] === tokens[index - period] ? run + 1 : 0;
      if (run + period >= MIN_LOOP_LENGTH) most = Math.max(most, Math.floor(run / period) + 1);
    }
  }
  return most;
}
function repeatsItself(source, output) {
  const repetitions = maxRepetitions(output);
  return repetitions >= MIN_REPETITIONS && repetitions > maxRepetitions(source) + 1;
}
var unusualLength = (source, output) => Math.max(source, output) > 3 * Math.min(source, output) + 10;

// src/manyheads/web/tasks/beam.js
var BeamRecorder = class {
  /** @param {{ beamSize: number, lengthPenalty: number, eos: number, piece: (token: number) =>
        string }} options */
  constructor({ beamSize, lengthPenalty, eos, piece }) {
    this.beamSize = beamSize;
    this.lengthPenalty = lengthPenalty;
    this.eos = eos;
    this.piece = piece;
    this.nodes = [];
    this.open = [null];
    this.steps = 0;
    this.stop = "limit";
    this.lowest = [];
  }
  /** Add the candidates of a step.
      @type {(record: StepRecord) => void} */
  step(record) {
    this.steps += 1;
    if (record.closed) {
      this.close(record);
      return;
    }
    const { candidates, kept, finished } = record;
    const keptTotals = kept.map((rank) => candidates[rank].total).filter((total) => total > -Infinity);
    const lowestKept = keptTotals.length ? Math.min(...keptTotals) : null;
    const numberOfRank = /* @__PURE__ */ new Map();
    candidates.forEach(({ parent, token, value, total }, rank) => {
      if (total === -Infinity) return;
      let state = "kept";
      let threshold = null;
      if (finished[rank]) state = "finished";
      else if (!kept.includes(rank)) [state, threshold] = ["pruned", lowestKept];
      if (token === this.eos && !finished[rank]) {
        [state, threshold] = ["late-end", candidates[this.beamSize - 1].total];
      }
      numberOfRank.set(
        rank,
        this.add({
          parent: this.open[parent],
          token,
          value,
          total,
          rank: rank + 1,
          state,
          threshold
        })
      );
    });
    this.open = kept.map((rank) => numberOfRank.get(rank) ?? null);
    const totals = [...numberOfRank.keys()].map((rank) => candidates[rank].total);
    this.lowest.push(totals.length ? Math.min(...totals) : -Infinity);
    if (!record.active) this.stopEarly(record);
  }
  /** Add a node; return its number.
      @type {(node: { parent: number | null | undefined, token: number, value: number, total:
        number, rank: number, state: string, threshold: number | null }) => number} */
  add({ parent, token, value, total, rank, state, threshold }) {
    const number = this.nodes.length;
    const depth = parent === null || parent === void 0 ? 0 : this.nodes[parent].step + 1;
    this.nodes.push({
      number,
      parent: parent ?? null,
      step: depth,
      id: token,
      piece: this.piece(token),
      log_probability: value,
      total,
      score: total / lengthDivisor(depth + 1, this.lengthPenalty),
      rank,
      state,
      threshold,
      best: false
    });
    return number;
  }
  /** At the length limit, finish each open prefix whose likeliest token is the end symbol; cut the
      others.
      @type {(record: StepRecord) => void} */
  close({ lastTokens, lastValues }) {
    this.open.forEach((number, row) => {
      if (number === null && row) return;
      const total = number === null ? 0 : this.nodes[number].total;
      if (lastTokens[row] === this.eos && lastValues[row] > -Infinity) {
        this.add({
          parent: number,
          token: this.eos,
          value: lastValues[row],
          total: total + lastValues[row],
          rank: row + 1,
          state: "finished",
          threshold: null
        });
      } else if (number !== null) this.nodes[number].state = "cut";
    });
    this.stop = "limit";
  }
  /** Mark the open nodes when the search has stopped before the length limit.
      @type {(record: StepRecord) => void} */
  stopEarly({ scores, length }) {
    const open = this.open.flatMap((number) => number === null ? [] : this.nodes[number]);
    const best = Math.max(-Infinity, ...open.map((node) => node.total));
    this.stop = scores[scores.length - 1] >= best / lengthDivisor(length + 1, this.lengthPenalty) ? "beam-full" : "settled";
    for (const node of open) if (node.state === "kept") node.state = "left";
  }
  /** Return the tree with the path of the best output marked; `best` has its ids, with its end
      symbol if any.
      @type {(best: number[]) => BeamTree} */
  tree(best) {
    let parent = null;
    for (const token of best) {
      const node = this.nodes.find(
        (candidate) => candidate.parent === parent && candidate.id === token
      );
      if (!node) break;
      node.best = true;
      parent = node.number;
    }
    const parents = new Set(this.nodes.map((node) => node.parent));
    for (const node of this.nodes) {
      if (node.state !== "kept" || parents.has(node.number) || node.step + 1 >= this.lowest.length) {
        continue;
      }
      Object.assign(node, { state: "outranked", threshold: this.lowest[node.step + 1] });
    }
    return {
      beam_size: this.beamSize,
      length_penalty: this.lengthPenalty,
      steps: this.steps,
      stop: this.stop,
      nodes: this.nodes
    };
  }
};

// src/manyheads/web/tasks/translationinspector.js
var TranslationInspector = class {
  /** @param {PageTranslator} translator */
  constructor({ model, tokenizers, settings, prefix, longest }) {
    this.model = model;
    this.tokenizers = tokenizers;
    this.settings = settings;
    this.prefix = prefix;
    this.longest = longest;
  }
  /** Encode a sentence as one part and find its outputs. Returns its ids, the result of
      findOutputs, the best hypothesis and its ids, and the inputs of encoder and decoder.
      @param {string} text @param {InspectOptions & { engine: EngineOptions }} options */
  async prepareInspection(text, options) {
    const ids = this.tokenizers.source.encode(text);
    checkLength(ids.length, "sentence", this.longest);
    const result = await this.findOutputs(ids, options);
    const [best] = result.hypotheses;
    checkLength(best.tokens.length, "output", this.longest, true);
    const output = withEndSymbol(best);
    return {
      ids,
      result,
      best,
      output,
      source: [...ids, EOS],
      inputs: [BOS, ...output.slice(0, -1)]
    };
  }
  /** Compute the intermediate values of a head; options as in POST /api/head.
      @param {string} text @param {HeadRequest & InspectOptions} options */
  async head(text, { changes, ...options }) {
    const name = checkHead(this.model, options);
    const engine = engineChanges(this.model, changes);
    const { source, inputs } = await this.prepareInspection(text, { ...options, engine });
    return headSteps(this.model, name, source, inputs, engine);
  }
  /** Inspect a sentence; options as in POST /api/inspect.
      @param {string} text @param {InspectOptions} options */
  async inspect(text, { occlusion = true, temperature = 1, changes, ...options } = {}) {
    const { model, tokenizers, settings } = this;
    const { pause, signal } = options;
    const engine = engineChanges(model, changes);
    const { ids, result, best, output, source, inputs } = await this.prepareInspection(text, {
      ...options,
      engine
    });
    const { logits, attention } = model.forward(source, inputs, { ...engine, attention: true });
    const sourceText = textOf(tokenizers.source, source, text, settings.source);
    const targetText = textOf(
      tokenizers.target,
      output,
      tokenizers.target.outputText(best.tokens, text),
      settings.target,
      text
    );
    const cross = meanHeads(model, attention.cross, output.length, source.length);
    return {
      kind: "translation",
      run: settings.run,
      model: settings.facts,
      source: sourceText,
      target: targetText,
      inputs: tokensOf(tokenizers.target, inputs, text),
      attention: [
        attentionOf(
          "encoder",
          attention.encoder,
          [model.layers.encoder, model.heads, source.length, source.length],
          false
        ),
        attentionOf(
          "decoder",
          attention.decoder,
          [model.layers.decoder, model.heads, output.length, output.length],
          engine.causal
        ),
        attentionOf(
          "cross",
          attention.cross,
          [model.layers.decoder, model.heads, output.length, source.length],
          false
        )
      ],
      predictions: predictionsOf(logits, output, tokenizers.target, result.given, temperature),
      score: best.score,
      log_probability: best.logProbability,
      ended: best.ended,
      forced: !result.tree,
      prefix: result.given,
      hypotheses: result.tree ? result.hypotheses.map((hypothesis) => this.outputOf(hypothesis, text)) : [],
      beam: result.tree,
      alignment: this.alignWords(cross, sourceText, targetText),
      occlusion: occlusion ? await this.leaveOutWords(ids, output, { pause, signal, engine }) : null,
      source_neighbours: neighboursOf(
        model.embeddingRows("encoder"),
        model.width,
        source,
        tokenizers.source
      ),
      target_neighbours: neighboursOf(
        model.embeddingRows("decoder"),
        model.width,
        output,
        tokenizers.target
      )
    };
  }
  /** Search for the outputs, or score a given one; `given` of the result is the number of output
      tokens that were forced.
      @type {(ids: number[], options: InspectOptions & { engine: EngineOptions }) => Promise<{
        hypotheses: Output[], tree: BeamTree | null, given: number }>} */
  async findOutputs(ids, { beam = this.model.search.beam_size, prefix = [], target, pause, signal, engine }) {
    const { model, tokenizers } = this;
    const complete = prefix.at(-1) === EOS;
    const given = complete ? prefix.slice(0, -1) : prefix;
    const forcedIds = this.prefix.every((token, t) => given[t] === token) ? given : [...this.prefix, ...given];
    checkLength(forcedIds.length, "prefix", this.longest, true);
    if (target === void 0 && !complete) {
      const lengthPenalty = model.search.length_penalty;
      const recorder = new BeamRecorder({
        beamSize: beam,
        lengthPenalty,
        eos: EOS,
        piece: (token) => tokenizers.target.pieces([token])[0]
      });
      const hypotheses = await translateIds(model, ids, {
        beamSize: beam,
        nBest: beam,
        prefix: forcedIds,
        onStep: (record) => recorder.step(record),
        pause,
        signal,
        ...engine
      });
      return {
        hypotheses,
        tree: recorder.tree(withEndSymbol(hypotheses[0])),
        given: forcedIds.length
      };
    }
    const forced = target === void 0 ? forcedIds : [...this.prefix, ...tokenizers.target.encode(target)];
    checkLength(forced.length, "target", this.longest, true);
    const tokenScores = this.tokenScores([...ids, EOS], [...forced, EOS], engine);
    return {
      hypotheses: [makeOutput([...forced, EOS], tokenScores, true, model.search.length_penalty)],
      tree: null,
      given: forced.length + 1
    };
  }
  /** Return the log-probability of each token of an output, by teacher forcing.
      @type {(source: number[], output: number[], engine: EngineOptions) => number[]} */
  tokenScores(source, output, engine) {
    const { logits } = this.model.forward(source, [BOS, ...output.slice(0, -1)], engine);
    const size = this.model.vocabulary;
    return output.map((token, t) => {
      const row = logits.subarray(t * size, (t + 1) * size);
      return this.model.logProbabilities(row)[token];
    });
  }
  /** Leave out each source word in turn: score the output without it, and translate greedily
      without it.
      @param {number[]} ids
      @param {number[]} output
      @param {Control & { engine: EngineOptions }} control */
  async leaveOutWords(ids, output, { pause, signal, engine }) {
    const { source, target } = this.tokenizers;
    const baseline = this.tokenScores([...ids, EOS], output, engine);
    const words = [];
    for (const { word, ids: rest } of withoutEachWord(source, ids)) {
      const drops = this.tokenScores([...rest, EOS], output, engine).map(
        (score, t) => baseline[t] - score
      );
      const [best] = rest.length ? await translateIds(this.model, rest, {
        beamSize: 1,
        nBest: 1,
        prefix: this.prefix,
        pause,
        signal,
        ...engine
      }) : [null];
      words.push({
        word,
        drop: drops.reduce((sum, drop) => sum + drop, 0),
        drops,
        output: best ? target.decode(best.tokens) : ""
      });
    }
    return { columns: target.pieces(output), words };
  }
  /** Align words by cross-attention (T, S); return null if a side has no words.
      @param {Float64Array[]} cross @param {ShownText} source @param {ShownText} target */
  alignWords(cross, source, target) {
    const wordsOf = ({ tokens: tokens2 }) => tokens2.flatMap((token) => token.word ?? []);
    const [sourceWords, targetWords] = [wordsOf(source), wordsOf(target)];
    if (!source.words.length || !target.words.length) return null;
    const { layers } = this.model;
    const links = wordAlignment(cross, sourceWords, targetWords);
    const [rows, columns] = [Math.max(...targetWords) + 1, Math.max(...sourceWords) + 1];
    const sums = new Float32Array(rows * columns);
    const tokens = new Float32Array(rows);
    targetWords.forEach((to, t) => {
      tokens[to] += 1;
      sourceWords.forEach((from, s) => {
        sums[to * columns + from] += cross[t][s];
      });
    });
    return {
      layer: layers.decoder - 1,
      pharaoh: pharaoh(links),
      links,
      weights: packArray(
        [rows, columns],
        sums.map((sum, i) => sum / Math.max(1, tokens[Math.floor(i / columns)]))
      )
    };
  }
  /** Return the JSON value of a hypothesis for a source, for the page.
      @param {Output} output @param {string} source */
  outputOf(output, source) {
    const { target } = this.tokenizers;
    const ids = withEndSymbol(output);
    return {
      text: target.outputText(output.tokens, source),
      score: output.score,
      log_probability: output.logProbability,
      ids,
      pieces: target.pieces(ids),
      token_scores: [...output.tokenScores],
      ended: output.ended
    };
  }
};

// src/manyheads/web/tasks/translation.js
var STAGES = [Direction, UnlikeTraining, Literals, OutputChecks, Confidence];
var PageTranslator = class _PageTranslator {
  /** @param {EngineModel} model @param {Tokenizers} tokenizers @param {PageSettings} settings */
  constructor(model, tokenizers, settings) {
    this.model = model;
    this.tokenizers = tokenizers;
    this.settings = settings;
    this.prefix = settings.prefix ?? [];
    this.longest = model.settings.max_positions - 1;
    this.stages = STAGES.map((Feature) => new Feature(this));
    this.splitter = new Splitter({
      tokenizer: tokenizers.source,
      language: settings.source,
      target: settings.target,
      trainedLength: settings.max_length,
      longest: this.longest,
      lowerCapitals: settings.lower_capitals,
      ...Object.assign({}, ...this.stages.map(({ splitting }) => splitting))
    });
  }
  /** Return the translator of a direction by the name that the page gives it; the same without
      several directions.
      @type {(name: string | undefined) => PageTranslator} */
  direction(name) {
    return this.withSettings(settingsByName(this.settings, name));
  }
  /** Return the translator of a direction by its languages; "" leaves out the choice. Throw an
      error unless exactly one direction fits.
      @type {(source: string, target: string) => PageTranslator} */
  to(source, target) {
    return this.withSettings(settingsByLanguages(this.settings, source, target));
  }
  /** Return the translator with other settings.
      @type {(settings: PageSettings) => PageTranslator} */
  withSettings(settings) {
    if (settings === this.settings) return this;
    return new _PageTranslator(this.model, this.tokenizers, settings);
  }
  /** Translate a line; return what `translate --json` prints. `options`: beam, nBest, alignment
      (whether to align the words), changes (see engineChanges), pause and signal (see
      engine/search.js).
      @param {string} text @param {TranslateOptions} options */
  async translate(text, {
    beam = this.model.search.beam_size,
    nBest = 1,
    alignment = false,
    changes,
    pause,
    signal
  } = {}) {
    const options = {
      beamSize: Math.max(beam, nBest),
      nBest,
      crossAttention: alignment,
      pause,
      signal,
      ...engineChanges(this.model, changes)
    };
    let draft = { line: this.splitter.line(text), options, outputs: [] };
    for (const stage of this.stages) draft = stage.before?.(draft) ?? draft;
    draft = await this.search(draft);
    const outputs = draft.outputs.map((ranked) => ranked.slice(0, nBest));
    return this.assemble({ ...draft, outputs }, alignment);
  }
  /** Search for the outputs of the parts of a line; if the stages accept none of a part, search for
      all of the line again with what a stage changes.
      @type {(draft: Draft) => Promise<Draft>} */
  async search(draft) {
    const outputs = [];
    for (const part of draft.line.parts) {
      const accept = (output) => this.stages.every((stage) => stage.accepts?.(part, output) ?? true);
      const ids = part.ids.slice(0, this.longest);
      outputs.push(await translateIds(this.model, ids, { ...draft.options, accept }));
    }
    if (outputs.every((ranked) => ranked.length)) return { ...draft, outputs };
    for (const stage of this.stages) draft = stage.change?.(draft) ?? draft;
    return this.search(draft);
  }
  /** Return the JSON value of the translation of a line.
      @type {(draft: Draft, alignment: boolean) => Translation} */
  assemble(draft, alignment) {
    const { line, outputs } = draft;
    const best = outputs.map(([first]) => first);
    const ranks = Math.max(0, ...outputs.map((ranked) => ranked.length));
    const hypotheses = Array.from(
      { length: ranks },
      (_, rank) => this.joinOutputs(
        line,
        outputs.map((ranked) => ranked[Math.min(rank, ranked.length - 1)])
      )
    );
    if (!ranks && line.text) {
      hypotheses.push({
        text: line.text,
        score: 0,
        tokens: [],
        token_scores: [],
        log_probability: 0
      });
    }
    const truncated = line.parts.some(({ ids }) => ids.length > this.longest) || best.some((output) => !output.ended);
    const warnings = Object.assign({}, ...this.stages.map((stage) => stage.warnings?.(draft)));
    const translation = {
      source: line.text,
      translation: hypotheses[0]?.text ?? "",
      score: hypotheses[0]?.score ?? 0,
      hypotheses,
      alignment: alignment && hypotheses.length ? pharaoh(this.align(draft)) : null,
      truncated,
      sentences: line.parts.length || 1,
      warnings: ranks ? Object.keys(warnings).filter((name) => warnings[name]) : []
    };
    return Object.assign(
      translation,
      ...this.stages.map((stage) => stage.fields?.(translation, draft))
    );
  }
  /** Join the outputs of the parts of a line to one hypothesis.
      @type {(line: Line, outputs: Output[]) => Hypothesis} */
  joinOutputs(line, outputs) {
    const tokenizer = this.tokenizers.target;
    const scores = outputs.flatMap((output) => [...output.tokenScores]);
    const total = outputs.reduce((sum, output) => sum + output.logProbability, 0);
    return {
      text: line.join(
        outputs.map(({ tokens }, index) => line.parts[index].outputText(tokenizer, tokens))
      ),
      score: outputs.length === 1 ? outputs[0].score : total / lengthDivisor(scores.length, this.model.search.length_penalty),
      tokens: outputs.flatMap((output) => tokenizer.pieces(withEndSymbol(output))),
      token_scores: scores,
      log_probability: total
    };
  }
  /** Return the links between the words of a line and of its best outputs.
      @type {(draft: Draft) => Link[]} */
  align({ line, outputs, options }) {
    const skip = options.skip ?? 0;
    const attended = outputs.map(([{ tokens, crossAttention }], index) => {
      const rows = Math.max(1, tokens.length + skip);
      const columns = Math.min(line.parts[index].ids.length, this.longest) + 1;
      const weights = (
        /** @type {Float32Array} */
        crossAttention
      );
      return { tokens, attention: meanHeads(this.model, weights, rows, columns).slice(skip) };
    });
    return lineAlignment(line, attended, this.tokenizers, this.longest);
  }
  /** Inspect a sentence; options as in POST /api/inspect.
      @param {string} text @param {InspectOptions} options */
  inspect(text, options) {
    return new TranslationInspector(this).inspect(text, options);
  }
  /** Compute the intermediate values of a head; options as in POST /api/head.
      @param {string} text @param {HeadRequest & InspectOptions} options */
  head(text, options) {
    return new TranslationInspector(this).head(text, options);
  }
};

// src/manyheads/web/tasks/requests.js
async function loadPageModel(wasmBytes, header, readTensors) {
  const engine = await createEngine(wasmBytes);
  return pageModel(await engine.loadModel(header, readTensors), header);
}
function pageModel(model, header) {
  const { source, target } = header.tokenizers;
  const tokenizer = loadTokenizer(source);
  if (header.task === "classification") return new PageClassifier(model, tokenizer, header.page);
  if (header.task === "language-modeling") return new PageGenerator(model, tokenizer, header.page);
  return new PageTranslator(
    model,
    {
      source: tokenizer,
      target: target ? loadTokenizer(target) : tokenizer.forSide(tokenizer.side && "target")
    },
    header.page
  );
}

// src/manyheads/web/module.js
var LENGTH_BYTES = 8;
var METHODS = {
  translation: "translate",
  classification: "classify",
  "language-modeling": "generate"
};
var Model = class {
  /** @type {PageModel | null} */
  #loaded;
  #pause = makePause();
  /** @param {PageModel} loaded */
  constructor(loaded) {
    this.#loaded = loaded;
    const { run, source, target, language, labels, directions } = loaded.settings;
    this.name = run;
    this.task = loaded.model.task;
    this.source = source;
    this.target = target;
    this.language = language;
    this.labels = labels;
    this.directions = directions?.map((direction) => [direction.source, direction.target]);
  }
  /** Return the loaded model; throw an error if it is closed or its task has another method.
      @type {(method: string) => PageModel} */
  #check(method) {
    const expected = METHODS[this.task];
    if (!this.#loaded) throw new Error("the model was closed.");
    if (method !== expected) {
      throw new Error(
        `this model is of the task "${this.task}": call ${expected}() instead of ${method}().`
      );
    }
    return this.#loaded;
  }
  /** Translate a text; see TranslateOptions.
      @type {(text: string, options?: import("./manyheads.js").TranslateOptions) =>
        Promise<object>} */
  async translate(text, { beam, nBest, source = "", target = "", signal } = {}) {
    for (const [name, value] of Object.entries({ beam, nBest })) {
      if (value !== void 0 && !(Number.isInteger(value) && value > 0)) {
        throw new RangeError(`${name} = ${value} must be a whole number from 1 on.`);
      }
    }
    const translator = (
      /** @type {PageTranslator} */
      this.#check("translate")
    );
    return translator.to(source, target).translate(String(text), { beam, nBest, signal, alignment: true, pause: this.#pause });
  }
  /** Return the classes of a text, the likeliest first; none for a blank text.
      @type {(text: string) => Promise<object[]>} */
  async classify(text) {
    const loaded = (
      /** @type {PageClassifier} */
      this.#check("classify")
    );
    return String(text).trim() ? loaded.classify(String(text)) : [];
  }
  /** Return the text that follows a prompt; see GenerateOptions.
      @type {(prompt: string, options?: import("./manyheads.js").GenerateOptions) =>
        Promise<string>} */
  async generate(prompt, { maxTokens = 256, temperature = 1, topK = 0, topP = 1, seed, signal } = {}) {
    const sampling = temperature > 0 ? { temperature, topK, topP, seed: seed ?? Math.floor(Math.random() * 2 ** 31) } : null;
    return (
      /** @type {PageGenerator} */
      this.#check("generate").generate(String(prompt), {
        maxTokens,
        sampling,
        signal,
        pause: this.#pause
      })
    );
  }
  /** Free the memory. */
  close() {
    this.#loaded?.model.close();
    this.#loaded = null;
  }
};
async function readBytes(source) {
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) {
    return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  }
  const address = new URL(source, import.meta.url);
  if (address.protocol === "file:" && typeof process !== "undefined") {
    const { readFile } = await import(
      /* webpackIgnore: true */
      /* @vite-ignore */
      "node:fs/promises"
    );
    return new Uint8Array(await readFile(address));
  }
  const response = await fetch(address);
  if (!response.ok) {
    throw new Error(`${address} cannot be read: ${response.status} ${response.statusText}.`);
  }
  return new Uint8Array(await response.arrayBuffer());
}
async function load(source = "model.bin") {
  const bytes = await readBytes(source);
  const damaged = (reason) => new Error(`the file of the model is damaged: ${reason}.`);
  if (bytes.length < LENGTH_BYTES) throw damaged("it ends too early");
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  if (LENGTH_BYTES + length > bytes.length) throw damaged("it ends too early");
  let description;
  try {
    description = JSON.parse(
      new TextDecoder().decode(bytes.subarray(LENGTH_BYTES, LENGTH_BYTES + length))
    );
  } catch (error) {
    throw damaged(error.message);
  }
  return new Model(
    await loadPageModel(
      fromBase64(description.wasm),
      description.header,
      (write) => write(0, bytes.subarray(LENGTH_BYTES + length))
    )
  );
}
var defaultModel = null;
var loadDefault = () => {
  defaultModel ??= load();
  defaultModel.catch(() => {
    defaultModel = null;
  });
  return defaultModel;
};
var translate = async (text, options) => (await loadDefault()).translate(text, options);
var classify = async (text) => (await loadDefault()).classify(text);
var generate = async (prompt, options) => (await loadDefault()).generate(prompt, options);
export {
  classify,
  generate,
  load,
  translate
};
