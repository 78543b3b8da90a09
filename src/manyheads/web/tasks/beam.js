/* The tree of a beam search, with the reason why each branch ended: as
   manyheads/views/beam_tree.py. */

import { lengthDivisor } from "../engine/search.js";

/** A recorder of a search: pass the record of every step to `step` (see onStep in
    engine/search.js); `tree` returns all candidates. */
export class BeamRecorder {
  /** @param {{ beamSize: number, lengthPenalty: number, eos: number, piece: (token: number) =>
        string }} options */
  constructor({ beamSize, lengthPenalty, eos, piece }) {
    this.beamSize = beamSize;
    this.lengthPenalty = lengthPenalty;
    this.eos = eos;
    this.piece = piece;
    /** @type {BeamNode[]} */
    this.nodes = [];
    /** @type {(number | null)[]} */
    this.open = [null]; // numbers of the nodes that the next step continues
    this.steps = 0;
    this.stop = "limit";
    /** @type {number[]} */
    this.lowest = []; // total of the last candidate of each step
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
    const keptTotals = kept
      .map((rank) => candidates[rank].total)
      .filter((total) => total > -Infinity);
    const lowestKept = keptTotals.length ? Math.min(...keptTotals) : null;
    const numberOfRank = new Map();
    candidates.forEach(({ parent, token, value, total }, rank) => {
      if (total === -Infinity) return;
      let state = "kept";
      /** @type {number | null} */
      let threshold = null; // total that a discarded candidate would have needed
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
          threshold,
        }),
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
    const depth = parent === null || parent === undefined ? 0 : this.nodes[parent].step + 1;
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
      best: false,
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
          threshold: null,
        });
      } else if (number !== null) this.nodes[number].state = "cut";
    });
    this.stop = "limit";
  }

  /** Mark the open nodes when the search has stopped before the length limit.
      @type {(record: StepRecord) => void} */
  stopEarly({ scores, length }) {
    const open = this.open.flatMap((number) => (number === null ? [] : this.nodes[number]));
    const best = Math.max(-Infinity, ...open.map((node) => node.total));
    this.stop =
      scores[scores.length - 1] >= best / lengthDivisor(length + 1, this.lengthPenalty)
        ? "beam-full"
        : "settled";
    for (const node of open) if (node.state === "kept") node.state = "left";
  }

  /** Return the tree with the path of the best output marked; `best` has its ids, with its end
      symbol if any.
      @type {(best: number[]) => BeamTree} */
  tree(best) {
    /** @type {number | null} */
    let parent = null;
    for (const token of best) {
      /** @type {BeamNode | undefined} */
      const node = this.nodes.find(
        (candidate) => candidate.parent === parent && candidate.id === token,
      );
      if (!node) break;
      node.best = true;
      parent = node.number;
    }
    const parents = new Set(this.nodes.map((node) => node.parent));
    for (const node of this.nodes) {
      if (
        node.state !== "kept" ||
        parents.has(node.number) ||
        node.step + 1 >= this.lowest.length
      ) {
        continue;
      }
      Object.assign(node, { state: "outranked", threshold: this.lowest[node.step + 1] });
    }
    return {
      beam_size: this.beamSize,
      length_penalty: this.lengthPenalty,
      steps: this.steps,
      stop: this.stop,
      nodes: this.nodes,
    };
  }
}
