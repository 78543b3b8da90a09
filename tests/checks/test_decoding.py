"""Decoding that differs from greedy search, teacher forcing or smaller batches is named."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from manyheads.checks.decoding import _Decoding, _decoding_findings, _first_token_findings
from transformer_doctor.report import Finding


def names(findings: Iterable[Finding]) -> dict[str, str]:
    return {finding.name: finding.severity for finding in findings}


def test_decoding_that_differs_is_named() -> None:
    sound = _Decoding(16, cache=3e-6, score=2e-6)
    assert names(_decoding_findings(sound)) == {}
    assert names(_decoding_findings(replace(sound, others_beside=1, example="x"))) == {
        "depends-on-the-batch": "error"
    }
    assert names(_decoding_findings(replace(sound, cache=0.2))) == {"cache-differs": "error"}
    assert names(_decoding_findings(replace(sound, beam_one=2))) == {"beam-one-differs": "error"}
    assert names(_decoding_findings(replace(sound, score=0.2))) == {"score-differs": "error"}


def test_a_first_token_that_was_never_a_label_is_named() -> None:
    def losses(first: float, rest: float) -> list[list[float]]:
        return [[first, rest, rest]] * 32

    assert names(_first_token_findings(losses(1.1, 0.8), 1.5, 25)) == {}
    assert names(_first_token_findings(losses(9.0, 0.8), 1.5, 0)) == {"first-token-not-learned": "error"}
    assert names(_first_token_findings(losses(4.0, 3.5), 1.5, 0)) == {}  # a model that has learned little
