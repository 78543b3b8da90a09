"""`training.max_minutes`: the time of a training, its learning rate, validations, messages, and resuming."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
import torch
from tests.training.clock import Clock
from tests.training.parts import TrainerHarness, logged_figures, tiny_model, weights

from manyheads.config.schema import TrainingConfig
from manyheads.training.time_limit import fitting_updates, sampled_validation


class FakeTimedValidation:
    """A timed validation of an estimated length, which records the seconds that it is limited to."""

    def __init__(self, estimate: float = 1.0) -> None:
        self.estimate = estimate
        self.size: Sequence[int] = (900, 500)
        self.allowed: list[float] = []

    def seconds(self, every: int) -> float:
        return self.estimate

    def shorten(self, seconds: float) -> float:
        self.allowed.append(seconds)
        return min(self.estimate, seconds)


SPEEDS: dict[str, Callable[[int], float]] = {
    "even": lambda update: 2.0,
    "slow first updates": lambda update: 10.0 if update <= 3 else 2.0,
    "slower in the middle": lambda update: 2.0 if update <= 60 else 8.0,
    "faster in the middle": lambda update: 8.0 if update <= 20 else 2.0,
    "uneven": lambda update: 3.0 if update % 2 else 1.0,
}


@pytest.mark.parametrize(
    ("speed", "validation", "saving", "every", "average"),
    [
        ("even", 6.0, 2.0, 40, 1),
        ("slow first updates", 0.0, 0.0, 1_000, 3),
        ("slower in the middle", 20.0, 5.0, 5, 3),
        ("faster in the middle", 6.0, 2.0, 40, 3),
        ("uneven", 20.0, 5.0, 5, 1),
    ],
)
def test_training_ends_when_the_time_is_over(
    clock: Clock, speed: str, validation: float, saving: float, every: int, average: int
) -> None:
    """The whole training, with the validation of averaged checkpoints that comes after it, ends in the time."""
    harness = clock.idle_harness(
        SPEEDS[speed],
        validation=validation,
        saving=saving,
        save_every=every,
        average_checkpoints=average,
        steps=10_000,
        max_minutes=10,
        log_every=10,
    )
    start = clock.now
    harness.trainer.run()
    progress = harness.trainer.progress
    if average > 1 and len(harness.saved) > 1:
        harness.trainer.score()
    assert progress.complete
    check = validation + saving
    assert 600 - 2 * check - 3 * 8.0 <= clock.now - start <= 600 + 8.0
    assert harness.saved_steps[-1] == progress.step == progress.total_steps


@pytest.mark.parametrize(
    ("speed", "schedule"),
    [("faster in the middle", "linear"), ("slower in the middle", "cosine"), ("uneven", "linear")],
)
def test_a_rate_that_falls_to_zero_does_so_when_the_time_is_over(clock: Clock, speed: str, schedule: str) -> None:
    harness = clock.idle_harness(
        SPEEDS[speed], steps=10_000, max_minutes=10, schedule=schedule, warmup_steps=10, learning_rate=1.0
    )
    harness.trainer.run()
    rates = [report.learning_rate for report in harness.listener.steps]
    assert max(rates) > 0.9
    assert rates[-1] < 0.01
    assert rates[-20] < 0.3


def test_the_configured_steps_are_the_most(clock: Clock) -> None:
    harness = clock.idle_harness(2.0, steps=35, max_minutes=20)
    harness.trainer.run()
    assert harness.trainer.progress.step == 35


def test_validations_come_later_where_they_would_take_more_than_a_quarter_of_the_time(clock: Clock) -> None:
    harness = clock.idle_harness(4.0, validation=20.0, steps=10_000, max_minutes=20, save_every=5)
    harness.trainer.run()
    spent = 20.0 * (len(harness.listener.validations) - 1)  # one at the end in any case
    assert 0.15 * 1_200 <= spent <= 0.25 * 1_200
    rare = clock.idle_harness(4.0, validation=20.0, steps=10_000, max_minutes=20, save_every=50)
    rare.trainer.run()
    assert [report.step for report in rare.listener.validations][:-1] == [50, 100, 150, 200, 250][:5]


def test_a_long_validation_is_limited_to_a_twentieth_of_the_time(clock: Clock) -> None:
    timed = FakeTimedValidation(400.0)
    harness = clock.idle_harness(2.0, steps=10_000, max_minutes=10, timed_validation=timed)
    harness.trainer.run()
    assert timed.allowed == [30.0]


@pytest.mark.parametrize(
    ("longest", "expected"), [(0.3, [16]), (1.0, [16, 16]), (10.0, [16, 16, 4]), (40.0, [16, 16, 4, 1])]
)
def test_a_validation_is_timed_on_larger_samples_as_long_as_the_time_allows(
    longest: float, expected: list[int]
) -> None:
    """The first sample is repeated, as code may be compiled in it."""
    samples: list[int] = []

    def seconds(every: int) -> float:
        samples.append(every)
        return 32.0

    assert sampled_validation(seconds, longest) == 32.0
    assert samples == expected


@pytest.mark.parametrize(("prepared", "updates"), [(0.0, 60), (20.0, 50), (60.0, 30), (500.0, 30)])
def test_preparation_counts_in_the_time_up_to_half_of_it(clock: Clock, prepared: float, updates: int) -> None:
    harness = clock.idle_harness(2.0, steps=10_000, max_minutes=2, prepared=prepared)
    harness.trainer.run()
    assert harness.trainer.progress.step == updates
    reported = [text for text in harness.listener.messages if "training gets half of them" in text]
    assert bool(reported) == (prepared > 60)
    if reported:
        assert "the preparation took 8.3 of the 2 minutes" in reported[0]
        assert "the command takes 9.3 minutes" in reported[0]


@pytest.mark.parametrize(("seconds", "updates"), [(2.0, 60), (15.0, 8)])
def test_few_updates_are_warned_about_with_the_minutes_for_more(clock: Clock, seconds: float, updates: int) -> None:
    harness = clock.idle_harness(seconds, steps=10_000, max_minutes=2)
    harness.trainer.run()
    plan, warning = harness.listener.messages
    assert plan == f"{seconds:.2f} s an update: about {updates} updates fit into 2 minutes"
    (minutes,) = re.findall(rf"warning: {updates} updates are too few .* training.max_minutes = (\d+)$", warning)
    enough = clock.idle_harness(seconds, steps=10_000, max_minutes=int(minutes))
    enough.trainer.run()
    assert 300 <= enough.trainer.progress.step <= 310 + 60 / seconds
    assert not any(text.startswith("warning") for text in enough.listener.messages)


def limited(clock: Clock) -> TrainerHarness:
    return clock.harness(
        SPEEDS["uneven"],
        validation=6.0,
        model=tiny_model(dropout=0.3),
        steps=10_000,
        max_minutes=2,
        save_every=13,
        schedule="cosine",
        timed_validation=FakeTimedValidation(),
    )


@pytest.mark.parametrize("cut", [5, 13])
def test_a_training_that_resumes_equals_one_that_was_not_interrupted(clock: Clock, cut: int) -> None:
    torch.manual_seed(5)
    whole = limited(clock)
    whole.trainer.run()
    torch.manual_seed(5)
    first = limited(clock)
    first.trainer.run(stop=lambda: first.trainer.progress.step == cut)
    torch.manual_seed(77)
    second = limited(clock)
    second.resume(first.storage)
    clock.slow(second, lambda update: SPEEDS["uneven"](update + cut) - SPEEDS["uneven"](update))
    second.trainer.run()
    assert logged_figures(first) + logged_figures(second) == logged_figures(whole)
    expected = weights(whole.model)
    assert all(torch.equal(tensor, expected[name]) for name, tensor in weights(second.model).items())


def test_a_restored_training_validates_on_the_same_number_of_pairs(clock: Clock) -> None:
    first, second = limited(clock), limited(clock)
    assert first.trainer.timed_validation is not None
    assert second.trainer.timed_validation is not None
    first.trainer.timed_validation.size = [31, 17]
    first.trainer.run()
    second.resume(first.storage)
    assert second.trainer.timed_validation.size == [31, 17]


def test_a_resumed_training_with_more_time_uses_it(clock: Clock) -> None:
    first = clock.idle_harness(2.0, validation=6.0, steps=10_000, max_minutes=2, save_every=10)
    first.trainer.run()
    second = clock.idle_harness(4.0, validation=6.0, steps=10_000, max_minutes=8, save_every=10)
    second.resume(first.storage)
    start = clock.now
    second.trainer.run()
    assert 360 - 10 <= clock.now - start <= 360 + 10


@pytest.mark.parametrize("average", [1, 3])
@pytest.mark.parametrize(("update", "check", "every"), [(4.0, 20.0, 50), (2.0, 0.0, 10), (1.0, 30.0, 3)])
def test_the_updates_that_fit_take_the_time_with_their_validations(
    update: float, check: float, every: int, average: int
) -> None:
    config = TrainingConfig(save_every=every, average_checkpoints=average)
    updates = fitting_updates(3_600, update, check, config)
    checks = min(updates / every * check, updates * update / 3)  # at most a quarter of both
    at_end = (2 if average > 1 else 1) * check
    assert 3_600 - 2 * update <= updates * update + checks + at_end <= 3_600 + 1e-6
