"""Decoding that differs from greedy search, teacher forcing or smaller batches is named."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from manyheads.doctor.checks.decoding import Decoding, decoding_findings, first_token_findings
from manyheads.doctor.report import Finding


def names(findings: Iterable[Finding]) -> dict[str, str]:
    return {finding.name: finding.severity for finding in findings}


def test_decoding_that_differs() -> None:
    sound = Decoding(16, cache=3e-6, score=2e-6)
    assert names(decoding_findings(sound)) == {}
    assert names(decoding_findings(replace(sound, others_beside=1, example="x"))) == {
        "depends-on-the-batch": "error"
    }
    assert names(decoding_findings(replace(sound, cache=0.2))) == {"cache-differs": "error"}
    assert names(decoding_findings(replace(sound, beam_one=2))) == {"beam-one-differs": "error"}
    assert names(decoding_findings(replace(sound, score=0.2))) == {"score-differs": "error"}


def test_a_first_token_that_was_never_a_label() -> None:
    sound: dict[str, Any] = {"first": 1.1, "rest": 0.8, "frequencies": 1.5, "right": 25, "pairs": 32}
    assert names(first_token_findings(**sound)) == {}
    assert names(first_token_findings(**sound | {"first": 9.0, "right": 0})) == {"first-token-not-learned": "error"}
    little = sound | {"first": 4.0, "rest": 3.5}  # of a model that has learned little
    assert names(first_token_findings(**little)) == {}
