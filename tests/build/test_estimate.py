"""The time of a step is that of the last run, or calculated from measured updates."""

from __future__ import annotations

from pathlib import Path

from tests.build.parts import builder_of, plan_of

from manyheads.build.estimate import estimate_seconds


def test_a_training_is_measured_and_a_step_that_never_ran_is_unknown(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    statuses = builder_of(plan).statuses()
    few = estimate_seconds(plan, statuses["backward"])
    many = estimate_seconds(plan_of(tmp_path, "steps.backward.training.steps=2000"), statuses["backward"])
    assert few is not None
    assert many is not None
    assert many > few > 0
    assert estimate_seconds(plan, statuses["back"]) is None
    limited = plan_of(tmp_path, "steps.backward.training.max_minutes=3")
    assert estimate_seconds(limited, statuses["backward"]) == 180
