"""When a loss counts as gone astray."""

from __future__ import annotations

import json
import math

from manyheads.training.progress import FAR, MEMORY, SETTLED, DivergenceDetector


def seen(*losses: float) -> DivergenceDetector:
    watch = DivergenceDetector()
    for loss in losses:
        assert not watch.observe(loss)
    return watch


def test_a_loss_far_above_its_running_mean_is_told_once() -> None:
    watch = seen(*[2.0] * SETTLED)
    assert [watch.observe(2.1 + FAR) for _ in range(3)] == [True, False, False]
    assert not watch.observe(2.0)
    assert watch.observe(2.1 + FAR), "and again when it had come back"


def test_what_is_astray_does_not_move_the_mean() -> None:
    watch = seen(*[2.0] * SETTLED)
    for _ in range(100):
        watch.observe(9.0)
    assert watch.mean == 2.0


def test_the_first_losses_and_a_falling_loss_are_no_matter() -> None:
    seen(3.0, *[9.0] * (SETTLED - 1))
    seen(*[9.0 * 0.97**n for n in range(200)])


def test_a_loss_that_is_not_finite_is_counted_elsewhere() -> None:
    watch = seen(*[2.0] * SETTLED)
    assert not watch.observe(math.nan)
    assert not watch.observe(math.inf)
    assert watch.mean == 2.0


def test_it_remembers_the_last_points_only() -> None:
    watch = seen(*[5.0] * 50, *[4.5] * 200)
    assert abs(watch.mean - 4.5) < 0.5 * (1 - 1 / MEMORY) ** 200 + 1e-9


def test_it_goes_on_from_its_state() -> None:
    watch, other = seen(*[2.0] * SETTLED), DivergenceDetector()
    watch.observe(9.0)
    other.restore(json.loads(json.dumps(watch.state())))
    assert not other.observe(9.0), "already told"
    assert other.mean == 2.0
