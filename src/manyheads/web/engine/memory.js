/* The memory of the WebAssembly engine: allocation, and access to C structs, whose layout the
   module exports (layout.h). */

const ALIGNMENT = 16; // bytes
const MEMORY_PAGE = 65536; // bytes by which the memory grows
const MEMORY_LIMIT = 65536; // pages, 4 GiB
// of struct Field, the only layout that is not read from the module
const LAYOUT_ENTRY = { offset: 8, size: 16, type: 24, bytes: 32 };

/** An error for the user: the message says which value is wrong. */
export class EngineError extends Error {}

/** A first-fit allocator of the memory behind the data of the module; adjacent free blocks are
    merged. */
export class EngineMemory {
  /** @param {EngineExports} exports */
  constructor(exports) {
    this.memory = exports.memory;
    const start = alignUp(exports.__heap_base.value, ALIGNMENT);
    this.free = [{ start, size: this.memory.buffer.byteLength - start }]; // by start
    this.blocks = new Map(); // start -> size of the blocks in use
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
        data: new DataView(buffer),
      };
    }
    return this.current;
  }

  /** Return the address of a new aligned block of `bytes` bytes, with undefined content.
      @type {(bytes: number) => number} */
  allocate(bytes) {
    const size = alignUp(Math.max(bytes, 1), ALIGNMENT);
    let index = this.free.findIndex((block) => block.size >= size);
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
    if (size === undefined) throw new Error(`no block begins at ${start}`);
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
        `there is no memory for ${mebibytes} MiB more: ` +
          "the text or the model is too large for this page.",
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
    const layout = new Map();
    for (
      let entry = first;
      entry < first + count * LAYOUT_ENTRY.bytes;
      entry += LAYOUT_ENTRY.bytes
    ) {
      const [offset, size] = [LAYOUT_ENTRY.offset, LAYOUT_ENTRY.size].map((field) =>
        Number(data.getBigInt64(entry + field, true)),
      );
      layout.set(this.text(data.getUint32(entry, true)), {
        offset,
        size,
        type: this.text(data.getUint32(entry + LAYOUT_ENTRY.type, true)),
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
        this.write(type, address + offset, /** @type {StructValues} */ (value ?? {}));
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
}

/** An allocator whose blocks are freed together by `close`. */
class MemoryScope {
  /** @param {EngineMemory} memory */
  constructor(memory) {
    this.memory = memory;
    this.starts = new Set();
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
}

/** @type {(value: number, unit: number) => number} */
const alignUp = (value, unit) => Math.ceil(value / unit) * unit;
