"""Splits by chance have the chances of their definitions."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from manyheads.text.sampling import BpeSampler, UnigramSampler, WordSampler

DRAWS = 20_000
# scores of pieces over the characters a, b, c; x has none, d none of its own
MERGES = {"a": -9.0, "b": -9.1, "c": -9.2, "ab": -1.0, "bc": -2.0, "abc": -3.0, "ca": -4.0, "abca": -5.0}
UNIGRAMS = {"a": -1.5, "b": -2.0, "c": -2.5, "ab": -2.2, "bc": -2.1, "abc": -3.0, "ca": -2.6, "cd": -2.7}


def frequencies(sampler: WordSampler, word: str) -> dict[tuple[str, ...], float]:
    dice = Random(11)
    found = Counter(tuple(sampler.draw(word, dice)) for _ in range(DRAWS))
    return {split: count / DRAWS for split, count in found.items()}


def dropout_chances(pieces: tuple[str, ...], dropout: float) -> Counter[tuple[str, ...]]:
    """BPE dropout by its definition, every choice followed: the chance of each result."""
    merges = [(-MERGES[a + b], i) for i, (a, b) in enumerate(itertools.pairwise(pieces)) if a + b in MERGES]
    chances: Counter[tuple[str, ...]] = Counter()
    passed_over = 1.0
    for _, place in sorted(merges):
        merged = (*pieces[:place], pieces[place] + pieces[place + 1], *pieces[place + 2 :])
        for split, chance in dropout_chances(merged, dropout).items():
            chances[split] += passed_over * (1 - dropout) * chance
        passed_over *= dropout
    chances[pieces] += passed_over
    return chances


def splits(word: str) -> Iterator[tuple[str, ...]]:
    """Every way to cut a word."""
    if not word:
        yield ()
    for end in range(1, len(word) + 1):
        for rest in splits(word[end:]):
            yield (word[:end], *rest)


@pytest.mark.parametrize("dropout", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("word", ["abca", "bcab", "abcabc", "axbc", "a"])
def test_bpe_dropout_has_the_chances_of_its_definition(dropout: float, word: str) -> None:
    expected = dropout_chances(tuple(word), dropout)
    assert sum(expected.values()) == pytest.approx(1)
    found = frequencies(BpeSampler(MERGES, dropout), word)
    assert found.keys() <= expected.keys()
    for split, chance in expected.items():
        spread = math.sqrt(chance * (1 - chance) / DRAWS)
        assert found.get(split, 0) == pytest.approx(chance, abs=5 * spread + 1e-9), split


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("word", ["abca", "bcab", "abcabc", "axbc", "a", "x", "acd"])
def test_unigram_splits_have_their_probability_to_the_power_of_alpha(alpha: float, word: str) -> None:
    unknown = min(UNIGRAMS.values()) - 10
    scores = UNIGRAMS | {"x": unknown, "d": unknown}
    weights = {
        split: math.exp(alpha * sum(scores[piece] for piece in split))
        for split in splits(word)
        if all(piece in scores for piece in split)
    }
    found = frequencies(UnigramSampler(UNIGRAMS, alpha), word)
    assert found.keys() <= weights.keys()
    for split, weight in weights.items():
        chance = weight / sum(weights.values())
        spread = math.sqrt(chance * (1 - chance) / DRAWS)
        assert found.get(split, 0) == pytest.approx(chance, abs=5 * spread + 1e-9), split


@pytest.mark.parametrize("sampler", [BpeSampler(MERGES, 0.3), UnigramSampler(UNIGRAMS, 0.3)])
def test_what_was_drawn_before_changes_only_the_dice(sampler: WordSampler) -> None:
    """Remembered words come out as new ones do."""
    first = [sampler.draw(word, Random(5)) for word in ("abca", "bcab")]
    for _ in range(100):
        sampler.draw("abca", Random())
    assert [sampler.draw(word, Random(5)) for word in ("abca", "bcab")] == first


def test_a_very_long_word_is_split_in_reasonable_time() -> None:
    word = "abc" * 400
    for sampler in (BpeSampler(MERGES, 0.1), UnigramSampler(UNIGRAMS, 0.1)):
        assert "".join(sampler.draw(word, Random(1))) == word
