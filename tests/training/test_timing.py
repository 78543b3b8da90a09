"""`training.max_minutes`: how many updates are planned, what is measured for it, and what is told."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence

import pytest
import torch
from tests.training.clock import Clock
from tests.training.parts import scored, tiny_model, weights

from manyheads.config.schema import MeasuredConfig
from manyheads.training.log import ValidationReport
from manyheads.training.timing import WARM_UPDATES


class Timed:
    """A validation that is timed by a function, and takes as long however few sentences are translated."""

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


def slow_start(update: int) -> float:
    return 10.0 if update <= WARM_UPDATES else 2.0


def test_the_steps_that_fit_into_the_time_are_planned_once(clock: Clock) -> None:
    bench = clock.idle_bench(slow_start, steps=10_000, max_minutes=6, log_every=10)
    bench.trainer.run()
    # 3 updates of 10 s, and 330 s for 165 of 2 s
    assert bench.trainer.progress.total_steps == bench.trainer.progress.step == 168
    assert bench.trainer.progress.seconds == pytest.approx(360)
    assert [report.total_steps for report in bench.listener.steps][:4] == [10_000, 10_000, 168, 168]
    (message,) = bench.listener.messages
    plan = itertools.islice((pairs for n in itertools.count() for pairs in bench.updates.epoch(n)), 3, 30)
    speed = sum(bench.updates.batch(pairs).target_tokens for pairs in plan) / 54
    assert message == f"{speed:,.0f} target tokens/s, 0.0 s a validation: 168 updates fit into 6 minutes"
    assert bench.saved_steps == [30, 168]  # the first one to time it


@pytest.mark.parametrize("average", [1, 3])
@pytest.mark.parametrize(
    ("validation", "saving", "every"), [(150.0, 20.0, 20), (35.0, 0.0, 5), (0.0, 55.0, 12), (450.0, 100.0, 200)]
)
def test_validation_and_checkpoints_count_in_the_time(
    clock: Clock, validation: float, saving: float, every: int, average: int
) -> None:
    """The whole training, with the validation of averaged checkpoints that comes after it, ends in the time."""
    bench = clock.idle_bench(
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
    bench.trainer.run()
    once = validation + saving
    if average > 1 and bench.trainer.progress.step > every:
        bench.trainer.score()
        clock.now += saving  # of the mean
    assert clock.now - start <= 3_600
    assert clock.now - start > 3_600 - once - 2 * 10.0  # one more update would need one more validation, or time


def test_half_the_updates_of_the_same_time_remain_when_validation_takes_the_other_half(clock: Clock) -> None:
    plain = clock.idle_bench(4.0, steps=10_000, max_minutes=20)
    plain.trainer.run()
    bench = clock.idle_bench(4.0, validation=20.0, steps=10_000, max_minutes=20, save_every=5)
    bench.trainer.run()
    assert plain.trainer.progress.step == 300
    assert 140 <= bench.trainer.progress.step <= 150


def test_much_validation_is_warned_about_with_a_cure_that_mends_it(clock: Clock) -> None:
    bench = clock.idle_bench(4.0, validation=20.0, steps=10_000, max_minutes=20, save_every=5)
    bench.trainer.run()
    warning = bench.listener.messages[1]
    told = re.match(r"warning: validation and saving take 20\.0 s each time, (\d+)% of the 20 minutes\.", warning)
    assert told is not None
    assert 45 <= int(told[1]) <= 50
    (every,) = re.findall(r"set training\.save_every = (\d+),", warning)
    mended = clock.idle_bench(4.0, validation=20.0, steps=10_000, max_minutes=20, save_every=int(every))
    mended.trainer.run()
    assert len(mended.listener.messages) == 1
    assert mended.trainer.progress.step > 1.4 * bench.trainer.progress.step


def test_validation_longer_than_the_time_is_said_before_the_first_validation(clock: Clock) -> None:
    bench = clock.idle_bench(
        2.0,
        steps=10_000,
        max_minutes=2,
        timed_validation=Timed(lambda every: 400.0),
        save_every=10,
        validation=400.0,
    )
    bench.listener.validation = lambda report: stop()  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        bench.trainer.run()
    assert "400.0 s each time" in bench.listener.messages[1]
    assert "validate on less text" in bench.listener.messages[1]
    assert "save_every" not in bench.listener.messages[1]  # there is no seldom enough


def test_what_is_validated_to_time_it_is_little_of_the_time(clock: Clock) -> None:
    shares: list[int] = []

    def sample(every: int) -> float:
        shares.append(every)
        clock.now += 32.0 / every
        return 32.0

    for minutes, expected in ((2, [16, 16]), (20, [16, 16, 4]), (200, [16, 16, 4, 1])):
        shares.clear()
        bench = clock.idle_bench(
            2.0, steps=60, max_minutes=minutes, timed_validation=Timed(sample), validation=32.0
        )
        bench.trainer.run()
        assert shares == expected  # the first is for code that is compiled then
        assert "32.0 s a validation" in bench.listener.messages[0]


def test_to_time_a_validation_changes_nothing_that_training_depends_on(clock: Clock) -> None:
    """A training with a time limit is that of as many steps asked for by number, bit for bit."""

    def careless(step: int) -> ValidationReport:
        torch.randn(7)
        return scored(step, 1.0)

    limited = clock.bench(2.0, model=tiny_model(dropout=0.3), steps=10_000, max_minutes=2, warmup_steps=31)
    limited.trainer.validate = careless
    torch.manual_seed(5)
    limited.trainer.run()
    asked = clock.bench(2.0, model=tiny_model(dropout=0.3), steps=60, warmup_steps=31)
    torch.manual_seed(5)
    asked.trainer.run()
    assert limited.trainer.progress.step == 60
    assert limited.model.training
    expected = weights(asked.model)
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
def test_what_the_time_will_give_is_said_at_the_start(clock: Clock, minutes: int, message: str) -> None:
    bench = clock.idle_bench(2.0, steps=10_000, max_minutes=minutes, measured=TABLE)
    bench.trainer.run(stop=lambda: bench.trainer.progress.fixed)
    assert bench.listener.messages[0].partition(": ")[2] == message


def test_the_minutes_that_the_recipe_needs_hold_its_validations(clock: Clock) -> None:
    first = clock.idle_bench(2.0, validation=20.0, steps=10_000, max_minutes=20, save_every=100, measured=TABLE)
    first.trainer.run(stop=lambda: first.trainer.progress.fixed)
    (minutes,) = re.findall(r"(\d+) minutes here", first.listener.messages[0])
    assert int(minutes) == 59  # 1,600 of 2 s and 16 of 20 s
    second = clock.idle_bench(2.0, validation=20.0, steps=10_000, max_minutes=60, save_every=100, measured=TABLE)
    second.trainer.run(stop=lambda: second.trainer.progress.fixed)
    assert second.trainer.progress.total_steps >= 1_600


def test_a_longer_run_is_measured_for_longer(clock: Clock) -> None:
    """What slows the first moments alone must not decide how long training is."""
    bench = clock.idle_bench(
        lambda update: 6.0 if update <= 30 else 2.0,
        steps=10_000,
        max_minutes=200,
        log_every=10_000,
        warmup_steps=500,
    )
    bench.trainer.run(stop=lambda: bench.trainer.progress.fixed)
    # 2 % of the time are 240 s: after 3 updates that do not count, 27 of 6 s and 39 of 2 s
    spent, updates = 27 * 6 + 39 * 2, 27 + 39
    assert bench.trainer.progress.step == 3 + updates
    left = 200 * 60 - 3 * 6 - spent
    assert bench.trainer.progress.total_steps == 3 + updates + int(left / (spent / updates))


def test_the_plan_is_fixed_before_the_rate_depends_on_it(clock: Clock) -> None:
    """So a run of that many steps, asked for by number, is the same run."""
    bench = clock.idle_bench(
        2.0, steps=10_000, max_minutes=200, log_every=10_000, warmup_steps=41, schedule="linear"
    )
    bench.trainer.run(stop=lambda: bench.trainer.progress.fixed)
    assert bench.trainer.progress.step == 41


def test_the_plan_is_never_longer_than_the_steps_asked_for(clock: Clock) -> None:
    bench = clock.idle_bench(slow_start, steps=35, max_minutes=20)
    bench.trainer.run()
    assert bench.trainer.progress.step == 35


def test_updates_so_slow_that_few_fit_are_measured_on_fewer(clock: Clock) -> None:
    bench = clock.idle_bench(10.0, steps=1_000, max_minutes=2)
    bench.trainer.run()
    assert bench.trainer.progress.step == bench.trainer.progress.total_steps == 12
    assert bench.saved_steps == [4, 12]


def test_when_the_time_is_over_before_it_is_measured_training_ends_there(clock: Clock) -> None:
    bench = clock.idle_bench(slow_start, steps=1_000, max_minutes=0.5)
    bench.trainer.run()
    assert bench.trainer.progress.step == bench.trainer.progress.total_steps == 3
    assert bench.saved_steps == [2, 3]


def test_a_plan_that_was_fixed_stays_when_training_goes_on(clock: Clock) -> None:
    first = clock.idle_bench(2.0, steps=10_000, max_minutes=2, save_every=40)
    first.listener.validation = lambda report: stop()  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        first.trainer.run()
    second = clock.idle_bench(0.001, steps=10_000, max_minutes=2)
    second.storage.saved = first.storage.saved
    assert second.storage.go_back(second.trainer)
    second.trainer.run()
    assert second.trainer.progress.step == 60
    assert second.listener.messages == []


def test_the_preparation_counts_in_the_time_up_to_its_half(clock: Clock) -> None:
    for prepared, updates in ((0.0, 60), (20.0, 50), (60.0, 30), (500.0, 30)):
        bench = clock.idle_bench(2.0, steps=10_000, max_minutes=2, prepared=prepared)
        bench.trainer.run()
        assert bench.trainer.progress.step == updates, prepared
        assert ("training gets half of them" in bench.listener.messages[0]) == (prepared > 60)


def test_to_time_a_validation_is_preparation_and_training_gets_half_of_the_time(clock: Clock) -> None:
    def seconds(every: int) -> float:
        clock.now += 25.0 if every == 16 else 0.0  # the first sample is validated twice
        return 1.0

    bench = clock.idle_bench(2.0, steps=10_000, max_minutes=2, prepared=50.0, timed_validation=Timed(seconds))
    start = clock.now
    bench.trainer.run()
    assert clock.now - start == pytest.approx(50.0 + 60.0, abs=2.0)
    assert bench.trainer.progress.step in (29, 30)
    assert bench.listener.messages[0] == (
        "the preparation took 1.7 of the 2 minutes; training gets half of them, and the command takes 2.7 minutes"
    )


@pytest.mark.parametrize(("steps", "warned"), [(10_000, True), (40, False)])
def test_a_plan_of_few_updates_is_warned_about_with_the_minutes_for_more(
    clock: Clock, steps: int, warned: bool
) -> None:
    bench = clock.idle_bench(2.0, steps=steps, max_minutes=2, prepared=20.0)
    bench.trainer.run()
    warnings = [message for message in bench.listener.messages if message.startswith("warning")]
    assert bool(warnings) == warned
    if warned:
        assert "50 updates teach a new model next to nothing" in warnings[0]
        assert warnings[0].endswith("training.max_minutes = 11")  # 20 s, and 300 updates of 2 s
        enough = clock.idle_bench(2.0, steps=steps, max_minutes=11, prepared=20.0)
        enough.trainer.run()
        assert enough.trainer.progress.step >= 300


def test_a_plan_is_shortened_when_updates_become_slower(clock: Clock) -> None:
    bench = clock.idle_bench(lambda update: 2.0 if update <= 60 else 8.0, steps=10_000, max_minutes=6)
    start = clock.now
    bench.trainer.run()
    assert 360 - 8 <= clock.now - start <= 360 * 1.03
    assert bench.trainer.progress.step < 180
    assert any("have become slower" in message for message in bench.listener.messages)


def test_a_plan_that_is_shortened_little_by_little_is_reported_by_tenths(clock: Clock) -> None:
    bench = clock.idle_bench(lambda update: 2.0 + 0.01 * update, steps=10_000, max_minutes=12)
    bench.trainer.run()
    plans = [int(re.findall(r"([\d,]+) instead", text)[0]) for text in bench.listener.messages if "slower" in text]
    assert len(plans) >= 2
    assert all(later <= 0.9 * earlier for earlier, later in itertools.pairwise(plans))


def test_a_plan_is_shortened_when_validations_take_longer_than_estimated(clock: Clock) -> None:
    bench = clock.idle_bench(
        2.0, steps=10_000, max_minutes=6, timed_validation=Timed(lambda every: 4.0), save_every=35, validation=40.0
    )
    start = clock.now
    bench.trainer.run()
    assert clock.now - start <= 360 * 1.03 + 2.0
    last = bench.listener.validations[-1].step
    assert last == bench.trainer.progress.step == bench.trainer.progress.total_steps


def test_a_plan_that_holds_is_not_changed(clock: Clock) -> None:
    bench = clock.idle_bench(lambda update: 2.1 if update % 2 else 1.9, steps=10_000, max_minutes=6, save_every=20)
    bench.trainer.run()
    assert len(bench.listener.messages) == 1


def test_validation_gets_a_quarter_of_the_time(clock: Clock) -> None:
    """So much that all validations of the updates that fit into the rest take a quarter."""
    timed = Timed(lambda every: 1.0)
    bench = clock.idle_bench(2.0, steps=10_000, max_minutes=10, timed_validation=timed, save_every=75)
    bench.trainer.run()
    assert timed.allowed == [pytest.approx(0.25 * 600 / 3)]  # 225 updates in 450 seconds


def test_a_restored_training_validates_on_as_many_pairs(clock: Clock) -> None:
    first = clock.idle_bench(
        2.0, steps=10_000, max_minutes=2, timed_validation=Timed(lambda every: 1.0), save_every=40
    )
    assert first.trainer.timed_validation is not None
    first.trainer.timed_validation.size = [31, 17]
    first.trainer.run()
    second = clock.idle_bench(2.0, steps=10_000, max_minutes=2, timed_validation=Timed(lambda every: 1.0))
    snapshot, _ = first.saved[-1]
    second.trainer.restore(snapshot.optimizer, snapshot.state)
    second.trainer.run()
    assert second.trainer.timed_validation is not None
    assert second.trainer.timed_validation.size == [31, 17]


def stop() -> None:
    raise KeyboardInterrupt


def test_a_run_that_goes_on_with_more_time_is_measured_anew(clock: Clock) -> None:
    first = clock.idle_bench(2.0, validation=6.0, steps=10_000, max_minutes=2, save_every=10)
    first.trainer.run()
    assert first.trainer.progress.step == 42  # 84 s, 5 validations, and one to time it
    snapshot = first.trainer.snapshot()
    second = clock.idle_bench(4.0, validation=6.0, steps=10_000, max_minutes=8, save_every=10)
    second.trainer.restore(snapshot.optimizer, snapshot.state)
    start = clock.now
    second.trainer.run()
    # of the first training the validation that was timed and that of its end do not count
    assert 8 * 60 - 10 < clock.now - start + 120 <= 8 * 60 + 12
