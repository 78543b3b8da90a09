/* The memory of the WebAssembly engine: allocation, and structs whose layout the module itself states (layout.h). */

const ALIGNMENT = 16; // bytes
const MEMORY_PAGE = 65536; // bytes by which the memory grows
const MEMORY_LIMIT = 65536; // pages, 4 GiB
const LAYOUT_ENTRY = { offset: 8, size: 16, type: 24, bytes: 32 }; // of struct Field, the only layout that is known beforehand

/** A fault that the page can explain: what is wrong with which value. */
export class EngineError extends Error {}

/** Free memory behind the data of the module: the first free block that fits is taken, freed neighbours are merged. */
export class EngineMemory {
  constructor(exports) {
    this.memory = exports.memory;
    const start = alignUp(exports.__heap_base.value, ALIGNMENT);
    this.free = [{ start, size: this.memory.buffer.byteLength - start }]; // by start
    this.blocks = new Map(); // start -> size of the blocks in use
    this.layout = this.readLayout(exports.struct_layout);
  }

  /** The views of the whole memory; growing detaches those before, so they are never kept. */
  get views() {
    const { buffer } = this.memory;
    if (this.current?.bytes.buffer !== buffer) {
      this.current = { bytes: new Uint8Array(buffer), floats: new Float32Array(buffer), ints: new Int32Array(buffer), data: new DataView(buffer) };
    }
    return this.current;
  }

  /** The address of so many bytes, aligned, whose content is undefined. */
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

  /** Give a block back. */
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

  /** Add pages, so that the last free block has at least so many bytes. */
  grow(size) {
    const end = this.memory.buffer.byteLength;
    const last = this.free.at(-1);
    const free = last && last.start + last.size === end ? last.size : 0;
    const pages = Math.ceil((size - free) / MEMORY_PAGE);
    try {
      if (end / MEMORY_PAGE + pages > MEMORY_LIMIT) throw new RangeError("4 GiB");
      this.memory.grow(pages);
    } catch {
      throw new EngineError(`there is no memory for ${Math.ceil(size / 2 ** 20)} MiB more: the text or the model is too large for this page.`);
    }
    if (free) last.size += pages * MEMORY_PAGE;
    else this.free.push({ start: end, size: pages * MEMORY_PAGE });
  }

  /** Bytes in use. */
  get used() {
    return [...this.blocks.values()].reduce((sum, size) => sum + size, 0);
  }

  /** Blocks that are freed together. */
  scope() {
    return new MemoryScope(this);
  }

  /** The numbers at an address, as long as the memory does not grow. */
  bytes(address, count) {
    return this.views.bytes.subarray(address, address + count);
  }

  floats(address, count) {
    return this.views.floats.subarray(address / 4, address / 4 + count);
  }

  ints(address, count) {
    return this.views.ints.subarray(address / 4, address / 4 + count);
  }

  longs(address, count) {
    return new BigInt64Array(this.memory.buffer, address, count);
  }

  doubles(address, count) {
    return new Float64Array(this.memory.buffer, address, count);
  }

  /** Struct and field -> { offset, size, type }, from the module. */
  readLayout(structLayout) {
    const start = this.allocate(8);
    const first = structLayout(start);
    const { data, bytes } = this.views;
    const count = Number(data.getBigInt64(start, true));
    this.release(start);
    const text = (address) => new TextDecoder().decode(bytes.subarray(address, bytes.indexOf(0, address)));
    const layout = new Map();
    for (let entry = first; entry < first + count * LAYOUT_ENTRY.bytes; entry += LAYOUT_ENTRY.bytes) {
      const [offset, size] = [LAYOUT_ENTRY.offset, LAYOUT_ENTRY.size].map((field) => Number(data.getBigInt64(entry + field, true)));
      layout.set(text(data.getUint32(entry, true)), { offset, size, type: text(data.getUint32(entry + LAYOUT_ENTRY.type, true)) });
    }
    return layout;
  }

  /** The bytes of a struct. */
  sizeOf(struct) {
    return this.layout.get(struct).size;
  }

  /** The place of a field; fields of inner structs as "step.tokens". */
  place(struct, path) {
    let offset = 0;
    let type = struct;
    for (const name of path.split(".")) {
      const field = this.layout.get(`${type}.${name}`);
      if (!field) throw new Error(`there is no field ${type}.${name}`);
      offset += field.offset;
      type = field.type;
    }
    return { offset, type };
  }

  /** Write the fields of a struct; those that are not named become 0. A pointer is an address, null is 0. */
  write(struct, address, values) {
    this.bytes(address, this.sizeOf(struct)).fill(0);
    this.update(struct, address, values);
  }

  /** Write some fields of a struct. */
  update(struct, address, values) {
    for (const [name, value] of Object.entries(values)) {
      const { offset, type } = this.place(struct, name);
      if (this.layout.has(type)) this.write(type, address + offset, value ?? {});
      else this.set(type, address + offset, value ?? 0);
    }
  }

  set(type, address, value) {
    const { data } = this.views;
    if (type === "int64") data.setBigInt64(address, BigInt(value), true);
    else if (type === "int32") data.setInt32(address, value, true);
    else if (type === "float") data.setFloat32(address, value, true);
    else if (type === "double") data.setFloat64(address, value, true);
    else data.setUint32(address, value, true);
  }

  /** The number in a field. */
  get(struct, address, path) {
    const { offset, type } = this.place(struct, path);
    const { data } = this.views;
    if (type === "int64") return Number(data.getBigInt64(address + offset, true));
    if (type === "int32") return data.getInt32(address + offset, true);
    if (type === "float") return data.getFloat32(address + offset, true);
    if (type === "double") return data.getFloat64(address + offset, true);
    return data.getUint32(address + offset, true);
  }

  /** The text at an address, which ends with a 0. */
  text(address) {
    const { bytes } = this.views;
    return new TextDecoder().decode(bytes.subarray(address, bytes.indexOf(0, address)));
  }
}

/** Blocks of memory that are freed together by `close`. */
class MemoryScope {
  constructor(memory) {
    this.memory = memory;
    this.starts = new Set();
  }

  allocate(bytes) {
    const start = this.memory.allocate(bytes);
    this.starts.add(start);
    return start;
  }

  release(start) {
    if (this.starts.delete(start)) this.memory.release(start);
  }

  /** Copy numbers into a new block. */
  longs(values) {
    const start = this.allocate(8 * values.length);
    const target = this.memory.longs(start, values.length);
    for (let i = 0; i < values.length; i++) target[i] = BigInt(values[i]);
    return start;
  }

  floats(values) {
    const start = this.allocate(4 * values.length);
    this.memory.floats(start, values.length).set(values);
    return start;
  }

  ints(values) {
    const start = this.allocate(4 * values.length);
    this.memory.ints(start, values.length).set(values);
    return start;
  }

  doubles(values) {
    const start = this.allocate(8 * values.length);
    this.memory.doubles(start, values.length).set(values);
    return start;
  }

  /** A new struct. */
  struct(type, values) {
    const start = this.allocate(this.memory.sizeOf(type));
    this.memory.write(type, start, values);
    return start;
  }

  /** New structs side by side. */
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

const alignUp = (value, unit) => Math.ceil(value / unit) * unit;
