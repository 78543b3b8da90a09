/* The warning that a text is unlike the sources that a translator learned from, as in
   manyheads/inference/translation/unlike_training.py. */

import { BOS, EOS } from "../text/base.js";

// share of sources of several sentences from which on a model is trusted to translate such lines
// whole
const FEW = 0.1;

/** A bigram model of the pieces of the training sources, from the JSON value that Python wrote. */
export class SourceModel {
  /** @param {SourceModelDescription} description */
  constructor({ mean, limits, several, ...lists }) {
    const [counts, pairs] = [lists.counts, lists.pairs].map((numbers) =>
      numbers.split(" ").map(Number),
    );
    this.counts = counts;
    this.mean = mean;
    this.limits = limits;
    this.singleSentences = several < FEW; // of several, such a model often drops some
    this.total = counts.reduce((sum, count) => sum + count, counts.length);
    /** Occurrences of each kept pair of pieces. @type {Map<number, number>} */
    this.pairs = new Map();
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
    return (
      ((this.pairs.get(first * this.counts.length + second) ?? 0) + kinds * alone) /
      (this.after[first] + kinds)
    );
  }

  /** Return the surprise of the pieces of a text and of its end, summed, in nats.
      @type {(ids: number[]) => number} */
  surprise(ids) {
    return [...ids, EOS].reduce(
      (nats, id, at) => nats - Math.log(this.probability(at ? ids[at - 1] : BOS, id)),
      0,
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
}

/** The warning, of a translator with a model of its training sources.
    @implements {Stage} */
export class UnlikeTraining {
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
}
