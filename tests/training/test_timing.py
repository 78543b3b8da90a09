"""`training.max_minutes`: the number of planned updates, its measurements and its messages."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence

import pytest
import torch
from tests.tolerances import within
from tests.training.clock import Clock
from tests.training.parts import tiny_model, validation_report, weights

from manyheads.config.schema import MeasuredConfig
from manyheads.training.log import ValidationReport
from manyheads.training.timing import WARM_UPDATES


class FakeTimedValidation:
    """A timed validation whose seconds a function gives, for any number of translated sentences."""

    def __init__(self, seconds: Callable[[int], float]) -> None:
        self.sample = seconds
        self.size: Sequence[int] = (900, 500)
        self.estimate = 0.0
        self.allowed: list[float] = []

    def seconds(self, every: int) -> float:
        self.estimate = self.sample(every)
        return self.estimate

    def shorten(self, seconds: float) -> float:
        self.allowed.append(seconds)
        return self.estimate


def slow_first_updates(update: int) -> float:
    return 10.0 if update <= WARM_UPDATES else 2.0


def test_the_steps_that_fit_into_the_time_are_planned_once(clock: Clock) -> None:
    harness = clock.idle_harness(slow_first_updates, steps=10_000, max_minutes=6, log_every=10)
    harness.trainer.run()
    # 3 updates of 10 s, and 330 s for 165 of 2 s
    assert harness.trainer.progress.total_steps == harness.trainer.progress.step == 168
    assert harness.trainer.progress.seconds == pytest.approx(360)
    assert [report.total_steps for report in harness.listener.steps][:4] == [10_000, 10_000, 168, 168]
    (message,) = harness.listener.messages
    plan = itertools.islice((pairs for n in itertools.count() for pairs in harness.updates.epoch(n)), 3, 30)
    speed = sum(harness.updates.batch(pairs).target_tokens for pairs in plan) / 54
    assert message == f"{speed:,.0f} target tokens/s, 0.0 s a validation: 168 updates fit into 6 minutes"
    assert harness.saved_steps == [30, 168]  # the first to measure the time of a validation


@pytest.mark.parametrize("average", [1, 3])
@pytest.mark.parametrize(
    ("validation", "saving", "every"), [(150.0, 20.0, 20), (35.0, 0.0, 5), (0.0, 55.0, 12), (450.0, 100.0, 200)]
)
def test_validation_and_checkpoints_count_in_the_time(
    clock: Clock, validation: float, saving: float, every: int, average: int
) -> None:
    """The whole training, with the validation of averaged checkpoints that comes after it, ends in the time."""
    harness = clock.idle_harness(
        10.0,
        validation=validation,
        saving=saving,
        steps=10_000,
        max_minutes=60,
        save_every=every,
        average_checkpoints=average,
        schedule="linear",
        warmup_steps=500,
    )
    start = clock.now
    harness.trainer.run()
    once = validation + saving
    if average > 1 and harness.trainer.progress.step > every:
        harness.trainer.score()
        clock.now += saving  # of the mean
    assert clock.now - start <= 3_600
    assert clock.now - start > 3_600 - once - 2 * 10.0  # one more update would need one more validation, or time


def test_validation_that_takes_half_of_the_time_leaves_half_of_the_updates(clock: Clock) -> None:
    plain = clock.idle_harness(4.0, steps=10_000, max_minutes=20)
    plain.trainer.run()
    harness = clock.idle_harness(4.0, validation=20.0, steps=10_000, max_minutes=20, save_every=5)
    harness.trainer.run()
    assert plain.trainer.progress.step == 300
    assert 140 <= harness.trainer.progress.step <= 150


def test_the_warning_about_much_validation_suggests_a_save_every_that_ends_it(clock: Clock) -> None:
    harness = clock.idle_harness(4.0, validation=20.0, steps=10_000, max_minutes=20, save_every=5)
    harness.trainer.run()
    warning = harness.listener.messages[1]
    warned = re.match(r"warning: validation and saving take 20\.0 s each time, (\d+)% of the 20 minutes\.", warning)
    assert warned is not None
    assert 45 <= int(warned[1]) <= 50
    (every,) = re.findall(r"set training\.save_every = (\d+),", warning)
    adjusted = clock.idle_harness(4.0, validation=20.0, steps=10_000, max_minutes=20, save_every=int(every))
    adjusted.trainer.run()
    assert len(adjusted.listener.messages) == 1
    assert adjusted.trainer.progress.step > 1.4 * harness.trainer.progress.step


def test_a_validation_longer_than_the_limit_is_reported_before_the_first_validation(clock: Clock) -> None:
    harness = clock.idle_harness(
        2.0,
        steps=10_000,
        max_minutes=2,
        timed_validation=FakeTimedValidation(lambda every: 400.0),
        save_every=10,
        validation=400.0,
    )
    harness.listener.validation = lambda report: stop()  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        harness.trainer.run()
    assert "400.0 s each time" in harness.listener.messages[1]
    assert "validate on less text" in harness.listener.messages[1]
    assert "save_every" not in harness.listener.messages[1]  # no save_every is large enough


def test_timing_a_validation_takes_a_small_share_of_the_limit(clock: Clock) -> None:
    shares: list[int] = []

    def sample(every: int) -> float:
        shares.append(every)
        clock.now += 32.0 / every
        return 32.0

    for minutes, expected in ((2, [16, 16]), (20, [16, 16, 4]), (200, [16, 16, 4, 1])):
        shares.clear()
        harness = clock.idle_harness(
            2.0, steps=60, max_minutes=minutes, timed_validation=FakeTimedValidation(sample), validation=32.0
        )
        harness.trainer.run()
        assert shares == expected  # the first sample is repeated, as code may be compiled in it
        assert "32.0 s a validation" in harness.listener.messages[0]


def test_timing_a_validation_does_not_change_training(clock: Clock) -> None:
    """Training with a time limit equals training with the same number of steps, bit for bit."""

    def validate_with_random_numbers(step: int) -> ValidationReport:
        torch.randn(7)
        return validation_report(step, 1.0)

    limited = clock.harness(2.0, model=tiny_model(dropout=0.3), steps=10_000, max_minutes=2, warmup_steps=31)
    limited.trainer.validate = validate_with_random_numbers
    torch.manual_seed(5)
    limited.trainer.run()
    counted = clock.harness(2.0, model=tiny_model(dropout=0.3), steps=60, warmup_steps=31)
    torch.manual_seed(5)
    counted.trainer.run()
    assert limited.trainer.progress.step == 60
    assert limited.model.training
    expected = weights(counted.model)
    assert all(torch.equal(tensor, expected[name]) for name, tensor in weights(limited.model).items())


TABLE = MeasuredConfig(updates=(100, 400, 1_600), scores=(20.0, 36.0, 43.0), processors=("x",) * 3)


@pytest.mark.parametrize(
    ("minutes", "message"),
    [
        (
            2,
            "60 of 1,600 updates fit into 2 minutes: expect less than 20.0 BLEU instead of 43.0; "
            "54 minutes here give the recipe's result",
        ),
        (
            20,
            "600 of 1,600 updates fit into 20 minutes: expect about 38 BLEU instead of 43; "
            "54 minutes here give the recipe's result",
        ),
        (54, "1,620 updates fit into 54 minutes: the recipe's 43.0 BLEU took 1,600"),
    ],
)
def test_the_expected_score_is_reported_with_the_plan(clock: Clock, minutes: int, message: str) -> None:
    harness = clock.idle_harness(2.0, steps=10_000, max_minutes=minutes, measured=TABLE)
    harness.trainer.run(stop=lambda: harness.trainer.progress.fixed)
    assert harness.listener.messages[0].partition(": ")[2] == message


def test_the_minutes_that_a_recipe_needs_include_its_validations(clock: Clock) -> None:
    first = clock.idle_harness(2.0, validation=20.0, steps=10_000, max_minutes=20, save_every=100, measured=TABLE)
    first.trainer.run(stop=lambda: first.trainer.progress.fixed)
    (minutes,) = re.findall(r"(\d+) minutes here", first.listener.messages[0])
    assert int(minutes) == 59  # 1,600 of 2 s and 16 of 20 s
    second = clock.idle_harness(2.0, validation=20.0, steps=10_000, max_minutes=60, save_every=100, measured=TABLE)
    second.trainer.run(stop=lambda: second.trainer.progress.fixed)
    assert second.trainer.progress.total_steps >= 1_600


def test_a_longer_run_is_measured_for_longer(clock: Clock) -> None:
    """Slow updates at the start alone must not determine the length of training."""
    harness = clock.idle_harness(
        lambda update: 6.0 if update <= 30 else 2.0,
        steps=10_000,
        max_minutes=200,
        log_every=10_000,
        warmup_steps=500,
    )
    harness.trainer.run(stop=lambda: harness.trainer.progress.fixed)
    # 2 % of the time are 240 s: after 3 updates that do not count, 27 of 6 s and 39 of 2 s
    spent, updates = 27 * 6 + 39 * 2, 27 + 39
    assert harness.trainer.progress.step == 3 + updates
    left = 200 * 60 - 3 * 6 - spent
    assert harness.trainer.progress.total_steps == 3 + updates + int(left / (spent / updates))


def test_the_plan_is_fixed_before_the_rate_depends_on_it(clock: Clock) -> None:
    """Training with the same number of configured steps is therefore equal."""
    harness = clock.idle_harness(
        2.0, steps=10_000, max_minutes=200, log_every=10_000, warmup_steps=41, schedule="linear"
    )
    harness.trainer.run(stop=lambda: harness.trainer.progress.fixed)
    assert harness.trainer.progress.step == 41


def test_the_plan_has_at_most_the_configured_steps(clock: Clock) -> None:
    harness = clock.idle_harness(slow_first_updates, steps=35, max_minutes=20)
    harness.trainer.run()
    assert harness.trainer.progress.step == 35


def test_slow_updates_are_measured_on_fewer_of_them(clock: Clock) -> None:
    harness = clock.idle_harness(10.0, steps=1_000, max_minutes=2)
    harness.trainer.run()
    assert harness.trainer.progress.step == harness.trainer.progress.total_steps == 12
    assert harness.saved_steps == [4, 12]


def test_training_ends_if_the_time_is_over_before_the_plan_is_fixed(clock: Clock) -> None:
    harness = clock.idle_harness(slow_first_updates, steps=1_000, max_minutes=0.5)
    harness.trainer.run()
    assert harness.trainer.progress.step == harness.trainer.progress.total_steps == 3
    assert harness.saved_steps == [2, 3]


def test_a_resumed_training_keeps_its_fixed_plan(clock: Clock) -> None:
    first = clock.idle_harness(2.0, steps=10_000, max_minutes=2, save_every=40)
    first.listener.validation = lambda report: stop()  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        first.trainer.run()
    second = clock.idle_harness(0.001, steps=10_000, max_minutes=2)
    second.storage.saved = first.storage.saved
    assert second.storage.go_back(second.trainer)
    second.trainer.run()
    assert second.trainer.progress.step == 60
    assert second.listener.messages == []


def test_preparation_counts_in_the_time_up_to_half_of_it(clock: Clock) -> None:
    for prepared, updates in ((0.0, 60), (20.0, 50), (60.0, 30), (500.0, 30)):
        harness = clock.idle_harness(2.0, steps=10_000, max_minutes=2, prepared=prepared)
        harness.trainer.run()
        assert harness.trainer.progress.step == updates, prepared
        assert ("training gets half of them" in harness.listener.messages[0]) == (prepared > 60)


def test_timing_a_validation_counts_as_preparation_and_training_gets_half_of_the_time(clock: Clock) -> None:
    def seconds(every: int) -> float:
        clock.now += 25.0 if every == 16 else 0.0  # the first sample is validated twice
        return 1.0

    harness = clock.idle_harness(
        2.0, steps=10_000, max_minutes=2, prepared=50.0, timed_validation=FakeTimedValidation(seconds)
    )
    start = clock.now
    harness.trainer.run()
    assert clock.now - start == within(50.0 + 60.0, 2.0)
    assert harness.trainer.progress.step in (29, 30)
    assert harness.listener.messages[0] == (
        "the preparation took 1.7 of the 2 minutes; training gets half of them, and the command takes 2.7 minutes"
    )


@pytest.mark.parametrize(("steps", "warned"), [(10_000, True), (40, False)])
def test_a_plan_of_few_updates_is_warned_about_with_the_minutes_for_more(
    clock: Clock, steps: int, warned: bool
) -> None:
    harness = clock.idle_harness(2.0, steps=steps, max_minutes=2, prepared=20.0)
    harness.trainer.run()
    warnings = [message for message in harness.listener.messages if message.startswith("warning")]
    assert bool(warnings) == warned
    if warned:
        assert "50 updates teach a new model next to nothing" in warnings[0]
        assert warnings[0].endswith("training.max_minutes = 11")  # 20 s, and 300 updates of 2 s
        enough = clock.idle_harness(2.0, steps=steps, max_minutes=11, prepared=20.0)
        enough.trainer.run()
        assert enough.trainer.progress.step >= 300


def test_a_plan_is_shortened_when_updates_become_slower(clock: Clock) -> None:
    harness = clock.idle_harness(lambda update: 2.0 if update <= 60 else 8.0, steps=10_000, max_minutes=6)
    start = clock.now
    harness.trainer.run()
    assert 360 - 8 <= clock.now - start <= 360 * 1.03
    assert harness.trainer.progress.step < 180
    assert any("have become slower" in message for message in harness.listener.messages)


def test_a_plan_that_is_shortened_gradually_is_reported_in_steps_of_a_tenth(clock: Clock) -> None:
    harness = clock.idle_harness(lambda update: 2.0 + 0.01 * update, steps=10_000, max_minutes=12)
    harness.trainer.run()
    plans = [
        int(re.findall(r"([\d,]+) instead", text)[0]) for text in harness.listener.messages if "slower" in text
    ]
    assert len(plans) >= 2
    assert all(later <= 0.9 * earlier for earlier, later in itertools.pairwise(plans))


def test_a_plan_is_shortened_when_validations_take_longer_than_estimated(clock: Clock) -> None:
    harness = clock.idle_harness(
        2.0,
        steps=10_000,
        max_minutes=6,
        timed_validation=FakeTimedValidation(lambda every: 4.0),
        save_every=35,
        validation=40.0,
    )
    start = clock.now
    harness.trainer.run()
    assert clock.now - start <= 360 * 1.03 + 2.0
    last = harness.listener.validations[-1].step
    assert last == harness.trainer.progress.step == harness.trainer.progress.total_steps


def test_a_plan_that_fits_is_not_changed(clock: Clock) -> None:
    harness = clock.idle_harness(
        lambda update: 2.1 if update % 2 else 1.9, steps=10_000, max_minutes=6, save_every=20
    )
    harness.trainer.run()
    assert len(harness.listener.messages) == 1


def test_validation_gets_a_quarter_of_the_time(clock: Clock) -> None:
    """The validations of all updates that fit into the rest take a quarter of the time."""
    timed = FakeTimedValidation(lambda every: 1.0)
    harness = clock.idle_harness(2.0, steps=10_000, max_minutes=10, timed_validation=timed, save_every=75)
    harness.trainer.run()
    assert timed.allowed == [pytest.approx(0.25 * 600 / 3)]  # 225 updates in 450 seconds


def test_a_restored_training_validates_on_the_same_number_of_pairs(clock: Clock) -> None:
    first = clock.idle_harness(
        2.0, steps=10_000, max_minutes=2, timed_validation=FakeTimedValidation(lambda every: 1.0), save_every=40
    )
    assert first.trainer.timed_validation is not None
    first.trainer.timed_validation.size = [31, 17]
    first.trainer.run()
    second = clock.idle_harness(
        2.0, steps=10_000, max_minutes=2, timed_validation=FakeTimedValidation(lambda every: 1.0)
    )
    snapshot, _ = first.saved[-1]
    second.trainer.restore(snapshot.optimizer, snapshot.state)
    second.trainer.run()
    assert second.trainer.timed_validation is not None
    assert second.trainer.timed_validation.size == [31, 17]


def stop() -> None:
    raise KeyboardInterrupt


def test_a_resumed_training_with_more_time_is_measured_again(clock: Clock) -> None:
    first = clock.idle_harness(2.0, validation=6.0, steps=10_000, max_minutes=2, save_every=10)
    first.trainer.run()
    assert first.trainer.progress.step == 42  # 84 s, 5 validations, and one to time it
    snapshot = first.trainer.snapshot()
    second = clock.idle_harness(4.0, validation=6.0, steps=10_000, max_minutes=8, save_every=10)
    second.trainer.restore(snapshot.optimizer, snapshot.state)
    start = clock.now
    second.trainer.run()
    # of the first training the validation that was timed and that of its end do not count
    assert 8 * 60 - 10 < clock.now - start + 120 <= 8 * 60 + 12
