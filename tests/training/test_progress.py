"""Detection of a diverging loss."""

from __future__ import annotations

import json
import math

from manyheads.training.progress import _DIVERGENCE_NATS, _MEAN_LOG_POINTS, _MIN_LOG_POINTS, DivergenceDetector


def observed(*losses: float) -> DivergenceDetector:
    detector = DivergenceDetector()
    for loss in losses:
        assert not detector.observe(loss)
    return detector


def test_a_loss_far_above_its_running_mean_is_reported_once() -> None:
    detector = observed(*[2.0] * _MIN_LOG_POINTS)
    assert [detector.observe(2.1 + _DIVERGENCE_NATS) for _ in range(3)] == [True, False, False]
    assert not detector.observe(2.0)
    assert detector.observe(2.1 + _DIVERGENCE_NATS), "and again after it had fallen back"


def test_a_diverging_loss_does_not_change_the_running_mean() -> None:
    detector = observed(*[2.0] * _MIN_LOG_POINTS)
    for _ in range(100):
        detector.observe(9.0)
    assert detector.mean == 2.0


def test_the_first_losses_and_a_falling_loss_are_not_reported() -> None:
    observed(3.0, *[9.0] * (_MIN_LOG_POINTS - 1))
    observed(*[9.0 * 0.97**n for n in range(200)])


def test_a_loss_that_is_not_finite_is_not_reported() -> None:
    detector = observed(*[2.0] * _MIN_LOG_POINTS)
    assert not detector.observe(math.nan)
    assert not detector.observe(math.inf)
    assert detector.mean == 2.0


def test_the_running_mean_is_of_the_last_points_alone() -> None:
    detector = observed(*[5.0] * 50, *[4.5] * 200)
    assert abs(detector.mean - 4.5) < 0.5 * (1 - 1 / _MEAN_LOG_POINTS) ** 200 + 1e-9


def test_a_restored_detector_resumes_from_its_state() -> None:
    detector, other = observed(*[2.0] * _MIN_LOG_POINTS), DivergenceDetector()
    detector.observe(9.0)
    other.restore(json.loads(json.dumps(detector.state())))
    assert not other.observe(9.0), "already reported"
    assert other.mean == 2.0
