/* Position tables of the encoder or decoder: sinusoidal, learned or rotary
   (inference/native/positions.py). */

import { EngineError } from "./memory.js";

const MIN_POSITIONS = 64;

/** A table of positions that grows. Smaller tables stay in memory, because a search may still read
    them. */
export class PositionTables {
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
    /** @type {{ signals: number | null, rotary: number | null }} */
    this.table = { signals: null, rotary: null };
  }

  /** Return the addresses of a table of at least `count` positions: signals (N, D), and rotary
      cosines and sines (N, E / 2, 2), or null.
      @type {(count: number) => { signals: number | null, rotary: number | null }} */
  tableFor(count) {
    if (this.learned && count > this.learned.length / this.width) {
      const limit = this.learned.length / this.width;
      throw new EngineError(
        `an input of ${count} tokens is longer than model.max_positions = ${limit}, ` +
          "the limit of this model.",
      );
    }
    if (count > this.count) {
      this.count = Math.max(MIN_POSITIONS, 2 * count);
      if (this.learned) this.count = Math.min(this.count, this.learned.length / this.width);
      const rotary = this.settings.positions === "rotary";
      const signals = rotary
        ? this.typeSignals(this.count)
        : this.addType(this.positionSignals(this.count));
      this.table = {
        signals: signals && this.scope.floats(signals),
        rotary: rotary
          ? this.scope.floats(this.compute("rotary_positions", this.count, this.headDim))
          : null,
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
    return this.learned
      ? this.learned.slice(0, count * this.width)
      : this.compute("sinusoidal_positions", count, this.width);
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
}
