"""A classifier that guesses, or never predicts a class, is named."""

from __future__ import annotations

from tests.checks.severities import severities

from manyheads.checks.classes import _class_findings


def test_a_classifier_that_guesses_is_named() -> None:
    labels, sound = {"0": 500, "1": 500}, {"0": 480, "1": 520}
    assert severities(_class_findings(0.8, labels, sound)) == {}
    assert severities(_class_findings(0.51, labels, sound)) == {"no-better-than-guessing": "error"}
    one_sided = _class_findings(0.9, {"0": 900, "1": 100}, {"0": 1_000, "1": 0})
    assert severities(one_sided) == {"no-better-than-guessing": "error", "class-never-said": "warning"}
