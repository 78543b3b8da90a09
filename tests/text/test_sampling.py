"""Sampled segmentations (BPE dropout, unigram sampling) have the probabilities of their definitions."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from tests.tolerances import sampled

from manyheads.text.sampling import BpeSampler, UnigramSampler, WordSampler

DRAWS = 20_000
# scores of pieces over the characters a, b, c; x has none, d none of its own
MERGES = {"a": -9.0, "b": -9.1, "c": -9.2, "ab": -1.0, "bc": -2.0, "abc": -3.0, "ca": -4.0, "abca": -5.0}
UNIGRAMS = {"a": -1.5, "b": -2.0, "c": -2.5, "ab": -2.2, "bc": -2.1, "abc": -3.0, "ca": -2.6, "cd": -2.7}


def frequencies(sampler: WordSampler, word: str) -> dict[tuple[str, ...], float]:
    rng = Random(11)
    found = Counter(tuple(sampler.draw(word, rng)) for _ in range(DRAWS))
    return {split: count / DRAWS for split, count in found.items()}


def dropout_probabilities(pieces: tuple[str, ...], dropout: float) -> Counter[tuple[str, ...]]:
    """Return the probability of each result of BPE dropout by enumerating every choice."""
    merges = [(-MERGES[a + b], i) for i, (a, b) in enumerate(itertools.pairwise(pieces)) if a + b in MERGES]
    probabilities: Counter[tuple[str, ...]] = Counter()
    passed_over = 1.0
    for _, index in sorted(merges):
        merged = (*pieces[:index], pieces[index] + pieces[index + 1], *pieces[index + 2 :])
        for split, probability in dropout_probabilities(merged, dropout).items():
            probabilities[split] += passed_over * (1 - dropout) * probability
        passed_over *= dropout
    probabilities[pieces] += passed_over
    return probabilities


def segmentations(word: str) -> Iterator[tuple[str, ...]]:
    """Yield every segmentation of a word."""
    if not word:
        yield ()
    for end in range(1, len(word) + 1):
        for rest in segmentations(word[end:]):
            yield (word[:end], *rest)


@pytest.mark.parametrize("dropout", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("word", ["abca", "bcab", "abcabc", "axbc", "a"])
def test_bpe_dropout_has_the_probabilities_of_its_definition(dropout: float, word: str) -> None:
    expected = dropout_probabilities(tuple(word), dropout)
    assert sum(expected.values()) == pytest.approx(1)
    found = frequencies(BpeSampler(MERGES, dropout), word)
    assert found.keys() <= expected.keys()
    for split, probability in expected.items():
        assert found.get(split, 0) == sampled(probability, DRAWS), split


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("word", ["abca", "bcab", "abcabc", "axbc", "a", "x", "acd"])
def test_unigram_splits_have_their_probability_to_the_power_of_alpha(alpha: float, word: str) -> None:
    unknown = min(UNIGRAMS.values()) - 10
    scores = UNIGRAMS | {"x": unknown, "d": unknown}
    weights = {
        split: math.exp(alpha * sum(scores[piece] for piece in split))
        for split in segmentations(word)
        if all(piece in scores for piece in split)
    }
    found = frequencies(UnigramSampler(UNIGRAMS, alpha), word)
    assert found.keys() <= weights.keys()
    for split, weight in weights.items():
        probability = weight / sum(weights.values())
        assert found.get(split, 0) == sampled(probability, DRAWS), split


@pytest.mark.parametrize("sampler", [BpeSampler(MERGES, 0.3), UnigramSampler(UNIGRAMS, 0.3)])
def test_earlier_draws_change_only_the_random_numbers(sampler: WordSampler) -> None:
    """Cached words are sampled as new words are."""
    first = [sampler.draw(word, Random(5)) for word in ("abca", "bcab")]
    for _ in range(100):
        sampler.draw("abca", Random())
    assert [sampler.draw(word, Random(5)) for word in ("abca", "bcab")] == first


def test_a_very_long_word_is_split_in_reasonable_time() -> None:
    word = "abc" * 400
    for sampler in (BpeSampler(MERGES, 0.1), UnigramSampler(UNIGRAMS, 0.1)):
        assert "".join(sampler.draw(word, Random(1))) == word
