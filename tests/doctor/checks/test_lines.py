"""Damaged lines are counted by kind, and near copies are told from copies."""

from __future__ import annotations

from manyheads.data.corpus import Pair
from manyheads.doctor.checks.lines import LineCounts, NearCopies


def test_damaged_lines_are_named_from_three_on_with_their_lines() -> None:
    counts = LineCounts()
    for line in range(1, 11):
        counts.add("lost \ufffd letter" if line > 7 else "sound", line)
    (finding,) = counts.findings("train")
    assert (finding.name, finding.severity) == ("encoding-damaged", "error")
    assert finding.evidence.startswith('train: 3 of 10 (30 %) lines have lost letters; line 8: "lost')
    fewer = LineCounts()
    fewer.add("\ufffd", 1)
    assert not list(fewer.findings("train"))


def test_a_near_copy_differs_in_one_word_and_a_copy_is_none() -> None:
    held_out = [Pair("one two three four five", "a b", 1), Pair("six seven eight nine", "c", 2)]
    near = NearCopies(held_out)
    near.add(Pair("one two three four six", "a b", 9))
    near.add(held_out[1])
    (finding,) = near.findings("valid", 2)
    assert "1 of 2 (50 %)" in finding.evidence
    assert "line 1:" in finding.evidence
