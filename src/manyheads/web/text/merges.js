/* Merges of byte-pair encoding: of all adjacent pairs with a merge rule, the pair with the lowest
   rank first, then the leftmost. */

/** Merge symbols (strings) until no rule applies. `pairRank(left, right)` is the rank of a pair,
    undefined if there is no rule for it.
    @type {(symbols: string[], pairRank: (left: string, right: string) => number | undefined) =>
      string[]} */
export function mergeSymbols(symbols, pairRank) {
  const texts = [...symbols];
  const next = texts.map((_, index) => index + 1);
  const previous = texts.map((_, index) => index - 1);
  const heap = new PairHeap();
  /** @type {(left: number, right: number) => void} */
  const add = (left, right) => {
    if (left < 0 || right >= texts.length) return;
    const rank = pairRank(texts[left], texts[right]);
    if (rank !== undefined) {
      heap.push({ rank, left, right, length: texts[left].length + texts[right].length });
    }
  };
  for (let left = 0; left < texts.length - 1; left += 1) add(left, left + 1);
  for (let pair = heap.pop(); pair; pair = heap.pop()) {
    const { left, right, length } = pair;
    if (!texts[left] || !texts[right] || texts[left].length + texts[right].length !== length) {
      continue;
    } // one of the two was merged with another symbol
    texts[left] += texts[right];
    texts[right] = "";
    next[left] = next[right];
    if (next[right] < texts.length) previous[next[right]] = left;
    add(previous[left], left);
    add(left, next[left]);
  }
  return texts.filter(Boolean);
}

/** A binary heap of pairs: the lowest rank first, then the leftmost. */
class PairHeap {
  /** @type {SymbolPair[]} */
  pairs = [];

  /** @type {(pair: SymbolPair) => void} */
  push(pair) {
    const { pairs } = this;
    let index = pairs.length;
    for (
      let parent;
      index && comesBefore(pair, pairs[(parent = (index - 1) >> 1)]);
      index = parent
    ) {
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
}

/** @type {(a: SymbolPair, b: SymbolPair) => boolean} */
const comesBefore = (a, b) => a.rank < b.rank || (a.rank === b.rank && a.left < b.left);
