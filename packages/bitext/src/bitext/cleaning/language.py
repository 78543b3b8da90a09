"""Recognise lines in a language other than the language of their side, by character n-grams of the corpus itself.

A line of the corpus that holds frequent words of one language only is an example of it. From these examples, naive
Bayes models of the bags of n-grams of 2 to 4 letters are learned (Cavnar and Trenkle 1994; Lui and Baldwin 2012):
of the language of the side, of the other side, and of each third language with enough examples. All lines are then
classified, and the models are learned once more, from the lines that were classified with high confidence.

Shapes: N lines, M characters of all lines, O orders of n-grams, C other languages. Weights are integers, so that
sums are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from bitext.cleaning.codes import CodedLines, ngrams
from bitext.languages import base_language
from bitext.scripts import FREQUENT, SCRIPTS, scripts_of

_BUCKETS = 1 << 18  # number of hash buckets of n-grams
_ORDERS = (2, 3, 4)
_UNIT = 64  # integer weight of a nat; the n-grams of three orders overlap, so that each counts a third
_LEAST_EXAMPLES = 8  # lines of a third language
_LEAST_SHARE = 0.0005  # share of a third language in all lines, likewise needed
_CERTAIN = 5.0  # log-odds in nats above which the second round learns from a line
_SMOOTHING = 2_000  # n-grams of all languages together that are added to the counts of each
_MOST_WEIGHT = 4.0  # largest weight of an n-gram in nats; a few rare n-grams do not make a line foreign
_UNSEEN = 0.01  # added to the occurrences of each n-gram in all languages together
_NUM_ROUNDS = 2
_FOREIGN_LETTERS = 8  # letters in a foreign script, and more than half of all, that make a line foreign
_OWN_LIKE = 0.88  # share of the median coverage of own lines, above which a line is no example of another language
_SEEN = 3  # lines that an n-gram must be in to count as known
_FEW_WORDS = 2  # frequent words of a language that make a line an example of it

_IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class LanguageModel:
    """Naive Bayes model that classifies the lines of one side.

    Attributes:
        names: the other languages that were found in the corpus (C).
        weights: log-odds of each n-gram for each other language, against the language of the side (C, BUCKETS).
        scripts: the scripts of the language of the side; none for an unknown language.
    """

    names: tuple[str, ...]
    weights: NDArray[np.int16]
    scripts: tuple[str, ...]

    @cached_property
    def padded_weights(self) -> NDArray[np.int16]:
        """The weights, with a last column of 0 for positions without an n-gram (C, BUCKETS + 1)."""
        return np.pad(self.weights, ((0, 0), (0, 1)))

    def score(self, lines: CodedLines) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the log-odds in nats (N,) of the best other language, and its index (N,); -1: another script."""
        best = np.full(len(lines), -1e4, np.float32)
        which = np.zeros(len(lines), np.int64)
        if self.names:
            hashes = ngrams(lines, _ORDERS, _BUCKETS)
            odds = np.stack([lines.sums(row[hashes].sum(0, dtype=np.int32)) for row in self.padded_weights])
            which = odds.argmax(0)
            best = (odds.max(0) / _UNIT).astype(np.float32)
        foreign = _foreign_script(lines, self.scripts)
        best[foreign], which[foreign] = 1e4, -1
        return best, which


def _foreign_script(lines: CodedLines, scripts: Sequence[str]) -> NDArray[np.bool_]:
    """Return whether each line is mostly in letters of another script (N,)."""
    if not scripts:
        return np.zeros(len(lines), np.bool_)
    own_bits = sum(1 << list(SCRIPTS).index(name) for name in scripts)
    kinds = _script_table()[np.minimum(lines.codes, 0xFFFF)]
    own, known = lines.sums((kinds & own_bits) != 0), lines.sums(kinds != 0)
    return np.asarray((known - own >= _FOREIGN_LETTERS) & (2 * own < known))


@lru_cache(1)
def _script_table() -> NDArray[np.uint16]:
    """Return the scripts of each character of the Basic Multilingual Plane, as bits; 0 for other characters."""
    table = np.zeros(0x10000, np.uint16)
    text = "".join(chr(code) if not 0xD800 <= code < 0xE000 else " " for code in range(0x10000))
    for index, pattern in enumerate(SCRIPTS.values()):
        for match in pattern.finditer(text):
            table[match.start()] |= 1 << index
    return table


def learn_languages(
    sides: tuple[CodedLines, CodedLines], codes: tuple[str, str]
) -> tuple[LanguageModel, LanguageModel]:
    """Learn the models of both sides from a sample of their lines (N); `codes` are those of their languages."""
    bases = [base_language(code) for code in codes]
    labels = [_example_labels(lines, base) for lines, base in zip(sides, bases, strict=True)]
    grams = [ngrams(lines, _ORDERS, _BUCKETS) for lines in sides]
    other_counts = [_counts_of(grams[side], sides[side], labels[side] == bases[side]) for side in (0, 1)]
    models = []
    for side in (0, 1):
        own, opposite = bases[side], bases[1 - side]
        scripts = tuple(scripts_of(codes[side]))
        if set(scripts) - {"latin"}:
            models.append(LanguageModel((), np.zeros((0, _BUCKETS), np.int16), scripts))
            continue
        marks = _drop_own_like(labels[side], own, sides[side])
        further_counts = {opposite: other_counts[1 - side]}
        model = _fit(grams[side], sides[side], marks, own, further_counts, scripts)
        for _ in range(_NUM_ROUNDS - 1):
            odds, which = model.score(sides[side])
            names = np.array([*model.names, ""], dtype=object)
            marks = np.where(odds > _CERTAIN, names[which], np.where(odds < -_CERTAIN, own, ""))
            model = _fit(grams[side], sides[side], marks, own, further_counts, scripts)
        models.append(model)
    return models[0], models[1]


def _drop_own_like(labels: NDArray[np.object_], own: str, lines: CodedLines) -> NDArray[np.object_]:
    """Return labels (N,) without examples of other languages that resemble lines of the side."""
    hashes = ngrams(lines, _ORDERS[-1:], _BUCKETS)
    chosen = labels == own
    counts = np.append(_counts_of(hashes, lines, chosen), 0)
    known = counts[hashes[0]] - chosen[lines.owners] >= _SEEN
    coverage = lines.sums(known) / np.maximum(1, lines.sums(hashes[0] < _BUCKETS))
    most = _OWN_LIKE * np.median(coverage[chosen]) if chosen.any() else 1.0
    return np.where(chosen | (coverage < most), labels, "")


def _fit(
    hashes: _IntArray,
    lines: CodedLines,
    labels: NDArray[np.object_],
    own: str,
    further_counts: Mapping[str, _IntArray],
    scripts: tuple[str, ...],
) -> LanguageModel:
    """Return the model for labels of lines (N,), with the n-gram counts of further languages."""
    own_counts = _counts_of(hashes, lines, labels == own)
    least = max(_LEAST_EXAMPLES, _LEAST_SHARE * len(labels))
    counts: dict[str, _IntArray] = dict(further_counts)
    for name in {*labels.tolist()} - {own, ""}:
        chosen = labels == name
        if chosen.sum() >= least:
            counts[name] = counts.get(name, 0) + _counts_of(hashes, lines, chosen)
    names = sorted(counts)
    background = own_counts + sum(counts.values()) + _UNSEEN
    background = (background / background.sum()).astype(np.float64)
    own_weights = _log_weights(own_counts, background)
    rows = [_log_weights(counts[name], background) - own_weights for name in names]
    weights = np.stack(rows) if rows else np.zeros((0, _BUCKETS))
    weights = np.clip(weights, -_MOST_WEIGHT, _MOST_WEIGHT)
    return LanguageModel(tuple(names), np.rint(weights * _UNIT / len(_ORDERS)).astype(np.int16), scripts)


def _counts_of(hashes: _IntArray, lines: CodedLines, chosen: NDArray[np.bool_]) -> _IntArray:
    """Return the frequency of each n-gram (BUCKETS,) in the chosen lines (N,), from the hashes (O, M) of all."""
    return np.bincount(hashes[:, chosen[lines.owners]].ravel(), minlength=_BUCKETS + 1)[:_BUCKETS]


def _log_weights(counts: _IntArray, background: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the log-probability of each n-gram (BUCKETS,), smoothed with its probability in all languages."""
    return np.log(counts + _SMOOTHING * background) - np.log(counts.sum() + _SMOOTHING)


def _example_labels(lines: CodedLines, own: str) -> NDArray[np.object_]:
    """Return the language that each line is an example of by its frequent words (N,), "" for none."""
    languages: dict[str, list[str]] = {}
    for code, words in FREQUENT.items():
        for word in words.split():
            languages.setdefault(word, []).append(code)
    known, frequent = own in FREQUENT, frozenset(languages)
    labels = np.full(len(lines), "", dtype=object)
    for index, line in enumerate(lines.texts):
        hits: dict[str, int] = {}
        for word in frequent.intersection(line.split()):
            for code in languages[word]:
                hits[code] = hits.get(code, 0) + 1
        own_hits = hits.pop(own, 0)
        best = max(hits, key=lambda code: (hits[code], code), default="")
        if best and not own_hits and hits[best] >= _FEW_WORDS:
            labels[index] = best
        elif own_hits > hits.get(best, 0) or (not known and not hits.get(best, 0)):
            labels[index] = own
    return labels
