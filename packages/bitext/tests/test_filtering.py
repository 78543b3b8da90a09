"""Dropped pairs are counted by reason; a compact set of hashes agrees with the set of Python."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterable
from functools import partial

import pytest

from bitext.filtering import _MIN_SLOTS, FilterCounts, FilterRules, PairFilter, _SeenHashes, fault_of_pair
from bitext.pairs import Pair


def squeeze(text: str) -> str:
    """Remove control characters and merge white space, in place of the normaliser."""
    return " ".join("".join(symbol for symbol in text if symbol.isspace() or symbol.isprintable()).split())


def rules(max_ratio: float = 9, **settings: bool) -> FilterRules:
    return FilterRules(partial(fault_of_pair, max_ratio=max_ratio), **settings)


def filter_pairs(
    read: Iterable[Pair], rules: FilterRules, normalize: Callable[[str], str], held_out: Iterable[Pair] = ()
) -> tuple[list[Pair], FilterCounts]:
    """Return the pairs that the filter keeps, and its counts."""
    judge = PairFilter(rules, normalize, held_out)
    return list(judge.used(read)), judge.counts


def pairs(*texts: tuple[str, str]) -> list[Pair]:
    return [Pair(source, target, line) for line, (source, target) in enumerate(texts, 1)]


def test_each_dropped_pair_is_counted_under_one_reason() -> None:
    read = pairs(
        ("gut", "good"),
        ("", "x"),
        ("x", "\u00a0 \x00"),
        ("x" * 31, "y" * 10),
        ("held", "out"),
        ("held", "out"),
        ("held", "differently"),
        (" gut\x07", "good "),
    )
    kept, counts = filter_pairs(read, rules(3), squeeze, pairs((" held ", "out")))
    assert kept == [Pair("gut", "good", 1), Pair("held", "differently", 7)]
    assert counts == FilterCounts(
        read=8, empty=2, ratio=1, overlap=2, duplicate=1, source_overlap=1, control_characters=2
    )
    assert (counts.kept, counts.dropped) == (len(kept), 6)


def test_the_ratio_counts_normalised_characters_and_its_limit_is_inclusive() -> None:
    read = pairs(("x" * 30, "y" * 10), ("y" * 10, "x" * 31), ("a" + " " * 50 + "b", "ab"), ("가" * 3, "x" * 9))
    kept, counts = filter_pairs(read, rules(3), squeeze)
    assert [pair.line for pair in kept] == [1, 3, 4]
    assert counts.ratio == 1


def test_duplicates_and_overlaps_are_kept_on_request_and_overlapping_sources_are_still_counted() -> None:
    lenient = rules(drop_duplicates=False, drop_overlap=False)
    kept, counts = filter_pairs(pairs(("a", "b"), ("a", "b")), lenient, squeeze, pairs(("a", "b")))
    assert counts == FilterCounts(read=2, source_overlap=2)
    assert len(kept) == 2


def test_only_the_exact_pair_is_a_duplicate() -> None:
    read = pairs(("a", "bc"), ("ab", "c"), ("a", "b c"), ("a", "x"), ("y", "bc"), ("1:a", "bc"), ("a", "bc"))
    kept, counts = filter_pairs(read, rules(), squeeze)
    assert [pair.line for pair in kept] == [1, 2, 3, 4, 5, 6]
    assert counts.duplicate == 1


def test_filtering_agrees_with_a_reference_implementation_on_random_pairs() -> None:
    generator = random.Random(7)
    words = ["", " ", "a", "a ", "b", "aaaa", "bbbbbbbbb", "a\x00"]
    read = pairs(*((generator.choice(words), generator.choice(words)) for _ in range(500)))
    held_out = pairs(("a", "b"), ("aaaa", "a"))
    kept, counts = filter_pairs(read, rules(4), squeeze, held_out)
    expected: list[Pair] = []
    for pair in read:
        source, target = squeeze(pair.source), squeeze(pair.target)
        if source and target and 0.25 <= len(source) / len(target) <= 4:
            known = [(other.source, other.target) for other in (*held_out, *expected)]
            if (source, target) not in known:
                expected.append(Pair(source, target, pair.line))
    assert kept == expected
    assert counts.kept == len(expected)


def test_control_characters_are_counted_only_when_they_are_removed() -> None:
    read = pairs(("a\x00\x1fb\x9f", "c\td"), ("a\u2028b", "d"))
    assert filter_pairs(read, rules(), squeeze)[1].control_characters == 2
    assert filter_pairs(read, rules(), str)[1].control_characters == 0


def test_pairs_are_filtered_lazily_and_counted_per_corpus() -> None:
    """Pairs of an earlier corpus are duplicates in a later one."""
    judge = PairFilter(rules(), squeeze)
    first = judge.used(iter(pairs(("a", "b"), ("", "b"), ("c", "d"))))
    assert next(first) == Pair("a", "b", 1)
    assert judge.counts == FilterCounts(read=1)
    assert len(list(first)) == 1
    assert judge.counts == FilterCounts(read=3, empty=1)
    assert [pair.line for pair in judge.used(pairs(("x", "y"), ("a", "b")))] == [1]
    assert judge.counts == FilterCounts(read=2, duplicate=1)


def test_a_huge_word_is_dropped_by_its_ratio_without_harm() -> None:
    kept, counts = filter_pairs(pairs(("x" * 1_000_000, "y"), ("a", "b")), rules(), squeeze)
    assert (len(kept), counts.ratio) == (1, 1)


def test_the_description_of_counts_is_one_line_without_zeros() -> None:
    assert FilterCounts(read=29_000).describe() == "29,000 pairs read, 29,000 kept"
    counts = FilterCounts(read=29_000, empty=3, duplicate=1_000, control_characters=5)
    assert counts.describe() == (
        "29,000 pairs read, 27,997 kept: 3 empty, 1,000 duplicate; 5 control characters removed"
    )


def test_pairs_that_are_too_long_count_as_dropped() -> None:
    counts = dataclasses.replace(FilterCounts(read=10, empty=1), too_long=4)
    assert (counts.kept, counts.dropped) == (5, 5)
    assert "4 too long" in counts.describe()


@pytest.mark.parametrize("bits", [6, 12, 64])
def test_seen_hashes_report_new_values_as_a_set_does(bits: int) -> None:
    rng = random.Random(bits)
    seen, expected = _SeenHashes(), set[int]()
    for _ in range(5_000):
        value = rng.getrandbits(bits) << rng.choice([0, 64 - bits])
        assert seen.add(value) == ((value or 1) not in expected)
        expected.add(value or 1)
    assert len(seen) == len(expected)


def test_seen_hashes_are_at_most_half_full_and_use_at_most_32_bytes_a_hash() -> None:
    seen, rng = _SeenHashes(), random.Random(1)
    for _ in range(30_000):
        seen.add(rng.getrandbits(64))
        assert 2 * len(seen) <= len(seen.slots)
        assert len(seen.slots) <= max(_MIN_SLOTS, 4 * len(seen))
    assert seen.slots.itemsize == 8
