"""The loop: what an update is, when it logs, validates, saves and stops, and that it goes on bit for bit."""

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
from tests.training.clock import Clock
from tests.training.parts import (
    BOS,
    EOS,
    PAD,
    Bench,
    PairUpdates,
    pair_losses,
    random_pairs,
    scored,
    steps_told,
    tiny_model,
    weights,
)
from torch import Tensor

from manyheads.checkpoint import RunDirectory
from manyheads.checkpoint.weights import load_weights
from manyheads.data.batch import Batch, make_batch
from manyheads.errors import TrainingError
from manyheads.runs.resume import RunStorage
from manyheads.training.distributed import ALONE
from manyheads.training.log import StepReport, ValidationReport
from manyheads.training.objective import translation_loss
from manyheads.training.snapshot import published_weights
from manyheads.training.trainer import MOST_SKIPPED

STILL = 1e-30  # a learning rate that moves nothing


def stop() -> None:
    raise KeyboardInterrupt


def caught_gradients(bench: Bench) -> list[dict[str, Tensor]]:
    """The gradients each update of the bench is about to apply."""
    caught: list[dict[str, Tensor]] = []

    def catch(*_: object) -> None:
        caught.append({name: p.grad.clone() for name, p in bench.model.named_parameters() if p.grad is not None})

    bench.trainer.updater.optimizer.register_step_pre_hook(catch)
    return caught


def poison(bench: Bench, updates: set[int]) -> None:
    """Make one gradient of these updates (the first is 1) not finite."""
    counter = itertools.count(0)  # 0 is the trial of the heaviest update

    def spoil(gradient: Tensor) -> Tensor:
        return gradient * math.nan if next(counter) in updates else gradient

    bench.model.decoder_norm.bias.register_hook(spoil)


# --- the loss and its gradient ---


def test_padding_and_the_batch_around_a_pair_do_not_change_its_loss() -> None:
    model, updates = tiny_model(), PairUpdates(*random_pairs(11))
    loss, nll = translation_loss(model, updates.batch(range(11)), 0.1)
    for found, smoothing in ((loss, 0.1), (nll, 0.0)):
        expected = sum(one for one, _ in pair_losses(model, updates, smoothing))
        torch.testing.assert_close(found.double(), expected, rtol=1e-6, atol=0.0)


def test_the_first_target_token_is_trained() -> None:
    """Its loss, from the begin mark alone, is part of the sum: defect 1 of the museum."""
    model = tiny_model()
    source, target = [[5, 6]], [[9, 7]]
    loss, _ = translation_loss(model, make_batch(source, target, pad=PAD, bos=BOS, eos=EOS), 0.0)
    log_probs = model(torch.tensor([[5, 6, EOS]]), torch.tensor([[BOS, 9, 7]])).log_softmax(-1)[0]
    expected = -(log_probs[0, 9] + log_probs[1, 7] + log_probs[2, EOS])
    torch.testing.assert_close(loss.double(), expected, rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_an_update_in_parts_has_the_gradient_of_one_batch(smoothing: float, parts: int) -> None:
    """Invariant I: the sum over target tokens divided by their number in the whole update."""
    model = tiny_model()
    updates = PairUpdates(*random_pairs(8), size=8, parts=parts)
    alone = list(pair_losses(model, updates, smoothing))
    mean = torch.stack([loss for loss, _ in alone]).sum() / sum(tokens for _, tokens in alone)
    names = [name for name, _ in model.named_parameters()]
    expected = dict(zip(names, torch.autograd.grad(mean, list(model.parameters())), strict=True))
    bench = Bench(model, updates, steps=1, label_smoothing=smoothing, clip_norm=None)
    caught = caught_gradients(bench)
    bench.trainer.run()
    (found,) = caught
    assert found.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-6, atol=2e-8)


@pytest.mark.parametrize("parts", [1, 3])
def test_a_log_point_is_the_mean_over_the_target_tokens_of_all_its_updates(parts: int) -> None:
    updates = PairUpdates(*random_pairs(13), size=5, parts=parts)  # 5, 5 and 3 pairs
    bench = Bench(tiny_model(), updates, steps=6, log_every=3, learning_rate=STILL, label_smoothing=0.1)
    bench.trainer.run()
    for smoothing, found in ((0.1, "loss"), (0.0, "nll")):
        pairs = list(pair_losses(bench.model, updates, smoothing))
        expected = sum(float(loss.detach()) for loss, _ in pairs) / sum(tokens for _, tokens in pairs)
        assert [getattr(report, found) for report in bench.listener.steps] == pytest.approx(
            [expected] * 2, rel=1e-6
        )


def test_a_window_that_crosses_the_end_of_an_epoch_is_not_cut() -> None:
    updates = PairUpdates(*random_pairs(15), size=5)
    bench = Bench(tiny_model(), updates, steps=12, log_every=4, learning_rate=STILL)
    each = Bench(tiny_model(), updates, steps=12, log_every=1, learning_rate=STILL)
    bench.trainer.run()
    each.trainer.run()
    plan = [pairs for epoch in range(4) for pairs in updates.epoch(epoch)]
    tokens = [updates.batch(pairs).target_tokens for pairs in plan]
    for place, report in enumerate(bench.listener.steps):
        window = range(4 * place, 4 * place + 4)
        expected = sum(each.listener.steps[i].loss * tokens[i] for i in window) / sum(tokens[i] for i in window)
        assert report.loss == pytest.approx(expected, rel=1e-6)
        norms = [each.listener.steps[i].gradient_norm for i in window]
        assert report.gradient_norm == pytest.approx(sum(norms) / 4, rel=1e-6)


def test_gradients_are_clipped_and_the_norm_before_is_told() -> None:
    free, clipped = Bench(tiny_model(), steps=3, clip_norm=None), Bench(tiny_model(), steps=3, clip_norm=1e-3)
    whole, cut = caught_gradients(free), caught_gradients(clipped)
    free.trainer.run()
    clipped.trainer.run()
    norms = [math.sqrt(sum(float(gradient.square().sum()) for gradient in row.values())) for row in whole]
    assert [report.gradient_norm for report in free.listener.steps] == pytest.approx(norms, rel=1e-6)
    assert clipped.listener.steps[0].gradient_norm == pytest.approx(norms[0], rel=1e-6)
    for name, gradient in cut[0].items():
        torch.testing.assert_close(gradient, whole[0][name] * (1e-3 / norms[0]), rtol=1e-4, atol=1e-12)


def test_gradients_do_not_run_over_into_the_next_update() -> None:
    updates = PairUpdates(*random_pairs(4), size=4)
    bench = Bench(tiny_model(), updates, steps=3, learning_rate=STILL, clip_norm=None)
    caught = caught_gradients(bench)
    bench.trainer.run()
    for name, first in caught[0].items():
        torch.testing.assert_close(caught[2][name], first, rtol=1e-5, atol=1e-7)


def test_training_lowers_the_loss_on_what_it_trains_on(training_seed: int) -> None:
    updates = PairUpdates(*random_pairs(6, training_seed), size=6)
    bench = Bench(tiny_model(training_seed), updates, steps=60, learning_rate=0.02)
    bench.trainer.run()
    assert bench.listener.steps[-1].nll < 0.3 * bench.listener.steps[0].nll


# --- the plan ---


def test_every_update_has_the_rate_of_its_own_step() -> None:
    bench = Bench(steps=9, schedule="linear", warmup_steps=3, learning_rate=0.01)
    used: list[float] = []
    bench.trainer.updater.optimizer.register_step_pre_hook(
        lambda *_: used.append(bench.trainer.updater.optimizer.param_groups[0]["lr"])
    )
    bench.trainer.run()
    expected = [bench.trainer.schedule.rate(step, 9) for step in range(1, 10)]
    assert used == expected == [report.learning_rate for report in bench.listener.steps]
    assert used[2] == 0.01


def test_muon_moves_matrices_at_a_multiple_of_the_rate() -> None:
    bench = Bench(steps=4, optimizer="muon", muon_factor=7.0, schedule="linear", warmup_steps=2, log_every=1)
    groups = bench.trainer.updater.optimizer.param_groups
    used: list[list[float]] = []
    bench.trainer.updater.optimizer.register_step_pre_hook(
        lambda *_: used.append([group["lr"] for group in groups])
    )
    bench.trainer.run()
    assert used == [
        [7 * rate, 7 * rate, rate] for rate in (report.learning_rate for report in bench.listener.steps)
    ]


def test_log_and_save_points_come_at_their_steps_and_at_the_end() -> None:
    bench = Bench(steps=15, log_every=4, save_every=6)
    bench.trainer.run()
    assert [report.step for report in bench.listener.steps] == [4, 8, 12, 15]
    assert bench.saved_steps == [report.step for report in bench.listener.validations] == [6, 12, 15]
    assert bench.trainer.progress.step == 15


def test_epochs_replace_steps() -> None:
    updates = PairUpdates(*random_pairs(13), size=5)
    bench = Bench(updates=updates, steps=100, epochs=4)
    bench.trainer.run()
    assert bench.trainer.progress.step == bench.trainer.progress.total_steps == 12
    assert [report.epoch for report in bench.listener.steps][:4] == pytest.approx([1 / 3, 2 / 3, 1, 4 / 3])


def test_every_pair_is_seen_once_an_epoch_in_the_order_of_the_plan() -> None:
    seen: list[list[int]] = []

    class Watched(PairUpdates):
        def batches(self, epoch: int, position: int, pairs: NDArray[np.int64]) -> list[Batch]:
            seen.append(pairs.tolist())
            return super().batches(epoch, position, pairs)

    updates = Watched(*random_pairs(13), size=5)
    Bench(updates=updates, epochs=2).trainer.run()
    assert seen[0] == updates.epoch(0)[updates.heaviest()].tolist(), "a trial"
    assert seen[1:] == [pairs.tolist() for epoch in range(2) for pairs in updates.epoch(epoch)]


@pytest.mark.parametrize("step", [3, 4, 5])  # 4 is a save of its own, 5 the end of an epoch
def test_when_it_is_asked_to_stop_it_saves_once_and_goes_on_from_there(step: int) -> None:
    def make() -> Bench:
        return Bench(
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
    second.storage.saved = first.storage.saved
    assert second.storage.go_back(second.trainer)
    second.trainer.run()
    assert steps_told(first) + steps_told(second) == steps_told(whole)
    assert all(torch.equal(tensor, weights(whole.model)[name]) for name, tensor in weights(second.model).items())


def test_a_finished_trainer_does_nothing_more() -> None:
    bench = Bench(steps=3)
    bench.trainer.run()
    before = weights(bench.model)
    computed: list[object] = []
    bench.trainer.updater.objective.register_forward_pre_hook(lambda *_: computed.append(1))
    bench.trainer.run()
    assert computed == [], "not even a trial"
    assert bench.saved_steps == [3]
    assert all(torch.equal(before[name], tensor) for name, tensor in weights(bench.model).items())


def test_figures_of_speed_and_padding(clock: Clock) -> None:
    updates = PairUpdates([[4], [4] * 5], [[5] * 3, [5] * 7], size=2)
    bench = clock.bench(0.5, updates=updates, steps=12, log_every=4)
    bench.trainer.run()
    first = bench.listener.steps[0]
    assert first.source_tokens_per_second == pytest.approx(8 / 0.5)
    assert first.target_tokens_per_second == pytest.approx(12 / 0.5)
    assert first.padding == pytest.approx(1 - (8 + 12) / (2 * 6 + 2 * 8))
    assert (first.seconds, first.seconds_left) == pytest.approx((2.0, 4.0))


def test_the_time_left_follows_the_speed_of_the_last_minute(clock: Clock) -> None:
    bench = clock.idle_bench(lambda update: 0.5 if update <= 100 else 5.0, steps=200, log_every=20)
    bench.trainer.run()
    left = {report.step: report.seconds_left for report in bench.listener.steps}
    assert left[100] == pytest.approx(100 * 0.5)
    assert left[140] == pytest.approx(60 * 5.0, rel=0.05), "200 seconds after the machine became slower"


# --- validation, the best, patience ---


def test_validation_sees_a_model_that_does_not_train() -> None:
    modes: list[tuple[bool, bool, bool]] = []

    def validate(step: int) -> ValidationReport:
        modes.append((bench.model.training, torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
        return scored(step, 1.0)

    bench = Bench(tiny_model(dropout=0.3), validate=validate, steps=4, save_every=2)
    bench.model.eval()
    training: list[bool] = []
    bench.trainer.updater.optimizer.register_step_pre_hook(lambda *_: training.append(bench.model.training))
    bench.trainer.run()
    assert modes == [(False, False, True)] * 2
    assert training == [True] * 4


def test_a_long_sentence_in_validation_does_not_stop_training() -> None:
    """It lengthens the table of positions, in inference mode."""

    def validate(step: int) -> ValidationReport:
        bench.model(torch.full((1, 600), 5), torch.full((1, 600), 5))
        return scored(step, 1.0)

    bench = Bench(validate=validate, steps=4, save_every=2)
    bench.trainer.run()
    assert bench.trainer.progress.step == 4


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("loss", [True, True, False, False]),
        ("bleu", [True, False, True, False]),
        ("chrf", [True, True, True, False]),
    ],
)
def test_the_best_is_chosen_by_the_metric(metric: str, expected: list[bool]) -> None:
    figures = {1: (2.0, 10.0, 30.0), 2: (1.5, 9.0, 31.0), 3: (1.6, 12.0, 32.0), 4: (1.5, 12.0, 32.0)}
    bench = Bench(validate=lambda step: scored(step, *figures[step]), steps=4, save_every=1, metric=metric)
    bench.trainer.run()
    assert [best for _, best in bench.saved] == expected == [report.best for report in bench.listener.validations]
    assert bench.trainer.progress.best_step == max(step for step in figures if expected[step - 1])
    best = {"loss": -1.5, "bleu": 12.0, "chrf": 32.0}[metric]
    assert bench.trainer.progress.best == best


def test_a_report_reaches_the_listener_unchanged_but_for_the_best() -> None:
    bench = Bench(validate=lambda step: scored(step, 2.0, 11.0, 22.0), steps=1)
    bench.trainer.run()
    (found,) = bench.listener.validations
    assert (found.step, found.loss, found.perplexity, *found.scores.values(), found.best) == (
        1, 2.0, pytest.approx(math.exp(2)), 11.0, 22.0, True,
    )  # fmt: skip


def test_training_stops_when_patience_runs_out() -> None:
    losses = [3.0, 2.0, 2.5, 1.9, 2.0, 1.9, 0.1]
    bench = Bench(validate=lambda step: scored(step, losses[step - 1]), steps=7, save_every=1, patience=2)
    bench.trainer.run()
    progress = bench.trainer.progress
    assert (progress.step, progress.best_step, progress.stopped_early) == (6, 4, True)
    assert bench.saved_steps == [1, 2, 3, 4, 5, 6]
    assert bench.saved[-1][0].state["progress"]["stopped_early"]


def test_without_patience_training_goes_to_the_end() -> None:
    bench = Bench(validate=lambda step: scored(step, step), steps=5, save_every=1)
    bench.trainer.run()
    assert (bench.trainer.progress.step, bench.trainer.progress.stopped_early) == (5, False)


@pytest.mark.parametrize("metric", ["loss", "bleu"])
def test_a_plateau_of_the_validation_loss_lowers_the_rate(metric: str) -> None:
    """Whatever the best is chosen by, and however that moves."""
    settings = {"schedule": "plateau", "plateau_patience": 2, "plateau_factor": 0.5, "warmup_steps": 1}
    bench = Bench(
        validate=lambda step: scored(step, 1.0, bleu=30.0 - step),
        steps=6,
        save_every=1,
        learning_rate=0.08,
        metric=metric,
        **settings,
    )
    bench.trainer.run()
    rates = [report.learning_rate for report in bench.listener.steps]
    assert rates == pytest.approx([0.08, 0.08, 0.08, 0.04, 0.04, 0.02])


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
def test_a_metric_that_was_not_measured_is_named(metric: str) -> None:
    bench = Bench(validate=lambda step: scored(step, 1.0), steps=1, metric=metric)
    with pytest.raises(TrainingError, match=rf'training\.metric = "{metric}" needs decoded sentences'):
        bench.trainer.run()


@pytest.mark.parametrize("loss", [math.nan, math.inf])
@pytest.mark.parametrize("metric", ["loss", "bleu"])
def test_a_validation_loss_that_is_not_finite_is_neither_best_nor_saved(loss: float, metric: str) -> None:
    bench = Bench(
        validate=lambda step: scored(step, 1.0 if step == 1 else loss, 5.0), steps=2, save_every=1, metric=metric
    )
    with pytest.raises(TrainingError, match="the validation loss at step 2 is"):
        bench.trainer.run()
    assert bench.saved_steps == [1]


# --- gradients that are not finite ---


def test_an_update_without_a_finite_gradient_is_not_applied_but_counted() -> None:
    bench = Bench(steps=5)
    poison(bench, {3})
    after: dict[int, dict[str, Tensor]] = {}
    tell = bench.listener.step

    def note(report: StepReport) -> None:
        after[report.step] = weights(bench.model)
        tell(report)

    bench.listener.step = note  # type: ignore[method-assign]
    bench.trainer.run()
    assert all(torch.equal(after[2][name], after[3][name]) for name in after[2])
    assert not any(
        torch.equal(after[3][name], after[4][name]) for name in ("decoder_norm.weight", "decoder_norm.bias")
    )
    assert [report.skipped for report in bench.listener.steps] == [0, 0, 1, 1, 1]
    (message,) = bench.listener.messages
    assert "step 3: the gradient is not finite" in message
    assert bench.updates.describe(bench.updates.epoch(0)[2]) in message
    ((moments, _),) = bench.saved
    assert moments.optimizer["decoder_norm.weight.step"] == 4, "the moments have not moved either"


def test_a_log_point_leaves_out_what_is_not_finite() -> None:
    bench = Bench(steps=6, log_every=3)
    poison(bench, {2, 4, 5, 6})
    bench.trainer.run()
    first, second = bench.listener.steps
    assert math.isfinite(first.gradient_norm)
    assert math.isnan(second.gradient_norm)
    assert math.isfinite(second.loss)


def test_a_log_point_of_nothing_finite_is_not_a_number() -> None:
    bench = Bench(steps=4, log_every=2, save_every=1)
    with torch.no_grad():
        bench.model.output.bias[5] = math.nan
    bench.trainer.run()
    assert all(math.isnan(report.loss) and math.isnan(report.nll) for report in bench.listener.steps)
    assert all(json.dumps(snapshot.state, allow_nan=False) for snapshot, _ in bench.saved)


def test_training_gives_up_when_no_gradient_is_finite_any_more() -> None:
    bench = Bench(steps=100)
    poison(bench, set(range(3, 1_000)))
    with pytest.raises(
        TrainingError, match=rf"{MOST_SKIPPED} updates in a row .* up to step {2 + MOST_SKIPPED} "
    ) as caught:
        bench.trainer.run()
    progress = bench.trainer.progress
    pairs = bench.updates.epoch(progress.epoch)[progress.position]
    assert bench.updates.describe(pairs) in str(caught.value)
    assert all(tensor.isfinite().all() for tensor in weights(bench.model).values())
    assert bench.saved == []


def test_a_finite_gradient_in_between_gives_training_another_chance() -> None:
    bench = Bench(steps=2 * MOST_SKIPPED + 1)
    poison(bench, set(range(1, MOST_SKIPPED)) | set(range(MOST_SKIPPED + 1, 2 * MOST_SKIPPED)))
    bench.trainer.run()
    assert bench.trainer.progress.skipped == 2 * MOST_SKIPPED - 2


# --- a loss that goes astray ---


def lead_astray(bench: Bench, steps: set[int], seen: list[int]) -> None:
    """Have the watch of a bench cry wolf at these steps; `seen` are those at which it was asked."""

    def see(loss: float) -> bool:
        seen.append(bench.trainer.progress.step)
        return seen[-1] in steps and bool(steps.discard(seen[-1]) or True)

    bench.trainer.divergence.observe = see  # type: ignore[method-assign]


def remembering_bench(**settings: Any) -> Bench:
    """A bench that can go back to what it saved last."""
    return Bench(tiny_model(dropout=0.3), PairUpdates(*random_pairs(23), size=5), **settings)


def test_a_loss_gone_astray_is_told_and_training_goes_on() -> None:
    bench = remembering_bench(steps=12, save_every=4, log_every=2)
    seen: list[int] = []
    lead_astray(bench, {6}, seen)
    bench.trainer.run()
    assert seen == [2, 4, 6, 8, 10, 12]
    (message,) = bench.listener.messages
    assert message.startswith("warning: step 6: the loss is")


def test_on_request_training_goes_back_and_on_at_half_the_rate(clock: Clock) -> None:
    settings = {"steps": 12, "save_every": 4, "log_every": 2, "divergence": "rollback", "schedule": "linear"}
    calm, bench = remembering_bench(**settings), remembering_bench(**settings)
    torch.manual_seed(3)
    calm.trainer.run()
    seen: list[int] = []
    lead_astray(bench, {6, 10}, seen)
    torch.manual_seed(3)
    clock.slow(bench, 0.5).trainer.run()
    assert seen == [2, 4, 6, 6, 8, 10, 10, 12], "6 and 10 are done again, from 4 and 8"
    rates = {report.step: report.learning_rate for report in calm.listener.steps}
    halvings = [0, 0, 0, 1, 1, 1, 2, 2]
    found = [report.learning_rate for report in bench.listener.steps]
    assert found == pytest.approx([rates[step] / 2**n for step, n in zip(seen, halvings, strict=True)])
    assert bench.listener.messages[0].endswith("Back to step 4, at half the rate.")
    assert bench.saved_steps == [4, 8, 12]
    assert bench.saved[-1][0].state["progress"]["rollbacks"] == 2
    assert bench.trainer.progress.seconds == pytest.approx(12 * 0.5), "going back is no training"


def test_when_going_back_does_not_help_training_ends() -> None:
    bench = remembering_bench(steps=12, save_every=4, log_every=2, divergence="rollback")
    bench.trainer.divergence.observe = lambda loss: bench.trainer.progress.step == 6  # type: ignore[method-assign]
    with pytest.raises(TrainingError, match="going back 3 times has not helped"):
        bench.trainer.run()
    assert bench.saved_steps == [4]
    assert sum("Back to step 4" in message for message in bench.listener.messages) == 3


def test_without_a_checkpoint_there_is_nothing_to_go_back_to() -> None:
    bench = Bench(steps=12, log_every=2, divergence="rollback")
    lead_astray(bench, {2}, [])
    with pytest.raises(TrainingError, match="no checkpoint to go back to"):
        bench.trainer.run()


# --- requests ---


def test_when_it_is_asked_to_save_it_saves_and_goes_on() -> None:
    bench = Bench(steps=9, save_every=4)
    asked = iter([False, True, False, True, False, True, False, False, False])
    bench.trainer.run(save_now=lambda: next(asked))
    assert bench.saved_steps == [2, 4, 6, 8, 9], "4 is saved anyway"
    assert [best for _, best in bench.saved] == [False, True, False, True, True]


@pytest.mark.parametrize("workers", [0, 3])
def test_the_number_of_workers_changes_nothing(workers: int) -> None:
    def trained(workers: int) -> dict[str, Tensor]:
        bench = Bench(tiny_model(dropout=0.3), PairUpdates(*random_pairs(23), size=5), steps=12, workers=workers)
        torch.manual_seed(3)
        bench.trainer.run()
        return weights(bench.model)

    expected = trained(1)
    assert all(torch.equal(tensor, expected[name]) for name, tensor in trained(workers).items())


# --- going on ---


def train_through_disk(folder: Path, make: Callable[[], Bench], cut: int) -> Bench:
    """Train to the end, but with a stop after `cut` steps and new objects from the checkpoint on disk."""
    run = RunDirectory(folder)
    first = make()
    first.trainer.storage = RunStorage(run, first.config, ALONE, first.listener)
    first.listener.step = lambda report: stop() if report.step > cut else first.listener.steps.append(report)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        first.trainer.run()
    torch.manual_seed(99)
    torch.randn(31)
    second = make()
    checkpoint = run.checkpoints.read(cut)
    load_weights(second.model, checkpoint.model, "the checkpoint")
    second.trainer.restore(checkpoint.optimizer, checkpoint.state)
    second.listener.steps += [report for report in first.listener.steps if report.step <= cut]
    second.trainer.run()
    return second


@pytest.mark.parametrize("cut", [1, 3, 6, 9])  # 3 is the end of an epoch
@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": "adam", "frozen_layers": 1},
        {"optimizer": "adamw"},
        {"optimizer": "muon", "layer_decay": 0.7, "unfreeze_every": 2},
        {"optimizer": "adamw", "lora_rank": 2, "unfreeze_every": 4},
    ],
    ids=["adam, a layer frozen", "adamw", "muon, layer by layer", "lora, layer by layer"],
)
def test_training_in_two_goes_is_training_in_one(tmp_path: Path, cut: int, settings: dict[str, Any]) -> None:
    """Invariant J, with dropout, parts, averages, patience and a plateau: weights, moments, losses, bit for bit."""

    def make() -> Bench:
        torch.manual_seed(7)
        return Bench(
            tiny_model(dropout=0.3, feed_forward_dropout=0.2),
            PairUpdates(*random_pairs(14), size=5, parts=2),
            validate=lambda step: scored(step, [3.0, 2.0, 2.5][step // 3 % 3]),
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
    parted = train_through_disk(tmp_path, make, cut)
    expected, found = whole.trainer.snapshot(), parted.trainer.snapshot()
    for part in ("model", "optimizer"):
        one, other = getattr(expected, part), getattr(found, part)
        assert one.keys() == other.keys()
        assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())
    for state in (expected.state, found.state):
        state["progress"].pop("seconds")
        state["progress"].pop("recent_seconds")
        state["window"].pop("seconds")
    assert expected.state == found.state
    published, expected_weights = published_weights(parted.trainer), published_weights(whole.trainer)
    assert all(torch.equal(tensor, published[name]) for name, tensor in expected_weights.items())
    assert steps_told(whole) == steps_told(parted)


def test_dropout_differs_from_update_to_update() -> None:
    """Else the test above could not see a generator that is not restored."""
    updates = PairUpdates(*random_pairs(4), size=4)
    bench = Bench(tiny_model(dropout=0.3), updates, steps=3, learning_rate=STILL)
    bench.trainer.run()
    assert len({report.loss for report in bench.listener.steps}) == 3


def test_a_plan_made_longer_is_followed_from_the_checkpoint() -> None:
    first = Bench(steps=4, save_every=2)
    first.trainer.run()
    second = Bench(first.model, steps=6)
    snapshot = first.trainer.snapshot()
    second.trainer.restore(snapshot.optimizer, snapshot.state)
    second.trainer.run()
    assert second.trainer.progress.step == 6


def test_training_goes_on_in_the_number_format_it_began_with() -> None:
    """Measured a second time, it might be another."""
    first, second = Bench(), Bench()
    first.trainer.updater.precision = "bf16"
    snapshot = first.trainer.snapshot()
    second.trainer.restore(snapshot.optimizer, snapshot.state)
    assert second.trainer.updater.precision == "bf16"


def test_patience_that_is_given_afterwards_goes_on() -> None:
    first = Bench(validate=lambda step: scored(step, step), steps=9, save_every=1, patience=2)
    first.trainer.run()
    assert first.trainer.progress.step == 3
    second = Bench(first.model, steps=9, patience=4, save_every=1, validate=lambda step: scored(step, step))
    snapshot = first.trainer.snapshot()
    second.trainer.restore(snapshot.optimizer, snapshot.state)
    second.trainer.run()
    assert second.trainer.progress.step == 5
