"""The estimated seconds of a training, compared with a sum over all its steps."""

from __future__ import annotations

import re

import pytest

from manyheads.config.schema import MeasuredConfig, TrainingConfig
from manyheads.training.costs import Costs, expectation, minutes_text

LIMITED = TrainingConfig(max_minutes=20, save_every=5, average_checkpoints=1)


def summed_seconds(costs: Costs, config: TrainingConfig, updates: int) -> float:
    """Add a validation and a checkpoint at every `save_every`-th step, at the end, and for the average."""
    steps = range(1, updates + 1)
    saved = [step for step in steps if step % config.save_every == 0 or step == updates]
    averaged = config.average_checkpoints > 1 and len(saved) > 1
    return updates * costs.update + (len(saved) + averaged) * (costs.validation + costs.saving)


@pytest.mark.parametrize("average", [1, 3])
@pytest.mark.parametrize(("validation", "saving", "every"), [(20.0, 0.0, 5), (150.0, 20.0, 7), (0.0, 55.0, 200)])
def test_the_planned_updates_are_the_most_that_fit_into_the_time_limit(
    validation: float, saving: float, every: int, average: int
) -> None:
    costs = Costs(4.0, validation, saving)
    config = LIMITED.model_copy(update={"save_every": every, "average_checkpoints": average})
    expected = [updates for updates in range(1, 400) if summed_seconds(costs, config, updates) <= 20 * 60]
    assert costs.fitting(config, 10_000) == max(expected)
    assert costs.fitting(config, 11) == min(11, max(expected))
    for updates in (1, every, 3 * every + 1):
        assert costs.total(config, updates) == pytest.approx(summed_seconds(costs, config, updates))


def test_finished_updates_count_with_their_measured_seconds() -> None:
    costs = Costs(4.0, validation=10.0)
    whole = summed_seconds(costs, LIMITED, 60)
    half = summed_seconds(costs, LIMITED, 30) - 10.0  # the last update is not validated yet
    assert costs.total(LIMITED, 60, done=30, seconds=half) == pytest.approx(whole)
    assert costs.fitting(LIMITED, 10_000, done=30, seconds=2_000.0) == 30


def test_the_suggested_save_every_ends_the_warning_about_validation_time() -> None:
    costs = Costs(4.0, validation=20.0)
    updates = costs.fitting(LIMITED, 10_000)
    warning = costs.warning(LIMITED, updates) or ""
    (every,) = re.findall(
        r"20\.0 s each time, 50% of the 20 minutes\..* set training\.save_every = (\d+),", warning
    )
    changed = LIMITED.model_copy(update={"save_every": int(every)})
    assert costs.warning(changed, costs.fitting(changed, 10_000)) is None
    assert costs.fitting(changed, 10_000) > 1.4 * updates


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        (60, "expect less than 20.0 BLEU instead of 43.0; 54 minutes here give the recipe's result"),
        (600, "expect about 38 BLEU instead of 43; 54 minutes here give the recipe's result"),
        (1_600, "the recipe's 43.0 BLEU took 1,600"),
    ],
)
def test_the_expected_score_is_read_from_the_scores_of_the_recipe(updates: int, message: str) -> None:
    measured = MeasuredConfig(updates=(100, 400, 1_600), scores=(20.0, 36.0, 43.0), processors=("x",) * 3)
    config = LIMITED.model_copy(update={"save_every": 10_000})
    assert expectation(measured, Costs(2.0), config, updates) == message


def test_one_minute_is_singular() -> None:
    assert [minutes_text(count) for count in (1, 0.5, 1_500)] == ["1 minute", "0.5 minutes", "1,500 minutes"]
