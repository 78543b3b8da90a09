"""Damaged lines are counted by kind, and near copies differ from copies."""

from __future__ import annotations

import random

from bitext.pairs import Pair
from manyheads.checks.lines import LineCounts, NearCopies
from transformer_doctor.checks.splits import _LONG_ENOUGH


def test_three_or_more_damaged_lines_are_named_with_their_line_numbers() -> None:
    counts = LineCounts()
    for line in range(1, 11):
        counts.add("lost \ufffd letter" if line > 7 else "sound", line)
    (finding,) = counts.findings("train")
    assert (finding.name, finding.severity) == ("encoding-damaged", "error")
    assert finding.evidence.startswith('train: 3 of 10 (30 %) lines have lost letters; line 8: "lost')
    fewer = LineCounts()
    fewer.add("\ufffd", 1)
    assert not list(fewer.findings("train"))


def test_near_copies_are_those_of_a_comparison_of_all_words() -> None:
    rng = random.Random(1)
    pairs = [Pair(" ".join(rng.choices("abc", k=rng.randint(0, 6))), "d", line) for line in range(300)]
    held_out, train = pairs[:60], pairs[60:]
    near = NearCopies({"valid": held_out[:30], "test": held_out[30:]})
    for pair in train:
        near.add(pair)
    expected = {
        index
        for index, held in enumerate(held_out)
        for pair in train
        if held.source != pair.source and is_near(held.source.split(), pair.source.split())
    }
    assert near.copied == {
        "valid": {index for index in expected if index < 30},
        "test": {index - 30 for index in expected if index >= 30},
    }
    assert 0 < len(expected) < 60


def is_near(words: list[str], others: list[str]) -> bool:
    """Return whether texts of one length differ in at most one word; the target adds a word to those required."""
    differing = sum(word != other for word, other in zip(words, others, strict=False))
    return len(words) == len(others) and differing <= (len(words) >= _LONG_ENOUGH - 1)
