"""Unknown tokens, failed round trips, unusual lengths and vocabularies are named."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import pytest

from manyheads.checks.evidence import QuotedLines
from manyheads.checks.tokens import (
    SideTokens,
    Vocabulary,
    entropy,
    length_findings,
    side_findings,
    size_findings,
    use_findings,
)
from transformer_doctor.report import Finding


def names(findings: Iterable[Finding]) -> dict[str, str]:
    return {finding.name: finding.severity for finding in findings}


def test_entropy_is_that_of_the_distribution() -> None:
    assert entropy([5, 5, 0]) == pytest.approx(math.log(2))
    assert entropy([7]) == 0


def test_vocabularies_that_are_too_large_or_unused_are_named() -> None:
    vocabulary = Vocabulary("vocabulary", 5_000, 900, 100, 800_000)
    assert names(use_findings(vocabulary)) == {}
    assert names(use_findings(replace(vocabulary, unused=1_000))) == {"unused-vocabulary": "note"}
    assert names(use_findings(replace(vocabulary, unused=4_000))) == {"unused-vocabulary": "warning"}
    assert names(size_findings(vocabulary)) == {}
    assert names(size_findings(replace(vocabulary, rare=4_000))) == {"vocabulary-too-large": "warning"}


def test_unknown_tokens_failed_round_trips_and_long_texts_are_named() -> None:
    sound = SideTokens("valid, source", 10_000, 300, 400, QuotedLines())
    assert names(side_findings(sound)) == {}
    assert names(side_findings(replace(sound, unknown=600))) == {"many-unknown": "warning"}
    assert names(side_findings(replace(sound, unknown=3_000))) == {"many-unknown": "error"}
    assert names(side_findings(replace(sound, changed=QuotedLines(20)))) == {"round-trip": "warning"}
    assert names(length_findings(10, 1_000, 128, dropped=True)) == {}
    assert names(length_findings(100, 1_000, 128, dropped=True)) == {"cut-or-dropped": "warning"}
    assert names(length_findings(100, 1_000, 128, dropped=False)) == {"cut-or-dropped": "note"}
    assert names(length_findings(900, 1_000, 128, dropped=False)) == {"cut-or-dropped": "warning"}
