/* Position tables of the encoder or decoder: sinusoidal, learned or rotary (decoding/native/positions.py). */

import { EngineError } from "./memory.js";

const MIN_POSITIONS = 64;

/** A table of positions that grows. Smaller tables stay in memory, because a search may still read them. */
export class PositionTables {
  /** learned, types: Float32Array (N, D) or null.
      @param {MemoryScope} scope @param {ModelSettings} settings @param {Float32Array | null} learned @param {Float32Array | null} types */
  constructor(scope, settings, learned, types) {
    const { d_model: width, num_heads: heads } = settings;
    this.scope = scope;
    this.settings = settings;
    this.learned = learned;
    this.types = types;
    this.width = width;
    this.headDim = width / heads;
    this.count = 0;
    /** @type {{ signals: number | null, rotary: number | null }} */
    this.table = { signals: null, rotary: null };
  }

  /** Return the addresses of a table of at least `count` positions: signals (N, D), and rotary cosines and sines (N, E / 2, 2), or null.
      @type {(count: number) => { signals: number | null, rotary: number | null }} */
  tableFor(count) {
    if (this.learned && count > this.learned.length / this.width) {
      throw new EngineError(`an input of ${count} tokens is longer than model.max_positions = ${this.learned.length / this.width}, the limit of this model.`);
    }
    if (count > this.count) {
      this.count = Math.max(MIN_POSITIONS, 2 * count);
      if (this.learned) this.count = Math.min(this.count, this.learned.length / this.width);
      const rotary = this.settings.positions === "rotary";
      const signals = rotary ? this.typeSignals(this.count) : this.addType(this.positionSignals(this.count));
      this.table = {
        signals: signals && this.scope.floats(signals),
        rotary: rotary ? this.scope.floats(rotaryCosSin(this.count, this.headDim)) : null,
      };
    }
    return this.table;
  }

  /** Return the signals (count, D) of positions 0 to count - 1, without token types.
      @type {(count: number) => Float32Array} */
  positionSignals(count) {
    return this.learned ? this.learned.slice(0, count * this.width) : sinusoids(count, this.width);
  }

  /** Return the embedding of token type 0, `count` times, without positions; null without token types.
      @type {(count: number) => Float32Array | null} */
  typeSignals(count) {
    return this.types && this.addType(new Float32Array(count * this.width));
  }

  /** Add the embedding of token type 0 to each position.
      @type {(signals: Float32Array) => Float32Array} */
  addType(signals) {
    if (this.types) for (let i = 0; i < signals.length; i++) signals[i] += this.types[i % this.width];
    return signals;
  }

  /** Return the signals (S, D) of the tokens of a text with these types, with or without positions; null if there is nothing to add.
      @type {(count: number, types: number[] | null, withPositions: boolean) => Float32Array | null} */
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
}

/** Return the sinusoids of section 3.5 (count, width), computed in float64 and stored in float32.
    @type {(count: number, width: number) => Float32Array} */
function sinusoids(count, width) {
  const table = new Float32Array(count * width);
  for (let i = 0; i < width; i += 2) {
    const frequency = Math.exp(i * (-Math.log(10000) / width));
    for (let p = 0; p < count; p++) {
      table[p * width + i] = Math.sin(p * frequency);
      table[p * width + i + 1] = Math.cos(p * frequency);
    }
  }
  return table;
}

/** Return the cosines and sines of rotary positions (count, headDim / 2, 2), with angles in float32.
    @type {(count: number, headDim: number) => Float32Array} */
function rotaryCosSin(count, headDim) {
  const table = new Float32Array(count * headDim);
  const step = Math.fround(-Math.log(10000) / headDim);
  for (let i = 0; i < headDim; i += 2) {
    const frequency = Math.fround(Math.exp(Math.fround(i * step)));
    for (let p = 0; p < count; p++) {
      const angle = Math.fround(p * frequency);
      table[p * headDim + i] = Math.cos(angle);
      table[p * headDim + i + 1] = Math.sin(angle);
    }
  }
  return table;
}
