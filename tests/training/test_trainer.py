"""The training loop: updates, logging, validation, saving, stopping, and resuming bit for bit."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.tolerances import approx, assert_close, within
from tests.training.clock import Clock
from tests.training.parts import (
    PAD,
    PairUpdates,
    TrainerHarness,
    logged_figures,
    pair_losses,
    random_pairs,
    record_gradients,
    tiny_model,
    validation_report,
    weights,
)
from torch import Tensor

from manyheads.checkpoint.checkpoints import TrainingRun
from manyheads.errors import TrainingError
from manyheads.reports import StepReport, ValidationReport
from manyheads.runs.resume import RunStorage
from manyheads.tensors.pairs import Batch
from manyheads.training.distributed import ALONE
from manyheads.training.objective import translation_loss
from manyheads.training.snapshot import Snapshot
from manyheads.training.trainer import _MOST_SKIPPED
from transformer_doctor import watch

NO_CHANGE = 1e-30  # a learning rate too low to change any weight


def stop() -> None:
    raise KeyboardInterrupt


def make_gradients_nan(harness: TrainerHarness, updates: set[int]) -> None:
    """Make one gradient of these updates, counted from 1, NaN."""
    counter = itertools.count(0)  # 0 is the trial of the heaviest update

    def to_nan(gradient: Tensor) -> Tensor:
        return gradient * math.nan if next(counter) in updates else gradient

    harness.model.decoder_norm.bias.register_hook(to_nan)


# --- the loss and its gradient ---


def test_the_loss_of_a_pair_does_not_depend_on_padding_and_other_pairs() -> None:
    model, updates = tiny_model(), PairUpdates(*random_pairs(11))
    loss, nll = translation_loss(model, updates.batch(range(11)), 0.1)
    for found, smoothing in ((loss, 0.1), (nll, 0.0)):
        expected = sum(pair_loss for pair_loss, _ in pair_losses(model, updates, smoothing))
        assert_close(found, expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_an_update_in_micro_batches_has_the_gradient_of_one_batch(smoothing: float, parts: int) -> None:
    """Invariant I: the sum over target tokens divided by their number in the whole update."""
    model = tiny_model()
    updates = PairUpdates(*random_pairs(8), size=8, parts=parts)
    alone = list(pair_losses(model, updates, smoothing))
    mean = torch.stack([loss for loss, _ in alone]).sum() / sum(tokens for _, tokens in alone)
    names = [name for name, _ in model.named_parameters()]
    expected = dict(zip(names, torch.autograd.grad(mean, list(model.parameters())), strict=True))
    harness = TrainerHarness(model, updates, steps=1, label_smoothing=smoothing, clip_norm=None)
    caught = record_gradients(harness)
    harness.trainer.run()
    (found,) = caught
    assert found.keys() == expected.keys()
    assert_close(found, expected, dtype=torch.float32)


@pytest.mark.parametrize("parts", [1, 3])
def test_a_log_point_is_the_mean_over_the_target_tokens_of_all_its_updates(parts: int) -> None:
    updates = PairUpdates(*random_pairs(13), size=5, parts=parts)  # 5, 5 and 3 pairs
    harness = TrainerHarness(
        tiny_model(), updates, steps=6, log_every=3, learning_rate=NO_CHANGE, label_smoothing=0.1
    )
    harness.trainer.run()
    for smoothing, found in ((0.1, "loss"), (0.0, "nll")):
        pairs = list(pair_losses(harness.model, updates, smoothing))
        expected = sum(float(loss.detach()) for loss, _ in pairs) / sum(tokens for _, tokens in pairs)
        assert [getattr(report, found) for report in harness.listener.steps] == approx([expected] * 2)


def test_a_logging_window_crosses_the_end_of_an_epoch() -> None:
    updates = PairUpdates(*random_pairs(15), size=5)
    harness = TrainerHarness(tiny_model(), updates, steps=12, log_every=4, learning_rate=NO_CHANGE)
    every_step = TrainerHarness(tiny_model(), updates, steps=12, log_every=1, learning_rate=NO_CHANGE)
    harness.trainer.run()
    every_step.trainer.run()
    plan = [pairs for epoch in range(4) for pairs in updates.epoch(epoch)]
    tokens = [updates.batch(pairs).target_tokens for pairs in plan]
    for index, report in enumerate(harness.listener.steps):
        window = range(4 * index, 4 * index + 4)
        expected = sum(every_step.listener.steps[i].loss * tokens[i] for i in window) / sum(
            tokens[i] for i in window
        )
        assert report.loss == approx(expected)
        norms = [every_step.listener.steps[i].gradient_norm for i in window]
        assert report.gradient_norm == approx(sum(norms) / 4)


def test_gradients_are_clipped_and_the_norm_before_clipping_is_reported() -> None:
    free, clipped = (
        TrainerHarness(tiny_model(), steps=3, clip_norm=None),
        TrainerHarness(tiny_model(), steps=3, clip_norm=1e-3),
    )
    whole, cut = record_gradients(free), record_gradients(clipped)
    free.trainer.run()
    clipped.trainer.run()
    norms = [math.sqrt(sum(float(gradient.square().sum()) for gradient in row.values())) for row in whole]
    assert [report.gradient_norm for report in free.listener.steps] == approx(norms)
    assert clipped.listener.steps[0].gradient_norm == approx(norms[0])
    expected = {name: gradient * (1e-3 / norms[0]) for name, gradient in whole[0].items()}
    assert_close(cut[0], expected, dtype=torch.float32)


def test_gradients_are_not_carried_over_into_the_next_update() -> None:
    updates = PairUpdates(*random_pairs(4), size=4)
    harness = TrainerHarness(tiny_model(), updates, steps=3, learning_rate=NO_CHANGE, clip_norm=None)
    caught = record_gradients(harness)
    harness.trainer.run()
    assert_close(caught[2], caught[0], dtype=torch.float32)


# --- learning rates, epochs and logging ---


def test_every_update_has_the_rate_of_its_own_step() -> None:
    harness = TrainerHarness(steps=9, schedule="linear", warmup_steps=3, learning_rate=0.01)
    used: list[float] = []
    harness.trainer.updater.optimizer.register_step_pre_hook(
        lambda *_: used.append(harness.trainer.updater.optimizer.param_groups[0]["lr"])
    )
    harness.trainer.run()
    expected = [harness.trainer.schedule.rate(step, 9) for step in range(1, 10)]
    assert used == expected == [report.learning_rate for report in harness.listener.steps]
    assert used[2] == 0.01


def test_muon_moves_matrices_at_a_multiple_of_the_rate() -> None:
    harness = TrainerHarness(
        steps=4, optimizer="muon", muon_factor=7.0, schedule="linear", warmup_steps=2, log_every=1
    )
    groups = harness.trainer.updater.optimizer.param_groups
    used: list[list[float]] = []
    harness.trainer.updater.optimizer.register_step_pre_hook(
        lambda *_: used.append([group["lr"] for group in groups])
    )
    harness.trainer.run()
    assert used == [
        [7 * rate, 7 * rate, rate] for rate in (report.learning_rate for report in harness.listener.steps)
    ]


def test_logging_and_saving_happen_at_their_steps_and_at_the_end() -> None:
    harness = TrainerHarness(steps=15, log_every=4, save_every=6)
    harness.trainer.run()
    assert [report.step for report in harness.listener.steps] == [4, 8, 12, 15]
    assert harness.saved_steps == [report.step for report in harness.listener.validations] == [6, 12, 15]
    assert harness.trainer.progress.step == 15


def test_a_number_of_epochs_takes_precedence_over_steps() -> None:
    updates = PairUpdates(*random_pairs(13), size=5)
    harness = TrainerHarness(updates=updates, steps=100, epochs=4)
    harness.trainer.run()
    assert harness.trainer.progress.step == harness.trainer.progress.total_steps == 12
    assert [report.epoch for report in harness.listener.steps][:4] == pytest.approx([1 / 3, 2 / 3, 1, 4 / 3])


def test_every_pair_is_seen_once_an_epoch_in_the_order_of_the_plan() -> None:
    seen: list[list[int]] = []

    class RecordingUpdates(PairUpdates):
        def batches(self, epoch: int, position: int, pairs: NDArray[np.int64]) -> list[Batch]:
            seen.append(pairs.tolist())
            return super().batches(epoch, position, pairs)

    updates = RecordingUpdates(*random_pairs(13), size=5)
    TrainerHarness(updates=updates, epochs=2).trainer.run()
    assert seen[0] == updates.epoch(0)[updates.heaviest()].tolist(), "a trial"
    assert seen[1:] == [pairs.tolist() for epoch in range(2) for pairs in updates.epoch(epoch)]


@pytest.mark.parametrize("step", [3, 4, 5])  # 4 is a save of its own, 5 the end of an epoch
def test_a_stop_request_saves_one_checkpoint_and_training_resumes_from_it(step: int) -> None:
    def make() -> TrainerHarness:
        return TrainerHarness(
            tiny_model(dropout=0.3), PairUpdates(*random_pairs(23), size=5), steps=8, save_every=4, log_every=3
        )

    whole = make()
    whole.trainer.run()
    first = make()
    first.trainer.run(stop=lambda: first.trainer.progress.step >= step)
    assert first.saved_steps == sorted({4, step} if step >= 4 else {step})
    snapshot, best = first.saved[-1]
    assert not best
    assert snapshot.state["progress"]["pending"] == (step == 4), "its validation is made when training resumes"
    second = make()
    second.resume(first.storage)
    second.trainer.run()
    assert logged_figures(first) + logged_figures(second) == logged_figures(whole)
    assert all(torch.equal(tensor, weights(whole.model)[name]) for name, tensor in weights(second.model).items())


def test_running_a_finished_trainer_again_computes_nothing() -> None:
    harness = TrainerHarness(steps=3)
    harness.trainer.run()
    before = weights(harness.model)
    computed: list[object] = []
    harness.trainer.updater.objective.register_forward_pre_hook(lambda *_: computed.append(1))
    harness.trainer.run()
    assert computed == [], "not even a trial"
    assert harness.saved_steps == [3]
    assert all(torch.equal(before[name], tensor) for name, tensor in weights(harness.model).items())


def test_speed_and_padding_are_reported(clock: Clock) -> None:
    updates = PairUpdates([[4], [4] * 5], [[5] * 3, [5] * 7], size=2)
    harness = clock.harness(0.5, updates=updates, steps=12, log_every=4)
    harness.trainer.run()
    first = harness.listener.steps[0]
    assert first.source_tokens_per_second == pytest.approx(8 / 0.5)
    assert first.target_tokens_per_second == pytest.approx(12 / 0.5)
    assert first.padding == pytest.approx(1 - (8 + 12) / (2 * 6 + 2 * 8))
    assert (first.seconds, first.seconds_left) == pytest.approx((2.0, 4.0))


def test_the_estimated_time_left_follows_the_speed_of_the_last_minute(clock: Clock) -> None:
    harness = clock.idle_harness(lambda update: 0.5 if update <= 100 else 5.0, steps=200, log_every=20)
    harness.trainer.run()
    left = {report.step: report.seconds_left for report in harness.listener.steps}
    assert left[100] == pytest.approx(100 * 0.5)
    assert left[140] == within(60 * 5.0, 0.05 * 60 * 5.0), "200 seconds after the machine became slower"


# --- validation, the best checkpoint, patience ---


def test_validation_runs_in_evaluation_and_inference_mode() -> None:
    modes: list[tuple[bool, bool, bool]] = []

    def validate(step: int) -> ValidationReport:
        modes.append((harness.model.training, torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
        return validation_report(step, 1.0)

    harness = TrainerHarness(tiny_model(dropout=0.3), validate=validate, steps=4, save_every=2)
    harness.model.eval()
    training: list[bool] = []
    harness.trainer.updater.optimizer.register_step_pre_hook(lambda *_: training.append(harness.model.training))
    harness.trainer.run()
    assert modes == [(False, False, True)] * 2
    assert training == [True] * 4


def test_a_long_sentence_in_validation_does_not_stop_training() -> None:
    """The sentence extends the table of positions, in inference mode."""

    def validate(step: int) -> ValidationReport:
        harness.model(torch.full((1, 600), 5), torch.full((1, 600), 5))
        return validation_report(step, 1.0)

    harness = TrainerHarness(validate=validate, steps=4, save_every=2)
    harness.trainer.run()
    assert harness.trainer.progress.step == 4


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("loss", [True, True, False, False]),
        ("bleu", [True, False, True, False]),
        ("chrf", [True, True, True, False]),
    ],
)
def test_the_best_checkpoint_is_chosen_by_the_metric(metric: str, expected: list[bool]) -> None:
    figures = {1: (2.0, 10.0, 30.0), 2: (1.5, 9.0, 31.0), 3: (1.6, 12.0, 32.0), 4: (1.5, 12.0, 32.0)}
    harness = TrainerHarness(
        validate=lambda step: validation_report(step, *figures[step]), steps=4, save_every=1, metric=metric
    )
    harness.trainer.run()
    assert (
        [best for _, best in harness.saved] == expected == [report.best for report in harness.listener.validations]
    )
    assert harness.trainer.progress.best_step == max(step for step in figures if expected[step - 1])
    best = {"loss": -1.5, "bleu": 12.0, "chrf": 32.0}[metric]
    assert harness.trainer.progress.best == best


def test_training_stops_when_patience_runs_out() -> None:
    losses = [3.0, 2.0, 2.5, 1.9, 2.0, 1.9, 0.1]
    harness = TrainerHarness(
        validate=lambda step: validation_report(step, losses[step - 1]), steps=7, save_every=1, patience=2
    )
    harness.trainer.run()
    progress = harness.trainer.progress
    assert (progress.step, progress.best_step, progress.stopped_early) == (6, 4, True)
    assert harness.saved_steps == [1, 2, 3, 4, 5, 6]
    assert harness.saved[-1][0].state["progress"]["stopped_early"]


@pytest.mark.parametrize("metric", ["loss", "bleu"])
def test_a_plateau_of_the_validation_loss_lowers_the_rate(metric: str) -> None:
    """The metric that chooses the best checkpoint has no influence."""
    settings = {"schedule": "plateau", "plateau_patience": 2, "warmup_steps": 1}
    harness = TrainerHarness(
        validate=lambda step: validation_report(step, 1.0, bleu=30.0 - step),
        steps=6,
        save_every=1,
        learning_rate=0.08,
        metric=metric,
        **settings,
    )
    harness.trainer.run()
    rates = [report.learning_rate for report in harness.listener.steps]
    assert rates == pytest.approx([0.08, 0.08, 0.08, 0.072, 0.072, 0.0648])


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
def test_a_metric_that_was_not_measured_is_named(metric: str) -> None:
    harness = TrainerHarness(validate=lambda step: validation_report(step, 1.0), steps=1, metric=metric)
    with pytest.raises(TrainingError, match=rf'training\.metric = "{metric}" needs decoded sentences'):
        harness.trainer.run()


@pytest.mark.parametrize("loss", [math.nan, math.inf])
@pytest.mark.parametrize("metric", ["loss", "bleu"])
def test_a_validation_loss_that_is_not_finite_is_neither_best_nor_saved(loss: float, metric: str) -> None:
    harness = TrainerHarness(
        validate=lambda step: validation_report(step, 1.0 if step == 1 else loss, 5.0),
        steps=2,
        save_every=1,
        metric=metric,
    )
    with pytest.raises(TrainingError, match="the validation loss at step 2 is"):
        harness.trainer.run()
    assert harness.saved_steps == [1]


# --- gradients that are not finite ---


def test_an_update_without_a_finite_gradient_is_not_applied_but_counted() -> None:
    harness = TrainerHarness(steps=5)
    make_gradients_nan(harness, {3})
    after: dict[int, dict[str, Tensor]] = {}
    report_step = harness.listener.step

    def record_weights(report: StepReport) -> None:
        after[report.step] = weights(harness.model)
        report_step(report)

    harness.listener.step = record_weights  # type: ignore[method-assign]
    harness.trainer.run()
    assert all(torch.equal(after[2][name], after[3][name]) for name in after[2])
    assert not any(
        torch.equal(after[3][name], after[4][name]) for name in ("decoder_norm.weight", "decoder_norm.bias")
    )
    assert [report.skipped for report in harness.listener.steps] == [0, 0, 1, 1, 1]
    (message,) = harness.listener.messages
    assert "step 3: the gradient is not finite" in message
    assert harness.updates.describe(harness.updates.epoch(0)[2]) in message
    ((moments, _),) = harness.saved
    assert moments.optimizer["decoder_norm.weight.step"] == 4, "the moments are not updated either"


def test_a_log_point_leaves_out_values_that_are_not_finite() -> None:
    harness = TrainerHarness(steps=6, log_every=3)
    make_gradients_nan(harness, {2, 4, 5, 6})
    harness.trainer.run()
    first, second = harness.listener.steps
    assert math.isfinite(first.gradient_norm)
    assert math.isnan(second.gradient_norm)
    assert math.isfinite(second.loss)


def test_a_log_point_without_finite_values_is_nan() -> None:
    harness = TrainerHarness(steps=4, log_every=2, save_every=1)
    with torch.no_grad():
        harness.model.output.bias[5] = math.nan
    harness.trainer.run()
    assert all(math.isnan(report.loss) and math.isnan(report.nll) for report in harness.listener.steps)
    assert all(json.dumps(snapshot.state, allow_nan=False) for snapshot, _ in harness.saved)


def test_training_ends_with_an_error_after_too_many_updates_without_a_finite_gradient() -> None:
    harness = TrainerHarness(steps=100)
    make_gradients_nan(harness, set(range(3, 1_000)))
    with pytest.raises(
        TrainingError, match=rf"{_MOST_SKIPPED} updates in a row .* up to step {2 + _MOST_SKIPPED} "
    ) as caught:
        harness.trainer.run()
    progress = harness.trainer.progress
    pairs = harness.updates.epoch(progress.epoch)[progress.position]
    assert harness.updates.describe(pairs) in str(caught.value)
    assert all(tensor.isfinite().all() for tensor in weights(harness.model).values())
    assert harness.saved == []


def test_a_finite_gradient_resets_the_count_of_skipped_updates() -> None:
    harness = TrainerHarness(steps=2 * _MOST_SKIPPED + 1)
    make_gradients_nan(harness, set(range(1, _MOST_SKIPPED)) | set(range(_MOST_SKIPPED + 1, 2 * _MOST_SKIPPED)))
    harness.trainer.run()
    assert harness.trainer.progress.skipped == 2 * _MOST_SKIPPED - 2


# --- a diverging loss ---


def test_a_diverging_loss_is_reported_and_training_continues() -> None:
    harness = TrainerHarness(steps=12, save_every=4, log_every=2)
    seen: list[int] = []

    def observe(loss: float) -> bool:
        seen.append(harness.trainer.progress.step)
        return seen[-1] == 6

    harness.trainer.divergence.observe = observe  # type: ignore[method-assign]
    harness.trainer.run()
    assert seen == [2, 4, 6, 8, 10, 12]
    (message,) = harness.listener.messages
    assert message.startswith("warning: step 6: the loss is")


# --- requests to save ---


def test_a_request_to_save_writes_a_checkpoint_and_training_continues() -> None:
    harness = TrainerHarness(steps=9, save_every=4)
    requests = iter([False, True, False, True, False, True, False, False, False])
    harness.trainer.run(save_now=lambda: next(requests))
    assert harness.saved_steps == [2, 4, 6, 8, 9], "4 is saved anyway"
    assert [best for _, best in harness.saved] == [False, True, False, True, True]


# --- resuming ---


def train_with_interruption(folder: Path, make: Callable[[], TrainerHarness], cut: int) -> TrainerHarness:
    """Train to the end with an interruption after `cut` steps, resuming from the checkpoint on disk."""
    run = TrainingRun(folder)
    first = make()
    first.trainer.storage = RunStorage(run, first.config, ALONE, first.listener)
    first.listener.step = lambda report: stop() if report.step > cut else first.listener.steps.append(report)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        first.trainer.run()
    torch.manual_seed(99)
    torch.randn(31)
    second = make()
    checkpoint = run.checkpoints.read(cut)
    second.trainer.restore(Snapshot(checkpoint.model, checkpoint.optimizer, checkpoint.state))
    second.listener.steps += [report for report in first.listener.steps if report.step <= cut]
    second.trainer.run()
    return second


@pytest.mark.parametrize(
    ("cut", "settings"),  # 3 is the end of an epoch
    [
        (3, {"optimizer": "adam"}),
        (1, {"optimizer": "adamw"}),
        (6, {"optimizer": "muon", "layer_decay": 0.7}),
        (7, {"optimizer": "adamw", "lora_rank": 2}),
    ],
    ids=["adam", "adamw", "muon, by layer", "lora"],
)
def test_interrupted_and_resumed_training_equals_uninterrupted_training(
    tmp_path: Path, cut: int, settings: dict[str, Any]
) -> None:
    """Invariant J: weights, moments and losses are equal bit for bit, also with dropout and moving averages."""

    def make() -> TrainerHarness:
        torch.manual_seed(7)
        return TrainerHarness(
            tiny_model(dropout=0.3),
            PairUpdates(*random_pairs(14), size=5, parts=2),
            validate=lambda step: validation_report(step, [3.0, 2.0, 2.5][step // 3 % 3]),
            steps=12,
            save_every=cut,
            log_every=2,
            weight_decay=0.1,
            schedule="plateau",
            plateau_patience=1,
            patience=11,
            ema=0.8,
            **settings,
        )

    whole = make()
    whole.trainer.run()
    resumed = train_with_interruption(tmp_path, make, cut)
    expected, found = whole.trainer.snapshot(), resumed.trainer.snapshot()
    for part in ("model", "optimizer"):
        expected_part, found_part = getattr(expected, part), getattr(found, part)
        assert expected_part.keys() == found_part.keys()
        assert all(torch.equal(tensor, found_part[name]) for name, tensor in expected_part.items())
    for state in (expected.state, found.state):
        state["progress"].pop("seconds")
        state["progress"].pop("recent_seconds")
        state["window"].pop("seconds")
    assert expected.state == found.state
    published, expected_weights = resumed.trainer.published_weights(), whole.trainer.published_weights()
    assert all(torch.equal(tensor, published[name]) for name, tensor in expected_weights.items())
    assert logged_figures(whole) == logged_figures(resumed)


def test_dropout_differs_from_update_to_update() -> None:
    """Otherwise the test above could not detect a generator that is not restored."""
    updates = PairUpdates(*random_pairs(4), size=4)
    harness = TrainerHarness(tiny_model(dropout=0.3), updates, steps=3, learning_rate=NO_CHANGE)
    harness.trainer.run()
    assert len({report.loss for report in harness.listener.steps}) == 3


def test_training_resumes_with_more_steps() -> None:
    first = TrainerHarness(steps=4, save_every=2)
    first.trainer.run()
    second = TrainerHarness(first.model, steps=6)
    second.trainer.restore(first.trainer.snapshot())
    second.trainer.run()
    assert second.trainer.progress.step == 6


def test_a_restored_trainer_keeps_its_number_format() -> None:
    """A second measurement could choose another format."""
    first, second = TrainerHarness(), TrainerHarness()
    first.trainer.updater.precision = "bf16"
    second.trainer.restore(first.trainer.snapshot())
    assert second.trainer.updater.precision == "bf16"


def test_training_that_stopped_early_resumes_with_more_patience() -> None:
    first = TrainerHarness(validate=lambda step: validation_report(step, step), steps=9, save_every=1, patience=2)
    first.trainer.run()
    assert first.trainer.progress.step == 3
    second = TrainerHarness(
        first.model, steps=9, patience=4, save_every=1, validate=lambda step: validation_report(step, step)
    )
    second.trainer.restore(first.trainer.snapshot())
    second.trainer.run()
    assert second.trainer.progress.step == 5


def test_the_doctor_that_watches_a_training_finds_nothing() -> None:
    """The heaviest batch is tried before the first update, micro-batches are added up, and weights are averaged."""
    harness = TrainerHarness(steps=20, ema=0.9, save_every=7, warmup_steps=4)
    told: list[str] = []
    with watch(
        harness.model, harness.trainer.updater.optimizer, pad=PAD, on_finding=lambda f: told.append(f.name)
    ) as watched:
        harness.trainer.run()
    assert not told
    assert "gradients arrive, add up, are clipped and are cleared in the right order" in watched.report.asked
