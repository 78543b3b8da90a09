"""Decoding that differs from greedy search, teacher forcing or smaller batches is named."""

from __future__ import annotations

from dataclasses import replace

from tests.checks.severities import severities

from manyheads.checks.decoding import _Decoding, _decoding_findings, _first_token_findings


def test_decoding_that_differs_is_named() -> None:
    sound = _Decoding(16, cache=3e-6, score=2e-6)
    assert severities(_decoding_findings(sound)) == {}
    assert severities(_decoding_findings(replace(sound, others_beside=1, example="x"))) == {
        "depends-on-the-batch": "error"
    }
    assert severities(_decoding_findings(replace(sound, cache=0.2))) == {"cache-differs": "error"}
    assert severities(_decoding_findings(replace(sound, beam_one=2))) == {"beam-one-differs": "error"}
    assert severities(_decoding_findings(replace(sound, score=0.2))) == {"score-differs": "error"}


def test_a_first_token_that_was_never_a_label_is_named() -> None:
    def losses(first: float, rest: float) -> list[list[float]]:
        return [[first, rest, rest]] * 32

    assert severities(_first_token_findings(losses(1.1, 0.8), 1.5, 25)) == {}
    assert severities(_first_token_findings(losses(9.0, 0.8), 1.5, 0)) == {"first-token-not-learned": "error"}
    assert severities(_first_token_findings(losses(4.0, 3.5), 1.5, 0)) == {}  # a model that has learned little
