"""The training loop: `Trainer.run`, from batches to weights.

The loss of an update is summed over all its target tokens, in all its micro-batches and all processes, and divided
by their number. Everything that the loop depends on is in the parts of the trainer (`Progress`, the optimiser,
the schedule, the time limit, ...) and in torch's random generators; `snapshot` and `restore` carry them over an
interruption.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from manyheads.config.schema import TrainingConfig
from manyheads.errors import TrainingError
from manyheads.reports import Listener, StepReport, ValidationReport
from manyheads.tensors.devices import Precision
from manyheads.tensors.weights import load_weights
from manyheads.training.batches import BatchSource, Indices, MicroBatch, prefetch_updates
from manyheads.training.distributed import ALONE, World
from manyheads.training.ema import ExponentialMovingAverage
from manyheads.training.interruption import Interrupted, never
from manyheads.training.objective import Objective
from manyheads.training.oom import OomRecovery
from manyheads.training.optimizer import optimizer_tensors, restore_optimizer
from manyheads.training.progress import DivergenceDetector, Progress, Window
from manyheads.training.schedule import Schedule
from manyheads.training.snapshot import (
    Snapshot,
    Storage,
    full_tensors,
    generators_of_all,
    put_generators,
    restore_generators,
    take_generators,
)
from manyheads.training.time_limit import TimedValidation, TimeLimit, sampled_validation
from manyheads.training.update import Updater

_MOST_SKIPPED = 20  # updates in a row without a finite gradient before training gives up
_AFTER_STEP = "stopping after this step; press again to abort"
_VALIDATION_SAMPLE = 0.01  # share of the time limit that a sample to time a validation may take
_AVERAGE = "average."  # prefix of the names of averaged weights in a checkpoint


class Trainer:
    """Trains a model to the end of its plan, validating and saving on the way."""

    def __init__(
        self,
        objective: Objective,
        config: TrainingConfig,
        batches: BatchSource,
        *,
        device: torch.device,
        precision: Precision,
        listener: Listener,
        validate: Callable[[int], ValidationReport],
        storage: Storage,
        world: World = ALONE,
        timed_validation: TimedValidation | None = None,
        prepared: float = 0.0,
    ) -> None:
        """Prepare a training, which changes the weights of the objective's model; nothing is computed yet.

        `validate` scores the model at a step; the trainer fills in `best` of the report. It raises `Interrupted` in
        all processes when a stop is requested. `timed_validation` times and shortens it under a time limit, in
        which the seconds that the preparation of the training took count, too.
        """
        self.model = model = objective.model
        self.config = config
        self.batches = batches
        self.device = device
        self.listener = listener
        self.validate = validate
        self.storage = storage
        self.world = world
        self.updater = Updater(objective, config, device=device, precision=precision, world=world)
        self.oom = OomRecovery(self.updater, listener.message)
        self.schedule = Schedule(config, model.config.d_model)
        self.ema = ExponentialMovingAverage(model, config.ema) if config.ema > 0 else None
        self.progress = Progress(total_steps=self.planned_steps())
        self.window = Window()
        self.divergence = DivergenceDetector()
        self.limit = None if config.max_minutes is None else TimeLimit(config, config.max_minutes, prepared)
        self.timed_validation = timed_validation
        self.stop_message = _AFTER_STEP  # answers a request to stop

    # --- the loop ---

    def run(self, stop: Callable[[], bool] = never, save_now: Callable[[], bool] = never) -> None:
        """Train until the planned number of updates or the end of patience (`training.patience`) is reached.

        A checkpoint is saved before it is validated. If the validation is interrupted, training ends, and begins
        with this validation when it resumes.

        Args:
            stop: called after each update; when it returns True, a snapshot is saved and training ends.
            save_now: called after each update; when it returns True, a snapshot is saved and training continues.
        """
        if not self.prepare():
            return
        start = time.perf_counter()
        for indices, micro_batches, epoch_updates in self.remaining_updates():
            step = self.progress.step + 1
            where = partial(self.batches.describe, indices)  # for messages
            tokens = self.world.total([sum(batch.target_tokens for batch in micro_batches)])[0]

            losses = self.oom.gradients(micro_batches, tokens, where)  # loss and backward pass of each micro-batch
            self.window.add(losses)
            rate = self.schedule.rate(step, self.progress.total_steps)
            norm = self.updater.apply(rate)
            if math.isfinite(norm):
                self.record_update(norm, step)
            else:
                self.skip_update(where())
            seconds = time.perf_counter() - start
            self.window.seconds += seconds
            self.progress.advance(seconds)
            if self.limit is not None:
                self.fit_steps(self.limit)

            if self.progress.due(self.config.log_every):
                report = self.log(rate, epoch_updates)
                if self.divergence.observe(report.loss):
                    self.warn_of_divergence(report.loss)
            self.progress.pending = self.progress.due(self.config.save_every) and self.affords_check()
            stopping, saving = self.world.total([stop(), save_now()])
            if self.progress.pending or stopping or saving:
                self.save()
            if stopping or (self.progress.pending and not self.validate_step()):
                return
            start = time.perf_counter()

    def remaining_updates(self) -> Iterator[tuple[Indices, Sequence[MicroBatch], int]]:
        """Yield the updates from the present position on, epoch after epoch, until training is finished.

        Yields:
            The indices of the examples, this process's micro-batches, and the number of updates of the epoch.
        """
        while not self.progress.finished:
            epoch, first = self.progress.epoch, self.progress.position
            plan = self.batches.epoch(epoch)
            updates = prefetch_updates(self.batches, epoch, plan, first, self.device)
            for indices, micro_batches in updates:
                yield indices, micro_batches, len(plan)
                if self.progress.finished:
                    return
            self.progress.epoch, self.progress.position = epoch + 1, 0

    def planned_steps(self) -> int:
        """Return the number of updates that the configuration asks for, before any time limit."""
        if self.config.epochs is None:
            return self.config.steps
        return len(self.batches.epoch(0)) * self.config.epochs

    # --- before the first update ---

    def prepare(self) -> bool:
        """Try the heaviest update, run a pending validation, and time a validation if there is a time limit.

        Returns:
            False if a request to stop ended the validation.
        """
        self.model.train()
        self.try_heaviest()
        if self.progress.pending and not self.validate_step():
            return False
        if self.limit is None or self.progress.step > 0:
            return True
        try:
            self.limit_validation(self.limit)
        except Interrupted:
            return False
        self.limit.begin()
        return True

    def limit_validation(self, limit: TimeLimit) -> None:
        """Time a validation, and shorten it to its share of the limit; raises `Interrupted` on request."""
        timed, gather = self.timed_validation, self.world.gather
        if timed is None:
            return
        longest = _VALIDATION_SAMPLE * limit.allowed
        with self.validating(), self.listener.phase("timing a validation"):
            sampled_validation(lambda every: gather(timed.seconds(every))[0], longest)  # as the first process says
        limit.validation = timed.shorten(limit.longest_validation)

    def try_heaviest(self) -> None:
        """Compute and drop the gradients that need the most memory, so that memory runs out early or not at all."""
        if self.progress.finished:
            return
        position = self.batches.heaviest()
        indices = self.batches.epoch(0)[position]
        micro_batches = self.batches.batches(0, position, indices)
        generators = take_generators(self.device)
        self.oom.gradients(micro_batches, 1.0, partial(self.batches.describe, indices))
        self.updater.zero_grad()
        put_generators(generators, self.device)

    # --- an update ---

    def record_update(self, norm: float, step: int) -> None:
        """Record the gradient norm of an update that changed the weights, and average the weights."""
        self.window.norm += norm
        self.window.updates += 1
        self.progress.skipped_in_row = 0
        if self.ema is not None:
            self.ema.update(self.model, step)

    def skip_update(self, where: str) -> None:
        """Count an update whose gradient is not finite, and raise a TrainingError after too many in a row.

        `where` is the place of its examples in the corpus.
        """
        self.progress.skipped += 1
        self.progress.skipped_in_row += 1
        self.listener.message(f"step {self.progress.step + 1}: the gradient is not finite, not applied ({where})")
        if self.progress.skipped_in_row >= _MOST_SKIPPED:
            raise TrainingError(
                f"{_MOST_SKIPPED} updates in a row had no finite gradient, up to step {self.progress.step + 1} "
                f"({where}). Try a lower training.learning_rate or a longer warm-up."
            )

    def fit_steps(self, limit: TimeLimit) -> None:
        """Set the number of updates to those that fit into the time limit, as the first process measures it."""
        progress, most = self.progress, self.planned_steps()
        fitting = progress.step + limit.fitting(progress.recent_seconds)
        progress.total_steps = self.world.gather(min(most, fitting))[0]
        for message in limit.messages(progress.total_steps, most, progress.recent_seconds):
            self.listener.message(message)

    def affords_check(self) -> bool:
        """Return whether the time limit allows a checkpoint and a validation now; those at the end always."""
        if self.limit is None or self.progress.finished:
            return True
        return bool(self.world.gather(self.limit.affords_check())[0])

    # --- log and divergence ---

    def log(self, rate: float, epoch_updates: int) -> StepReport:
        """Report the means since the last log point to the listener, and begin a new window."""
        report = self.window.report(self.progress, rate, epoch_updates, self.world)
        self.window = Window()
        self.listener.step(report)
        return report

    def warn_of_divergence(self, loss: float) -> None:
        """Warn of a loss far above its mean."""
        self.listener.message(
            f"warning: step {self.progress.step:,}: the loss is {loss:.2f}, after {self.divergence.mean:.2f} on "
            "average. A lower training.learning_rate may help."
        )

    # --- validation ---

    def validate_step(self) -> bool:
        """Validate the published weights of the saved step, compare them with the best, and store the result.

        Returns:
            False if a request to stop ended the validation.

        Raises:
            TrainingError: the loss is not finite, or the metric of `training.metric` was not measured.
        """
        step, start = self.progress.step, time.perf_counter()
        with self.stopping_with(f"stopping; the checkpoint of step {step:,} is saved"):
            try:
                with nullcontext() if self.ema is None else self.ema.instead(self.model):
                    report = self.score()
            except Interrupted:
                return False
            try:
                value = report.checked_value(self.config.metric)
            except TrainingError:
                self.storage.discard(step)
                raise
            best = self.compare_with_best(value, report.loss)
            self.listener.validation(replace(report, best=best))
            self.progress.pending = False
            if self.limit is not None:
                self.limit.add_validation(time.perf_counter() - start)
            self.storage.confirm(step, self.state(), self.published_weights() if best else None)
        return True

    def compare_with_best(self, value: float, loss: float) -> bool:
        """Update best value, patience and plateau schedule; return whether this validation is the best so far."""
        progress = self.progress
        self.schedule.validated(loss)
        best = progress.compare(value)
        progress.stopped_early = progress.out_of_patience(self.config.patience)
        return best

    def score(self) -> ValidationReport:
        """Validate the weights that the model has now; raises `Interrupted` in all processes on request."""
        with self.validating():
            return self.validate(self.progress.step)

    @contextmanager
    def validating(self) -> Iterator[None]:
        """Set evaluation mode, and hold all weights in this process, while the context is open.

        Random numbers that are drawn inside do not change those of the training.
        """
        generators = take_generators(self.device)
        self.model.eval()
        try:
            with self.updater.unsharded(), torch.inference_mode():
                yield
        finally:
            self.model.train()
            put_generators(generators, self.device)

    def published_weights(self) -> dict[str, Tensor]:
        """Return the weights for validation and translation: the averaged ones with `training.ema`."""
        return full_tensors(dict(self.model.named_parameters()) if self.ema is None else self.ema.weights)

    def try_weights(self, weights: Mapping[str, Tensor], name: str) -> bool:
        """Load other weights after the last step, and score them; return whether they are the best so far.

        The model keeps them. Messages call them `name`.

        Raises:
            Interrupted: a stop was requested.
        """
        progress, metric = self.progress, self.config.metric
        load_weights(self.model, weights, name)
        value = self.score().value(metric)
        better = value is not None and (progress.best is None or value > progress.best)
        verdict = "better, kept" if better else "not better, left"
        figure = "none" if value is None else f"{abs(value):.3f}"
        self.listener.message(f"{name}: {metric} {figure} ({verdict})")
        if better:
            progress.best, progress.best_step = value, progress.step
        return better

    # --- interruptions ---

    def save(self) -> None:
        """Save a checkpoint of this step."""
        start = time.perf_counter()
        with self.stopping_with(f"stopping; the checkpoint of step {self.progress.step:,} is being saved"):
            self.storage.save(self.snapshot())
        if self.limit is not None:
            self.limit.add_saving(time.perf_counter() - start)

    @contextmanager
    def stopping_with(self, message: str) -> Iterator[None]:
        """Answer a request to stop with this message while the context is open."""
        self.stop_message = message
        try:
            yield
        finally:
            self.stop_message = _AFTER_STEP

    def snapshot(self) -> Snapshot:
        """Return all that resuming needs."""
        averages = {} if self.ema is None else full_tensors(self.ema.weights)
        return Snapshot(
            model=full_tensors(dict(self.model.named_parameters())),
            optimizer={
                **optimizer_tensors(self.model, self.updater.optimizer),
                **generators_of_all(self.device, self.world),
                **{f"{_AVERAGE}{name}": tensor for name, tensor in averages.items()},
            },
            state=self.state(),
        )

    def state(self) -> dict[str, Any]:
        """Return `Snapshot.state`."""
        return {
            "progress": asdict(self.progress),
            "plan": _plan(self.config),
            "splits": self.oom.splits,
            "window": self.window.state(),
            "watch": self.divergence.state(),
            "schedule": self.schedule.state(),
            "precision": self.updater.precision,
            "limit": {} if self.limit is None else self.limit.state(),
            "validation_size": None if self.timed_validation is None else [*self.timed_validation.size],
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Restore weights and state from a snapshot."""
        config, state, optimizer = self.config, snapshot.state, snapshot.optimizer
        load_weights(self.model, snapshot.model, f"checkpoint {state['progress']['step']}")
        restore_optimizer(self.model, self.updater.optimizer, optimizer)
        restore_generators(optimizer, self.device, self.world, config.seed)
        if self.ema is not None:
            averages = {
                key.removeprefix(_AVERAGE): value for key, value in optimizer.items() if key.startswith(_AVERAGE)
            }
            self.ema.restore(averages or dict(self.model.named_parameters()))  # `--force` may have turned EMA on
        self.progress = progress = Progress.restored(state["progress"])
        if self.limit is None or state.get("plan", _plan(config)) != _plan(
            config
        ):  # `--force` allows other settings and another corpus
            progress.total_steps = self.planned_steps()
        progress.stopped_early = progress.out_of_patience(config.patience)
        if self.limit is not None:
            self.limit.restore(state.get("limit", {}))
        if self.timed_validation is not None and state.get("validation_size"):
            self.timed_validation.size = state["validation_size"]
        self.oom.splits = state["splits"]
        self.window = Window(**state["window"])
        self.divergence.restore(state["watch"])
        self.schedule.restore(state["schedule"])
        self.updater.precision = state["precision"]


def _plan(config: TrainingConfig) -> dict[str, float | None]:
    """Return the settings that decide how long training lasts."""
    return {"steps": config.steps, "epochs": config.epochs, "max_minutes": config.max_minutes}
