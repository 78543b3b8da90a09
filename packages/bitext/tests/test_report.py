"""The data report compared with figures counted by hand or by a slower implementation."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import pytest

from bitext.filtering import FilterRules, PairFilter, fault_of_pair
from bitext.pairs import Pair
from bitext.report import DataReport, Spread, report


def rules(max_ratio: float = 9, **settings: bool) -> FilterRules:
    return FilterRules(partial(fault_of_pair, max_ratio=max_ratio), **settings)


def reported(splits: Mapping[str, Iterable[Pair]], **settings: Any) -> DataReport:
    return report(("de", "en"), splits, squeeze, rules(**settings))


def pairs(*texts: tuple[str, str]) -> list[Pair]:
    return [Pair(source, target, line) for line, (source, target) in enumerate(texts, 1)]


def squeeze(text: str) -> str:
    return " ".join(text.split())


def test_lengths_are_of_normalised_pairs_with_text_on_both_sides() -> None:
    lengths = [*range(1, 200), 300]
    train = pairs(("", "only here"), ("x", " "), *((" " + "d" * n, "e e") for n in lengths))
    split = reported({"train": train}, max_ratio=1_000).splits["train"]
    expected = Spread(statistics.fmean(lengths), statistics.median(lengths), sorted(lengths)[197], 300)
    assert split.source.characters == expected
    assert split.source.words == Spread(1, 1, 1, 1)
    assert split.target.characters == Spread(3, 3, 3, 3)
    assert split.target.words == Spread(2, 2, 2, 2)
    ratios = sorted(max(n, 3) / min(n, 3) for n in lengths)
    assert (split.ratio.median, split.ratio.p99) == (statistics.median(ratios), ratios[197])
    assert split.ratio.largest == 100
    assert split.ratio.mean == pytest.approx(statistics.fmean(ratios))
    assert (split.read, split.empty) == (202, 2)


def test_the_report_filters_train_as_training_does() -> None:
    train = pairs(("a", "b"), ("a", "b"), ("", "b"), ("x" * 50, "y"), ("held", "out"), ("c", "d"))
    held_out, tested = pairs(("held", "out")), pairs(("c", "another"))
    for settings in ({}, {"drop_duplicates": False}, {"drop_overlap": False}):
        against = held_out if settings == {"drop_overlap": False} else [*held_out, *tested]
        judge = PairFilter(rules(**settings), squeeze, against)
        list(judge.used(train))
        expected = judge.counts
        found = reported({"train": train, "valid": held_out, "test": tested}, **settings).splits
        assert found["train"].filtered == expected
        assert found["train"].duplicates == 1
        assert found["valid"].filtered is None


def test_the_held_out_splits_are_counted_but_not_filtered() -> None:
    valid = pairs(("a", "b"), ("a", "b"), ("a", ""), ("x" * 50, "y"))
    split = reported({"train": pairs(("a", "b")), "valid": valid}).splits["valid"]
    assert (split.read, split.empty, split.duplicates, split.ratio.largest) == (4, 1, 1, 50)


def test_overlap_counts_the_pairs_of_a_split_that_are_also_in_each_other_split() -> None:
    splits = {
        "test": pairs(("a", "b"), (" a", "b"), ("a", "c"), ("z", "b"), ("new", "new"), ("", "")),
        "train": pairs(("a ", "b"), ("q", "r"), ("", "")),
        "valid": pairs(("new", "new"), ("z", "z")),
    }
    found = reported(splits).splits
    assert list(found) == ["test", "train", "valid"]
    plain = {
        (name, other): (overlap.pairs, overlap.sources, overlap.targets)
        for name, split in found.items()
        for other, overlap in split.overlap.items()
    }
    assert plain == {
        ("test", "train"): (2, 3, 3),
        ("test", "valid"): (1, 2, 1),
        ("valid", "train"): (0, 0, 0),
        ("valid", "test"): (1, 2, 1),
    }


def test_characters_that_train_lacks_are_counted_by_side() -> None:
    splits = {"train": pairs(("abc", "xyz")), "valid": pairs(("abxx", "xyz"), ("xß", "abzz"))}
    found = reported(splits).splits
    source, target = found["valid"].source.unseen, found["valid"].target.unseen
    assert source is not None
    assert target is not None
    assert (source.distinct, source.occurrences, source.examples) == (2, 4, "xß")
    assert (target.distinct, target.occurrences, target.examples) == (2, 2, "ab")
    assert found["train"].source.unseen is None
    assert reported({"valid": splits["valid"]}).splits["valid"].source.unseen is None


def test_identical_pairs_are_reported_as_a_share() -> None:
    train = pairs(("a", "a "), ("b", "c"), ("d", "e"), ("f", "f"), ("", ""))
    assert reported({"train": train}).splits["train"].identical == 0.5


def test_the_longest_lines_are_reported_with_their_line_numbers() -> None:
    lengths = [4, 9, 1, 7, 7, 3, 8]
    train = [Pair("d" * length, "e" * 5, line * 10) for line, length in enumerate(lengths)]
    side = reported({"train": train}).splits["train"].source
    assert [(entry.line, entry.characters) for entry in side.longest] == [
        (10, 9),
        (60, 8),
        (30, 7),
        (40, 7),
        (0, 4),
    ]


def test_a_split_is_read_once_and_may_be_a_stream() -> None:
    train, valid = pairs(("a", "b")), pairs(("a", "b"), ("c", "d"))
    found = reported({"train": iter(train), "valid": iter(valid)})
    assert found == reported({"train": train, "valid": valid})


def test_a_corpus_without_text_gives_zeros_not_a_crash() -> None:
    found = reported({"train": pairs(("", "")), "valid": []})
    assert found.splits["train"].source.characters == Spread(0, 0, 0, 0)
    assert found.lines()


def example_report() -> DataReport:
    splits = {
        "train": pairs(("ein Hund", "a dog"), ("ein Hund", "a dog"), ("", "")),
        "valid": pairs(("zwölf\u00adx", "b")),
    }
    return reported(splits)


def test_the_json_holds_every_figure_as_plain_values() -> None:
    found = example_report()
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert (
        plain["splits"]["train"]["filtered"] | {"read": 3, "kept": 1, "dropped": 2, "duplicate": 1, "empty": 1}
        == (plain["splits"]["train"]["filtered"])
    )
    assert plain["splits"]["train"]["source"]["characters"]["largest"] == 8
    assert plain["splits"]["valid"]["overlap"] == {"train": {"pairs": 0, "sources": 0, "targets": 0}}
    assert plain["splits"]["valid"]["filtered"] is None


def test_the_table_is_aligned_and_shows_every_figure() -> None:
    lines = example_report().lines()
    table = lines[: lines.index(next(line for line in lines if line.startswith("valid, de:")))]
    assert table[0].split() == ["train", "valid"]
    assert len({len(line) for line in table}) == 1
    rows = {line.split("  ")[0].strip(): line.split()[-2:] for line in table[1:]}
    assert rows["pairs read"] == ["3", "1"]
    assert rows["pairs kept"] == ["1", "-"]
    assert rows["duplicates"] == ["1", "0"]
    unseen = next(line for line in lines if line.startswith("valid, de:"))
    assert "U+00AD" in unseen
    assert "ö" in unseen
    assert any(line.startswith("train, de: longest lines: 1 (8 characters)") for line in lines)
    assert all("\n" not in line for line in lines)
