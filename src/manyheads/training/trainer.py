"""The loop that turns batches into weights.

An update: the pairs of one batch in `accumulation` parts -> loss summed over target tokens / their number in the
whole update -> gradients -> clipped -> optimiser. All that the loop depends on is in `Progress`, the optimiser,
the schedule and torch's generators; `snapshot` and `restore` carry them over an interruption.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.config.schema import TrainingConfig
from manyheads.data.batch import Batch
from manyheads.errors import TrainingError
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.training.log import Listener, ValidationReport
from manyheads.training.loss import cross_entropy_sums
from manyheads.training.optimizer import build_optimizer, optimizer_tensors, restore_optimizer
from manyheads.training.precision import Precision, autocast
from manyheads.training.progress import Progress, Snapshot, Window
from manyheads.training.schedule import Schedule

__all__ = ["Trainer", "Updates", "translation_loss"]

# For max_minutes: updates left out, updates timed at least, and share of the whole time that is timed, unless the
# warm-up ends before: from there on the learning rate depends on the number of steps.
WARM_UPDATES, MEASURED_UPDATES, MEASURED_SHARE = 3, 27, 0.02
MOST_SKIPPED = 20  # updates in a row without a finite gradient before training gives up


class Updates(Protocol):
    """Where batches come from; both are functions of their arguments alone."""

    def epoch(self, number: int) -> list[NDArray[np.int64]]:
        """The pairs of each update of an epoch; every epoch has the same number of updates."""
        ...

    def batches(self, epoch: int, position: int, pairs: NDArray[np.int64]) -> list[Batch]:
        """The parts of one update, on the CPU."""
        ...

    def describe(self, pairs: NDArray[np.int64]) -> str:
        """Where these pairs stand in the corpus, for a message."""
        ...


def translation_loss(model: EncoderDecoder, batch: Batch, smoothing: float) -> tuple[Tensor, Tensor]:
    """Smoothed loss and plain negative log-likelihood, summed over the real target tokens, in nats."""
    hidden = model.decode(batch.target_in, *model.encode(batch.source))
    real = batch.target_out != model.pad
    output = model.output
    return cross_entropy_sums(hidden[real], output.weight, output.bias, batch.target_out[real], smoothing)


class Trainer:
    """Trains a model to the end of its plan, validating and saving on the way."""

    def __init__(
        self,
        model: EncoderDecoder,
        config: TrainingConfig,
        updates: Updates,
        *,
        device: torch.device,
        precision: Precision,
        listener: Listener,
        validate: Callable[[int], ValidationReport],
        save: Callable[[Snapshot, bool], None],
    ) -> None:
        """Set up; nothing is computed yet.

        Args:
            model: its weights are changed in place.
            config: the plan.
            updates: where batches come from.
            device: where the model is.
            precision: number format of the products.
            listener: who is told.
            validate: scores the model at a step; its `best` is filled in here.
            save: keeps a snapshot; the second argument says whether it is the best so far.
        """
        self.model = model
        self.config = config
        self.updates = updates
        self.device = device
        self.precision = precision
        self.listener = listener
        self.validate = validate
        self.save = save
        self.optimizer = build_optimizer(model, config, device)
        self.schedule = Schedule(config, model.config.d_model)
        self.progress = Progress(total_steps=self.planned_steps(), fixed=config.max_minutes is None)
        self.window = Window()
        self.timed: list[tuple[float, int]] = []  # seconds and target tokens of the first updates, for max_minutes

    def planned_steps(self) -> int:
        """Updates that the configuration asks for, before any time limit."""
        if self.config.epochs is None:
            return self.config.steps
        return len(self.updates.epoch(0)) * self.config.epochs

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Train until the plan is fulfilled or patience runs out.

        Args:
            stop: asked after each update; once it is true, a snapshot is saved and training ends there.

        Raises:
            TrainingError: too many updates in a row had no finite gradient.
        """
        self.model.train()
        while not self.finished():
            plan = self.updates.epoch(self.progress.epoch)
            for pairs in plan[self.progress.position :]:
                rate = self.update(pairs)
                last = self.progress.step >= self.progress.total_steps
                saving = last or self.progress.step % self.config.save_every == 0
                if last or self.progress.step % self.config.log_every == 0:
                    self.listener.step(self.window.report(self.progress, rate, len(plan)))
                    self.window = Window()
                if saving:
                    self.checkpoint()
                if self.finished():
                    return
                if stop():
                    if not saving:
                        self.save(self.snapshot(), False)
                    return
            self.progress.epoch, self.progress.position = self.progress.epoch + 1, 0

    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.progress.stopped_early or self.progress.step >= self.progress.total_steps

    def update(self, pairs: NDArray[np.int64]) -> float:
        """One optimiser update on these pairs; returns its learning rate."""
        start = time.perf_counter()
        progress = self.progress
        batches = [
            batch.to(self.device) for batch in self.updates.batches(progress.epoch, progress.position, pairs)
        ]
        tokens = sum(batch.target_tokens for batch in batches)
        for batch in batches:
            with autocast(self.device, self.precision):
                loss, nll = translation_loss(self.model, batch, self.config.label_smoothing)
            (loss / tokens).backward()
            self.window.add(batch, loss, nll)
        rate = self.schedule.rate(progress.step + 1, progress.total_steps)
        norm = self.apply_gradients(rate, pairs)
        if math.isfinite(norm):
            self.window.norm += norm
            self.window.updates += 1
        seconds = time.perf_counter() - start
        self.window.seconds += seconds
        progress.seconds += seconds
        progress.step += 1
        progress.position += 1
        if not progress.fixed:
            self.measure(seconds, tokens)
        return rate

    def apply_gradients(self, rate: float, pairs: NDArray[np.int64]) -> float:
        """Clip and step, or skip when the gradient is not finite; returns its norm."""
        limit = self.config.clip_norm or math.inf
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), limit))
        if math.isfinite(norm):
            for group in self.optimizer.param_groups:
                group["lr"] = rate * group.get("factor", 1.0)
            with autocast(self.device, self.precision):
                self.optimizer.step()
            self.progress.skipped_in_row = 0
        else:
            self.skip(pairs)
        self.optimizer.zero_grad(set_to_none=True)
        return norm

    def skip(self, pairs: NDArray[np.int64]) -> None:
        """Count an update that was not applied, and give up after too many."""
        self.progress.skipped += 1
        self.progress.skipped_in_row += 1
        where = self.updates.describe(pairs)
        self.listener.message(f"step {self.progress.step + 1}: the gradient is not finite, not applied ({where})")
        if self.progress.skipped_in_row >= MOST_SKIPPED:
            raise TrainingError(
                f"{MOST_SKIPPED} updates in a row had no finite gradient, up to step {self.progress.step + 1} "
                f"({where}). The last checkpoint is good. Try a lower training.learning_rate or a longer warm-up."
            )

    def measure(self, seconds: float, tokens: int) -> None:
        """Time the first updates, then fix the number of steps that fit into `max_minutes`."""
        self.timed.append((seconds, tokens))
        allowed = 60 * (self.config.max_minutes or 0.0)
        measured = self.timed[WARM_UPDATES:]
        spent = sum(seconds for seconds, _ in measured)
        enough = spent >= MEASURED_SHARE * allowed or self.progress.step >= self.config.warmup_steps
        if len(measured) < MEASURED_UPDATES or not enough:
            return
        speed = sum(tokens for _, tokens in measured) / spent
        per_update = spent / len(measured)
        left = allowed - self.progress.seconds
        fitting = self.progress.step + max(0, int(left / per_update))
        self.progress.total_steps = min(self.progress.total_steps, fitting)
        self.progress.fixed = True
        self.listener.message(
            f"{speed:,.0f} target tokens/s: {self.progress.total_steps:,} steps fit into "
            f"{self.config.max_minutes:g} minutes"
        )

    def checkpoint(self) -> None:
        """Validate, note whether this is the best so far, and save."""
        self.model.eval()
        with torch.inference_mode():
            report = self.validate(self.progress.step)
        self.model.train()
        best = self.note(report)
        self.listener.validation(
            ValidationReport(
                report.step, report.loss, report.perplexity, report.bleu, report.chrf, best, report.sample
            )
        )
        self.save(self.snapshot(), best)

    def note(self, report: ValidationReport) -> bool:
        """Compare with the best so far and count patience; returns whether it is the best."""
        progress = self.progress
        if not math.isfinite(report.loss):
            raise TrainingError(
                f"the validation loss at step {report.step} is {report.loss}. The last checkpoint is good. "
                "Try a lower training.learning_rate or a longer warm-up."
            )
        value = {"loss": -report.loss, "bleu": report.bleu, "chrf": report.chrf}[self.config.metric]
        if value is None:
            raise TrainingError(
                f'training.metric = "{self.config.metric}" needs decoded sentences. Set training.valid_sentences.'
            )
        self.schedule.validated(report.loss)
        best = progress.best is None or value > progress.best
        if best:
            progress.best, progress.best_step, progress.waited = value, progress.step, 0
        else:
            progress.waited += 1
        progress.stopped_early = self.out_of_patience()
        return best

    def out_of_patience(self) -> bool:
        """Whether too many validations in a row brought nothing better."""
        return self.config.patience is not None and self.progress.waited >= self.config.patience

    def snapshot(self) -> Snapshot:
        """All that resuming needs."""
        generators = {"torch_generator": torch.get_rng_state()}
        if self.device.type == "cuda":
            generators["cuda_generator"] = torch.cuda.get_rng_state(self.device)
        return Snapshot(
            model=dict(self.model.named_parameters()),
            optimizer=optimizer_tensors(self.model, self.optimizer) | generators,
            state={
                "progress": asdict(self.progress),
                "window": asdict(self.window),
                "schedule": self.schedule.state(),
                "precision": self.precision,
            },
        )

    def restore(self, optimizer: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Go on from a snapshot; the model's weights have been loaded already."""
        restore_optimizer(self.model, self.optimizer, optimizer)
        torch.set_rng_state(optimizer["torch_generator"])
        if self.device.type == "cuda" and "cuda_generator" in optimizer:
            torch.cuda.set_rng_state(optimizer["cuda_generator"], self.device)
        planned, self.progress = self.progress, Progress(**state["progress"])
        if self.config.max_minutes is None:  # the plan may have been changed by force
            self.progress.total_steps, self.progress.fixed = planned.total_steps, True
        self.progress.stopped_early = self.out_of_patience()
        self.window = Window(**state["window"])
        self.schedule.restore(state["schedule"])
        self.precision = state["precision"]
