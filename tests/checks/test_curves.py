"""Curves of sound trainings raise no alarm, and those of broken ones are named."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from tests.checks.severities import severities

from manyheads.checks.curves import Curves, curve_findings


def curves(validations: list[float], train: list[float] | None = None, **changes: Any) -> Curves:
    """Return curves with a validation every 100 updates and a training loss every 10 updates."""
    steps = 100 * len(validations)
    losses = train or [6 * math.exp(-index / 10) + 1 for index in range(steps // 10)]
    points = tuple((10 * (index + 1), value) for index, value in enumerate(losses))
    scored = tuple((100 * (index + 1), value) for index, value in enumerate(validations))
    return replace(Curves(points, scored, steps, 0), **changes)


SOUND = [5.0, 3.0, 2.2, 1.8, 1.6, 1.5, 1.46, 1.44, 1.43, 1.43]


def test_a_sound_curve_has_no_finding() -> None:
    assert severities(curve_findings(curves(SOUND), 6.5)) == {}
    assert severities(curve_findings(curves([*SOUND, 1.47]), None)) == {}
    assert severities(curve_findings(Curves((), (), 0, 0), 6.5)) == {}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (curves([*SOUND, 1.7]), {"over-fitting": "note"}),
        (curves([*SOUND, 2.0, 2.4]), {"over-fitting": "warning"}),
        (curves([6.0, 5.0, 4.2, 3.5, 2.9, 2.4, 2.0, 1.7]), {"under-fitting": "warning"}),
        (curves([5.0, 3.0, 2.5, 2.2, 2.0, 1.9, 1.85, 1.8]), {"under-fitting": "note"}),
        (curves([6.4, 6.4, 6.4, 6.4, 6.4]), {"never-left-chance": "error"}),
        (curves(SOUND, [3.0] * 50 + [2.0] * 30 + [7.0] * 20), {"diverged": "error"}),
        (curves(SOUND, skipped=30), {"updates-skipped": "warning"}),
        (curves(SOUND, total_steps=2_000), {"unfinished": "note"}),
    ],
)
def test_a_curve_with_a_fault_is_named(found: Curves, expected: dict[str, str]) -> None:
    assert severities(curve_findings(found, 6.5)) == expected


def test_curves_are_read_from_a_log_with_other_records() -> None:
    records: list[dict[str, Any]] = [
        {"kind": "step", "step": 10, "nll": 5.0, "total_steps": 20, "skipped": 0},
        {"kind": "step", "step": 20, "nll": None, "total_steps": 20, "skipped": 3},
        {"kind": "validation", "step": 20, "loss": 4.0},
        {"kind": "validation", "step": 30, "loss": None},
        {"kind": "other"},
    ]
    assert Curves.from_records(records) == Curves(((10, 5.0),), ((20, 4.0),), 20, 3)


@pytest.mark.parametrize("value", [None, "x", [], {}, 1.5])
def test_a_log_whose_counts_are_no_numbers_is_read(value: object) -> None:
    records = [{"kind": "step", "step": 10, "nll": 5.0, "total_steps": value, "skipped": value}]
    assert Curves.from_records(records) == Curves(((10, 5.0),), (), 0, 0)
