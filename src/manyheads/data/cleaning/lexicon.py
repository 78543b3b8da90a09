"""Score whether two lines translate each other by word translations learned on the corpus (IBM model 1).

Brown et al. (1993), both directions. A word is the first letters of a word of the text, which takes the place of a
stemmer; in scripts without blanks it is a single character. The evidence of a target word t of a source line s_1 to
s_n is the logarithm of (1 + r(t | s_1) + ... + r(t | s_n)) / (n + 1), r being p(t | s) / p(t): how much likelier
the word is beside this line than beside any. The own links of a pair that was learned from do not count for it.

Shapes: N pairs, K word links (each source word of a pair with each target word of it), E entries of the lexicon.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manyheads.data.cleaning.codes import CodedLines

__all__ = ["Lexicon", "learn_lexicons", "score_pairs"]

ROUNDS = 4  # of expectation maximisation
PREFIX = 6  # letters of a word in alphabets
SYLLABLES = 2  # of a word in Hangul
SMOOTHING = 1.0  # occurrences of a source word that count for the average translation
SAME_WORD = 0.5  # occurrences that count for the same word on both sides
MOST_LINKS = 4_000  # of a pair; further words are left out
BITS = np.uint64(32)

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Lexicon:
    """Expected counts of word links, of one direction.

    Attributes:
        keys: source word << 32 | target word, sorted (E,).
        counts: expected number of links of each (E,).
        sources: known source words, sorted; totals: expected number of their links.
        targets: known target words, sorted; shares: their relative frequency.
    """

    keys: NDArray[np.uint64]
    counts: FloatArray
    sources: NDArray[np.uint64]
    totals: FloatArray
    targets: NDArray[np.uint64]
    shares: FloatArray


@dataclass(frozen=True)
class Links:
    """The word links of pairs, ordered by pair, target word, source word.

    Attributes:
        source, target: the words of each link (K,).
        starts: first link of each target word.
        owners: pair of each target word.
    """

    source: NDArray[np.uint64]
    target: NDArray[np.uint64]
    starts: IntArray
    owners: IntArray

    @property
    def sizes(self) -> IntArray:
        """Return the number of links of each target word."""
        return np.diff(self.starts, append=len(self.source))


def words_of(lines: CodedLines) -> tuple[NDArray[np.uint64], IntArray]:
    """Return the words of all lines, hashed to 32 bits, and the number of words of each line (N,)."""
    words: list[str] = []
    sizes = []
    for line in lines.texts:
        before = len(words)
        for word in line.split():
            first = word[0]
            if "\u3040" <= first <= "\u9fff":
                words.extend(word)
            else:
                words.append(word[:SYLLABLES] if "가" <= first <= "힣" else word[:PREFIX])
        sizes.append(len(words) - before)
    table: dict[str, int] = {}
    hashed = [table[word] if word in table else table.setdefault(word, hash_of(word)) for word in words]
    return np.array(hashed, np.uint64), np.array(sizes, np.int64)


def hash_of(word: str) -> int:
    """Return a hash of 32 bits that is the same in all processes."""
    value = 2_166_136_261
    for code in map(ord, word):
        value = (value ^ code) * 16_777_619 & 0xFFFFFFFF
    value ^= value >> 15
    return value * 0x85EBCA6B & 0xFFFFFFFF


def link(source: tuple[NDArray[np.uint64], IntArray], target: tuple[NDArray[np.uint64], IntArray]) -> Links:
    """Return the links of pairs whose words are given side by side; see `words_of`."""
    (source_words, source_sizes), (target_words, target_sizes) = source, target
    source_starts = np.cumsum(source_sizes) - source_sizes
    used = np.minimum(source_sizes, np.maximum(1, MOST_LINKS // np.maximum(1, target_sizes)))
    owners = np.repeat(np.arange(len(source_sizes)), target_sizes)
    filled = used[owners] > 0
    owners, target_words = owners[filled], target_words[filled]
    sizes = used[owners]
    starts = np.cumsum(sizes) - sizes
    positions = np.arange(sizes.sum()) - np.repeat(starts - source_starts[owners], sizes)
    return Links(source_words[positions], np.repeat(target_words, sizes), starts, owners)


def learn_lexicons(source: CodedLines, target: CodedLines) -> tuple[Lexicon, Lexicon]:
    """Learn the lexicons of both directions from a sample of pairs (N)."""
    sides = words_of(source), words_of(target)
    return learn_direction(*sides), learn_direction(*sides[::-1])


def learn_direction(
    source: tuple[NDArray[np.uint64], IntArray], target: tuple[NDArray[np.uint64], IntArray]
) -> Lexicon:
    """Run expectation maximisation from equal probabilities; the empty word takes its share of each target word."""
    links = link(source, target)
    targets, frequencies = np.unique(target[0], return_counts=True)
    shares = frequencies / max(1, frequencies.sum())
    keys, entries = np.unique((links.source << BITS) | links.target, return_inverse=True)
    sources, of_source = np.unique(keys >> BITS, return_inverse=True)
    null = shares[np.searchsorted(targets, links.target[links.starts])] if len(links.starts) else np.zeros(0)
    chances = np.ones(len(keys))
    for step in range(ROUNDS):
        values = chances[entries]
        floor = null if step else np.ones(len(null))
        sums = np.add.reduceat(values, links.starts) + floor if len(values) else np.zeros(0)
        counts = np.bincount(entries, values / np.repeat(sums, links.sizes), len(keys)).astype(np.float64)
        totals = np.bincount(of_source, counts, len(sources)).astype(np.float64)
        chances = counts / totals[of_source]
    return Lexicon(keys, counts, sources, totals, targets, shares)


def score_pairs(
    lexicons: tuple[Lexicon, Lexicon], source: CodedLines, target: CodedLines, learned: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """Return the evidence that each pair is a translation (N,): nats a target word plus nats a source word.

    Args:
        lexicons: see `learn_lexicons`.
        source: the lines of the source (N).
        target: the lines of the target (N).
        learned: whether the lexicons were learned from the pair (N,).
    """
    sides = words_of(source), words_of(target)
    scores = np.zeros(len(learned))
    for lexicon, (given, scored) in zip(lexicons, (sides, sides[::-1]), strict=True):
        scores += score_direction(lexicon, link(given, scored), learned) / np.maximum(1, scored[1])
    return np.round(scores, 4).astype(np.float32)


def score_direction(lexicon: Lexicon, links: Links, learned: NDArray[np.bool_]) -> FloatArray:
    """Return the evidence of all target words of each pair (N,)."""
    if not len(links.source):
        return np.zeros(len(learned))
    count = look_up(lexicon.keys, lexicon.counts, (links.source << BITS) | links.target)
    total = look_up(lexicon.sources, lexicon.totals, links.source)
    share = np.maximum(look_up(lexicon.targets, lexicon.shares, links.target), 1e-7)
    if learned.any():
        chance = count / np.maximum(total, 1e-9)
        sums = np.add.reduceat(chance, links.starts) + share[links.starts]
        own = np.where(np.repeat(learned[links.owners], links.sizes), chance / np.repeat(sums, links.sizes), 0)
        count, total = np.maximum(count - own, 0), np.maximum(total - own, 0)
    same = np.where(links.source == links.target, SAME_WORD, 0)
    ratio = ((count + same) / share + SMOOTHING) / (total + same + SMOOTHING)
    evidence = np.log((np.add.reduceat(ratio, links.starts) + 1) / (links.sizes + 1))
    return np.bincount(links.owners, evidence, len(learned)).astype(np.float64)


def look_up(keys: NDArray[np.uint64], values: FloatArray, wanted: NDArray[np.uint64]) -> FloatArray:
    """Return the values (K,) of the wanted keys, 0 for those that are missing."""
    if not len(keys):
        return np.zeros(len(wanted))
    positions = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[positions] == wanted, values[positions], 0.0)
