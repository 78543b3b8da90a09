/* Merges of byte-pair encoding: of all pairs of neighbours that are a rule, the one with the lowest rank first, then the leftmost. */

/**
 * The symbols (strings) after all merges. `rank(left, right)` is the rank of a pair, undefined if the two do not merge.
 */
export function mergeSymbols(symbols, rank) {
  const texts = [...symbols];
  const next = texts.map((_, index) => index + 1), previous = texts.map((_, index) => index - 1);
  const waiting = new PairHeap();
  const add = (left, right) => {
    if (left < 0 || right >= texts.length) return;
    const order = rank(texts[left], texts[right]);
    if (order !== undefined) waiting.push({ order, left, right, length: texts[left].length + texts[right].length });
  };
  for (let left = 0; left < texts.length - 1; left += 1) add(left, left + 1);
  for (let pair = waiting.pop(); pair; pair = waiting.pop()) {
    const { left, right, length } = pair;
    if (!texts[left] || !texts[right] || texts[left].length + texts[right].length !== length) continue; // one of them has merged
    texts[left] += texts[right];
    texts[right] = "";
    next[left] = next[right];
    if (next[right] < texts.length) previous[next[right]] = left;
    add(previous[left], left);
    add(left, next[left]);
  }
  return texts.filter(Boolean);
}

/** A binary heap of pairs: the lowest order comes first, then the leftmost. */
class PairHeap {
  pairs = [];

  push(pair) {
    const { pairs } = this;
    let index = pairs.length;
    for (let parent; index && comesBefore(pair, pairs[(parent = (index - 1) >> 1)]); index = parent) pairs[index] = pairs[parent];
    pairs[index] = pair;
  }

  pop() {
    const { pairs } = this;
    const first = pairs[0], last = pairs.pop();
    if (!pairs.length) return first;
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

const comesBefore = (a, b) => a.order < b.order || (a.order === b.order && a.left < b.left);
