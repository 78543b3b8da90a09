"""Learning rate schedules: the rate of every update."""

from __future__ import annotations

import json
import math
from typing import Any, get_args

import pytest
import torch
from tests.tolerances import approx

from manyheads.config.schema import TrainingConfig
from manyheads.training.schedule import Schedule

PEAK, WARMUP, TOTAL = 3e-3, 40, 200
SCHEDULES = get_args(TrainingConfig.model_fields["schedule"].annotation)
RISING = [name for name in SCHEDULES if name != "noam"]


def make_schedule(name: str, *, warmup: int = WARMUP, d_model: int = 512, **settings: Any) -> Schedule:
    config = TrainingConfig(schedule=name, learning_rate=PEAK, warmup_steps=warmup, **settings)  # type: ignore[arg-type]
    return Schedule(config, d_model)


def rates(schedule: Schedule, total: int = TOTAL) -> list[float]:
    """Return the rate of each update, that of update 1 first."""
    return [schedule.rate(step, total) for step in range(1, total + 1)]


@pytest.mark.parametrize("warmup", [1, 40, 4_000])
@pytest.mark.parametrize("d_model", [64, 512])
def test_noam_is_the_formula_of_section_5_3_of_the_attention_paper(warmup: int, d_model: int) -> None:
    schedule = make_schedule("noam", warmup=warmup, d_model=d_model)
    for step in (1, 2, warmup // 2 + 1, warmup, warmup + 1, 10 * warmup):
        paper = d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert schedule.rate(step, 100_000) == approx(PEAK * paper, dtype=torch.float64)


@pytest.mark.parametrize("name", RISING)
def test_the_rate_rises_linearly_to_the_peak(name: str) -> None:
    found = rates(make_schedule(name))
    assert found[:WARMUP] == pytest.approx([PEAK * step / WARMUP for step in range(1, WARMUP + 1)])
    assert max(found) == pytest.approx(PEAK)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("warmup", [0, 1, TOTAL, 3 * TOTAL])
def test_rates_are_between_zero_and_the_peak_for_any_warm_up(name: str, warmup: int) -> None:
    found = rates(make_schedule(name, warmup=warmup, d_model=1))
    assert all(0 <= rate <= PEAK * (1 + 1e-9) for rate in found)
    assert found[0] > 0


@pytest.mark.parametrize("name", SCHEDULES)
def test_without_a_warm_up_training_begins_at_the_peak(name: str) -> None:
    found = rates(make_schedule(name, warmup=0, d_model=1))
    assert found[0] == max(found) == pytest.approx(PEAK)


def test_inverse_sqrt_falls_with_the_root_of_the_step() -> None:
    schedule = make_schedule("inverse-sqrt")
    for step in (WARMUP, 2 * WARMUP, 77, 4 * WARMUP):
        assert schedule.rate(step, TOTAL) == pytest.approx(PEAK * math.sqrt(WARMUP / step))


@pytest.mark.parametrize("total", [WARMUP + 8, TOTAL])
def test_linear_and_cosine_follow_their_formulas(total: int) -> None:
    for step in range(WARMUP, total + 1):
        done = (step - WARMUP) / (total - WARMUP)
        assert make_schedule("linear").rate(step, total) == pytest.approx(PEAK * (1 - done))
        assert make_schedule("cosine").rate(step, total) == pytest.approx(
            PEAK * 0.5 * (1 + math.cos(math.pi * done))
        )


@pytest.mark.parametrize("name", ["constant", "plateau"])
def test_constant_and_plateau_stay_at_the_peak_without_validation(name: str) -> None:
    assert set(rates(make_schedule(name))[WARMUP - 1 :]) == {PEAK}


def plateau(patience: int = 3) -> Schedule:
    return make_schedule("plateau", plateau_patience=patience)


def rates_after(schedule: Schedule, *losses: float) -> list[float]:
    """Return the rate, as a share of the peak, after each of these validation losses."""
    found = []
    for loss in losses:
        schedule.validated(loss)
        found.append(schedule.rate(TOTAL, TOTAL) / PEAK)
    return found


@pytest.mark.parametrize(
    ("patience", "losses", "expected"),
    [
        pytest.param(3, [2, 2, 2.1, 2, 2, 2, 2], [1, 1, 1, 0.9, 0.9, 0.9, 0.81], id="after-patience-validations"),
        pytest.param(3, [2, 2, 2, 1.9, 1.95, 1.95, 1.95], [1, 1, 1, 1, 1, 1, 0.9], id="better-loss-resets"),
        pytest.param(2, [1, 3, 2], [1, 1, 0.9], id="compares-with-the-best"),
    ],
)
def test_a_plateau_lowers_the_rate(patience: int, losses: list[float], expected: list[float]) -> None:
    assert rates_after(plateau(patience), *losses) == pytest.approx(expected)


@pytest.mark.parametrize("name", [name for name in SCHEDULES if name != "plateau"])
def test_other_schedules_ignore_validation(name: str) -> None:
    schedule = make_schedule(name, plateau_patience=1)
    before = rates(schedule)
    for _ in range(9):
        schedule.validated(5.0)
    assert rates(schedule) == before


@pytest.mark.parametrize("cut", range(7))
def test_a_restored_schedule_continues_as_an_uninterrupted_one(cut: int) -> None:
    losses = [2.0, 2.0, 2.1, 2.0, 1.5, 1.6, 1.7, 1.8, 1.9]
    whole = plateau(patience=2)
    expected = rates_after(whole, *losses)
    first, second = plateau(patience=2), plateau(patience=2)
    before = rates_after(first, *losses[:cut])
    second.restore(json.loads(json.dumps(first.state())))
    assert before + rates_after(second, *losses[cut:]) == expected
    assert second.state() == whole.state()
