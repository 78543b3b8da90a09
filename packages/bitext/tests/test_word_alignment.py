"""IBM model 1 compared with a textbook implementation with dictionaries."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from bitext import word_alignment
from bitext.word_alignment import expected_counts, link_tokens

PAIRS = [("a b", "x y"), ("a", "x"), ("", "y"), ("b c b", "y z"), ("c", ""), ("a c", "z x x")]


def textbook(pairs: list[tuple[str, str]], rounds: int, null: dict[str, float]) -> dict[tuple[str, str], float]:
    """Return the expected counts of word links after some rounds of expectation maximisation."""
    probabilities: defaultdict[tuple[str, str], float] = defaultdict(lambda: 1.0)
    counts: defaultdict[tuple[str, str], float] = defaultdict(float)
    for step in range(rounds):
        counts.clear()
        for source, target in pairs:
            for word in target.split():
                empty = 0.0 if not null else null[word] if step else 1.0
                total = sum(probabilities[other, word] for other in source.split()) + empty
                for other in source.split():
                    counts[other, word] += probabilities[other, word] / total
        totals: defaultdict[str, float] = defaultdict(float)
        for (other, _), count in counts.items():
            totals[other] += count
        for other, word in counts:
            probabilities[other, word] = counts[other, word] / totals[other]
    return dict(counts)


@pytest.mark.parametrize("null", [{}, {"x": 0.5, "y": 0.2, "z": 0.1}])
def test_counts_are_those_of_the_textbook(null: dict[str, float]) -> None:
    sides = [[pair[side].split() for pair in PAIRS] for side in (0, 1)]
    words = [np.array([ord(word) for line in side for word in line]) for side in sides]
    sizes = [np.array([len(line) for line in side]) for side in sides]
    links, tokens = link_tokens(sizes[0], sizes[1])
    keys, entries = np.unique(words[0][links] * 1000 + words[1][tokens], return_inverse=True)
    empty = np.array([null[chr(word)] for word in words[1]]) if null else None
    counts = expected_counts(entries, keys // 1000, tokens, 3, empty)
    found = {(chr(key // 1000), chr(key % 1000)): count for key, count in zip(keys, counts, strict=True)}
    assert found == pytest.approx(textbook(PAIRS, 3, null))


def test_links_are_ordered_by_pair_target_and_source() -> None:
    links, tokens = link_tokens(np.array([2, 0, 1]), np.array([2, 1, 1]))
    assert links.tolist() == [0, 1, 0, 1, 2]
    assert tokens.tolist() == [0, 0, 1, 1, 3]


def test_a_long_pair_has_a_bounded_number_of_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_alignment, "_MOST_LINKS", 6)
    links, tokens = link_tokens(np.array([5, 2]), np.array([3, 1]))
    assert links.tolist() == [0, 1, 0, 1, 0, 1, 5, 6], "two source tokens of the first pair, both of the second"
    assert tokens.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_no_text_has_no_links() -> None:
    none = np.zeros(0, np.int64)
    links, tokens = link_tokens(none, none)
    assert len(links) == len(tokens) == len(expected_counts(links, none, tokens, 2)) == 0
