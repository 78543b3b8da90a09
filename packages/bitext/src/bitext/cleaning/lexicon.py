"""Score whether two lines translate each other by word translations learned on the corpus (IBM model 1).

The model is trained in both directions. Words are cut to their first letters, in place of a stemmer; in scripts
without blanks each character is a word. The evidence of a target word t of a source line s_1 to
s_n is the logarithm of (1 + r(t | s_1) + ... + r(t | s_n)) / (n + 1), r being p(t | s) / p(t): how much likelier
the word is beside this line than beside any. When a pair is scored that was learned from, its links are subtracted
from the counts.

Shapes: N pairs, K word links (see `bitext.word_alignment`), T target words, E entries of the lexicon.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitext.cleaning.codes import CodedLines
from bitext.word_alignment import expected_counts, link_tokens

_NUM_ITERATIONS = 4  # iterations of expectation maximisation
_PREFIX = 6  # letters of a word in alphabets
_SYLLABLES = 2  # syllables of a word in Hangul
_SMOOTHING = 1.0  # occurrences of a source word that count for the average translation
_SAME_WORD = 0.5  # occurrences that count for the same word on both sides
_BITS = np.uint64(32)

_IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
_Words = tuple[NDArray[np.uint64], _IntArray]  # the words of all lines, and the number of words of each line (N,)


@dataclass(frozen=True)
class Lexicon:
    """Expected counts of word links in one direction.

    Attributes:
        keys: source word << 32 | target word, sorted (E,).
        counts: expected number of links of each entry (E,).
        sources: known source words, sorted; totals: expected number of their links.
        targets: known target words, sorted; shares: their relative frequency.
    """

    keys: NDArray[np.uint64]
    counts: FloatArray
    sources: NDArray[np.uint64]
    totals: FloatArray
    targets: NDArray[np.uint64]
    shares: FloatArray


def _words_of(lines: CodedLines) -> _Words:
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
                words.append(word[:_SYLLABLES] if "가" <= first <= "힣" else word[:_PREFIX])
        sizes.append(len(words) - before)
    table: dict[str, int] = {}
    hashed = [table[word] if word in table else table.setdefault(word, _hash_of(word)) for word in words]
    return np.array(hashed, np.uint64), np.array(sizes, np.int64)


def _hash_of(word: str) -> int:
    """Return a hash of 32 bits that is the same in all processes."""
    value = 2_166_136_261
    for code in map(ord, word):
        value = (value ^ code) * 16_777_619 & 0xFFFFFFFF
    value ^= value >> 15
    return value * 0x85EBCA6B & 0xFFFFFFFF


def learn_lexicons(source: CodedLines, target: CodedLines) -> tuple[Lexicon, Lexicon]:
    """Learn the lexicons of both directions from a sample of pairs (N)."""
    sides = _words_of(source), _words_of(target)
    return _learn_direction(*sides), _learn_direction(*sides[::-1])


def _learn_direction(source: _Words, target: _Words) -> Lexicon:
    """Learn the lexicon of one direction; the empty word receives its share of the links of each target word."""
    links, tokens = link_tokens(source[1], target[1])
    linked, scored = source[0][links], target[0][tokens]
    targets, numbers, frequencies = np.unique(target[0], return_inverse=True, return_counts=True)
    shares = frequencies / max(1, frequencies.sum())
    keys, entries = np.unique((linked << _BITS) | scored, return_inverse=True)
    sources, source_index = np.unique(keys >> _BITS, return_inverse=True)
    counts = expected_counts(entries, source_index, tokens, _NUM_ITERATIONS, shares[numbers])
    totals = np.bincount(source_index, counts, len(sources)).astype(float)
    return Lexicon(keys, counts, sources, totals, targets, shares)


def score_pairs(
    lexicons: tuple[Lexicon, Lexicon], source: CodedLines, target: CodedLines, learned: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """Return the evidence that each pair is a translation (N,): nats per target word plus nats per source word.

    `learned` says whether the lexicons were learned from each pair (N,).
    """
    sides = _words_of(source), _words_of(target)
    scores = np.zeros(len(learned))
    for lexicon, (conditioning, scored) in zip(lexicons, (sides, sides[::-1]), strict=True):
        scores += _score_direction(lexicon, conditioning, scored, learned) / np.maximum(1, scored[1])
    return np.round(scores, 4).astype(np.float32)


def _score_direction(lexicon: Lexicon, source: _Words, target: _Words, learned: NDArray[np.bool_]) -> FloatArray:
    """Return the evidence of all target words of each pair (N,)."""
    links, tokens = link_tokens(source[1], target[1])
    linked, scored = source[0][links], target[0][tokens]
    count = _look_up(lexicon.keys, lexicon.counts, (linked << _BITS) | scored)
    total = _look_up(lexicon.sources, lexicon.totals, linked)
    shares = np.maximum(_look_up(lexicon.targets, lexicon.shares, target[0]), 1e-7)  # (T,)
    owners = np.repeat(np.arange(len(learned)), target[1])  # pair of each target word (T,)
    if learned.any():
        chance = count / np.maximum(total, 1e-9)
        sums = np.bincount(tokens, chance, len(shares)) + shares
        own = np.where(learned[owners[tokens]], chance / sums[tokens], 0)
        count, total = np.maximum(count - own, 0), np.maximum(total - own, 0)
    same = np.where(linked == scored, _SAME_WORD, 0)
    ratio = ((count + same) / shares[tokens] + _SMOOTHING) / (total + same + _SMOOTHING)
    sizes = np.bincount(tokens, minlength=len(shares))
    evidence = np.log((np.bincount(tokens, ratio, len(shares)) + 1) / (sizes + 1))
    return np.bincount(owners, evidence, len(learned)).astype(float)


def _look_up(keys: NDArray[np.uint64], values: FloatArray, queries: NDArray[np.uint64]) -> FloatArray:
    """Return the value of each query (K,), 0 for a query that is no key."""
    if not len(keys):
        return np.zeros(len(queries))
    positions = np.minimum(np.searchsorted(keys, queries), len(keys) - 1)
    return np.where(keys[positions] == queries, values[positions], 0.0)
