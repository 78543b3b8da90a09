"""The training loop: `Trainer.run`, from batches to weights.

The loss of an update is summed over all its target tokens, in all its micro-batches and all processes, and divided
by their number. Everything that the loop depends on is in `Progress`, the optimiser, the schedule and torch's
random generators; `snapshot` and `restore` carry them over an interruption.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from manyheads.config.schema import MeasuredConfig, TrainingConfig
from manyheads.errors import TrainingError
from manyheads.model.sharded import full_tensor
from manyheads.training.distributed import ALONE, World
from manyheads.training.divergence import DivergenceDetector
from manyheads.training.ema import ExponentialMovingAverage
from manyheads.training.generators import generators_of_all, put_generators, restore_generators, take_generators
from manyheads.training.log import Listener, StepReport, ValidationReport
from manyheads.training.micro_batch import Losses, MicroBatch
from manyheads.training.objective import Objective
from manyheads.training.oom import OomRecovery
from manyheads.training.optimizer import optimizer_tensors, restore_optimizer
from manyheads.training.precision import Precision
from manyheads.training.prefetch import BatchSource, Indices, prefetch_updates
from manyheads.training.progress import Progress, Snapshot, Window
from manyheads.training.schedule import Schedule
from manyheads.training.timing import SAMPLE_SHARE, TimeLimit, sampled_validation
from manyheads.training.update import Updater

__all__ = ["Trainer"]

MOST_SKIPPED = 20  # updates in a row without a finite gradient before training gives up
MOST_ROLLBACKS = 3
AVERAGE = "average."  # prefix of the names of averaged weights in a checkpoint


def never() -> bool:
    """Return False: the default of callbacks that request something."""
    return False


def no_checkpoint(trainer: Trainer) -> bool:
    """Return False: the default of `Trainer.go_back` where no checkpoints are kept."""
    return False


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
        save: Callable[[Snapshot, bool], None],
        go_back: Callable[[Trainer], bool] = no_checkpoint,
        world: World = ALONE,
        sample_validation: Callable[[int], float] | None = None,
        measured: MeasuredConfig | None = None,
    ) -> None:
        """Prepare a training; nothing is computed yet.

        Args:
            objective: the model with its loss; the model's weights are changed in place.
            config: the settings of the section `[training]`.
            batches: the source of the batches.
            device: the device of the model.
            precision: number format of the matrix products.
            listener: receives messages and reports.
            validate: scores the model at a step; the trainer fills in `best` of the report.
            save: stores a snapshot; the second argument says whether it is the best so far.
            go_back: loads the weights of the last snapshot into the trainer's model and calls its `restore`;
                returns False when there is no snapshot.
            world: the processes that train together.
            sample_validation: validates one example in n, and returns the estimated seconds of a whole validation;
                used with a time limit. Without it, `validate` is timed.
            measured: measured scores by number of updates, which predict the result under a time limit.
        """
        self.model = model = objective.model
        self.config = config
        self.batches = batches
        self.device = device
        self.listener = listener
        self.validate = validate
        self.save = save
        self.go_back = go_back
        self.world = world
        self.updater = Updater(objective, config, device=device, precision=precision, world=world)
        self.oom = OomRecovery(self.updater, listener.message)
        self.schedule = Schedule(config, model.config.d_model)
        self.ema = ExponentialMovingAverage(model, config.ema) if config.ema > 0 else None
        self.progress = Progress(total_steps=self.planned_steps(), fixed=config.max_minutes is None)
        self.window = Window()
        self.divergence = DivergenceDetector()
        self.limit = TimeLimit(config, measured)
        self.sample_validation = sample_validation

    # --- the loop ---

    def run(self, stop: Callable[[], bool] = never, save_now: Callable[[], bool] = never) -> None:
        """Train until the planned number of updates or the end of patience (`training.patience`) is reached.

        Args:
            stop: called after each update; when it returns True, a snapshot is saved and training ends.
            save_now: called after each update; when it returns True, a snapshot is saved and training continues.

        Raises:
            TrainingError: too many updates in a row had no finite gradient, memory ran out, or training diverged.
        """
        updater = self.updater
        self.prepare()
        start = time.perf_counter()
        for indices, micro_batches, epoch_updates in self.remaining_updates():
            step, known_shapes = self.progress.step + 1, len(updater.layers.shapes)
            where = partial(self.batches.describe, indices)  # for messages
            tokens = self.world.total([sum(batch.target_tokens for batch in micro_batches)])[0]

            for attempt in self.oom.attempts(micro_batches, where):  # a second one only if memory runs out
                losses: list[Losses] = []
                with attempt:
                    for batch in updater.on_device(attempt.micro_batches):
                        losses.append(updater.backward(updater.loss(batch), tokens))
            self.window.add(losses)

            rate = self.learning_rate(step)
            norm = updater.clip_gradients()
            if math.isfinite(norm):
                updater.step(rate, step)
                self.applied(norm, step)
            else:
                self.skip(where())
            updater.zero_grad()
            seconds = time.perf_counter() - start
            self.count(seconds)
            if not self.progress.fixed:
                self.measure(seconds, tokens, compiled=len(updater.layers.shapes) > known_shapes)

            if self.due(self.config.log_every):
                report = self.log(rate, epoch_updates)
                if self.divergence.observe(report.loss) and self.diverged(report.loss):
                    start = time.perf_counter()
                    continue  # training is back at its last checkpoint
            validating = self.due(self.config.save_every)
            if validating:
                best = self.validated().best
                self.save(self.snapshot(), best)
            stopping, saving = self.world.total([stop(), save_now()])
            if (stopping or saving) and not validating:
                self.save(self.snapshot(), False)
            if stopping:
                return
            start = time.perf_counter()

    def remaining_updates(self) -> Iterator[tuple[Indices, Sequence[MicroBatch], int]]:
        """Yield the updates from the present position on, epoch after epoch, until training is finished.

        When training has gone back to a checkpoint, the updates from that checkpoint's position on follow.

        Yields:
            The indices of the examples, this process's micro-batches, and the number of updates of the epoch.
        """
        while not self.finished():
            epoch, first, rollbacks = self.progress.epoch, self.progress.position, self.progress.rollbacks
            plan = self.batches.epoch(epoch)
            updates = prefetch_updates(self.batches, epoch, plan, first, self.config.workers, self.device)
            for indices, micro_batches in updates:
                yield indices, micro_batches, len(plan)
                if self.progress.rollbacks != rollbacks:
                    break
                if self.finished():
                    return
            else:
                self.progress.epoch, self.progress.position = epoch + 1, 0

    def planned_steps(self) -> int:
        """Return the number of updates that the configuration asks for, before any time limit."""
        if self.config.epochs is None:
            return self.config.steps
        return len(self.batches.epoch(0)) * self.config.epochs

    def finished(self) -> bool:
        """Return whether no update is left to do."""
        return self.progress.stopped_early or self.progress.step >= self.progress.total_steps

    def due(self, every: int) -> bool:
        """Return whether an action is due that takes place every so many updates, and after the last one."""
        return self.progress.step >= self.progress.total_steps or self.progress.step % every == 0

    # --- before the first update ---

    def prepare(self) -> None:
        """Set the model to training mode, try the heaviest update, and with a time limit time a validation."""
        start = time.perf_counter()
        self.model.train()
        self.try_heaviest()
        if not self.progress.fixed:
            self.limit.validation = self.time_validation()
            self.limit.spent = time.perf_counter() - start

    def try_heaviest(self) -> None:
        """Compute the gradients that need the most memory, and drop them: if memory runs out, then now."""
        if self.finished():
            return
        position = self.batches.heaviest()
        indices = self.batches.epoch(0)[position]
        micro_batches = self.batches.batches(0, position, indices)
        generators = take_generators(self.device)
        for attempt in self.oom.attempts(micro_batches, partial(self.batches.describe, indices)):
            with attempt:
                self.updater.gradients(attempt.micro_batches, 1.0)
        self.updater.zero_grad()
        put_generators(generators, self.device)

    # --- an update ---

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of an update, the first being 1; every rollback has halved it."""
        return self.schedule.rate(step, self.progress.total_steps) * 0.5**self.progress.rollbacks

    def applied(self, norm: float, step: int) -> None:
        """Record the gradient norm of an update that changed the weights, and average the weights."""
        self.window.norm += norm
        self.window.updates += 1
        self.progress.skipped_in_row = 0
        if self.ema is not None:
            self.ema.update(self.model, step)

    def skip(self, where: str) -> None:
        """Count an update whose gradient is not finite, and raise a TrainingError after too many in a row.

        Args:
            where: the place of its examples in the corpus.
        """
        self.progress.skipped += 1
        self.progress.skipped_in_row += 1
        self.listener.message(f"step {self.progress.step + 1}: the gradient is not finite, not applied ({where})")
        if self.progress.skipped_in_row >= MOST_SKIPPED:
            raise TrainingError(
                f"{MOST_SKIPPED} updates in a row had no finite gradient, up to step {self.progress.step + 1} "
                f"({where}). The last checkpoint is good. Try a lower training.learning_rate or a longer warm-up."
            )

    def count(self, seconds: float) -> None:
        """Count an update and the seconds that it took."""
        self.window.seconds += seconds
        self.progress.advance(seconds)

    # --- log and divergence ---

    def log(self, rate: float, epoch_updates: int) -> StepReport:
        """Report the means since the last log point to the listener, and begin a new window."""
        report = self.window.report(self.progress, rate, epoch_updates, self.world)
        self.window = Window()
        self.listener.step(report)
        return report

    def diverged(self, loss: float) -> bool:
        """Warn of a loss far above its mean, or go back to the last checkpoint; return whether it went back.

        Raises:
            TrainingError: there is no checkpoint, or going back has not helped several times.
        """
        what = f"step {self.progress.step:,}: the loss is {loss:.2f}, after {self.divergence.mean:.2f} on average"
        if self.config.divergence == "warn":
            self.listener.message(f"warning: {what}. A lower training.learning_rate may help.")
            return False
        rollbacks = self.progress.rollbacks + 1
        if rollbacks > MOST_ROLLBACKS:
            raise TrainingError(
                f"{what}, and going back {MOST_ROLLBACKS} times has not helped. The last checkpoint is good. "
                "Try a lower training.learning_rate or a longer warm-up."
            )
        if not self.go_back(self):
            cure = "Try a lower training.learning_rate or a longer warm-up."
            raise TrainingError(f"{what}, and there is no checkpoint to go back to. {cure}")
        self.progress.rollbacks = rollbacks
        self.listener.message(f"warning: {what}. Back to step {self.progress.step:,}, at half the rate.")
        return True

    # --- validation ---

    def validated(self) -> ValidationReport:
        """Validate the published weights, compare with the best validation so far, and report to the listener."""
        with self.published():
            report = self.score()
        report = replace(report, best=self.compare_with_best(report))
        self.listener.validation(report)
        return report

    def score(self) -> ValidationReport:
        """Validate the weights that the model has now."""
        self.model.eval()
        with self.updater.unsharded(), torch.inference_mode():
            report = self.validate(self.progress.step)
        self.model.train()
        return report

    def published(self) -> AbstractContextManager[None]:
        """While open, the model has the weights that are published: the averaged ones with `training.ema`."""
        return nullcontext() if self.ema is None else self.ema.instead(self.model)

    def compare_with_best(self, report: ValidationReport) -> bool:
        """Update best value, patience and plateau schedule; return whether this validation is the best so far.

        Raises:
            TrainingError: the loss is not finite, or the metric of `training.metric` was not measured.
        """
        progress = self.progress
        if not math.isfinite(report.loss):
            raise TrainingError(
                f"the validation loss at step {report.step} is {report.loss}. The last checkpoint is good. "
                "Try a lower training.learning_rate or a longer warm-up."
            )
        value = report.value(self.config.metric)
        if value is None:
            raise TrainingError(
                f'training.metric = "{self.config.metric}" needs decoded sentences. Set training.valid_sentences.'
            )
        self.schedule.validated(report.loss)
        best = progress.compare(value)
        if not self.updater.layerwise.complete(progress.step):  # layers that are unfrozen later may still help
            progress.waited = 0
        progress.stopped_early = self.out_of_patience()
        return best

    def out_of_patience(self) -> bool:
        """Return whether `training.patience` validations in a row brought nothing better."""
        return self.config.patience is not None and self.progress.waited >= self.config.patience

    # --- the time limit ---

    def measure(self, seconds: float, tokens: float, *, compiled: bool) -> None:
        """Time an update, and once enough were timed, fix the number of updates that fit into `max_minutes`.

        A checkpoint is saved to time that too.

        Args:
            seconds: time that the update took.
            tokens: its target tokens in all processes.
            compiled: whether this process compiled layers in it; such an update says nothing about later ones.
        """
        progress, limit = self.progress, self.limit
        if not self.world.total([compiled])[0]:
            limit.add(seconds, tokens)
        if not self.world.gather(limit.ready(progress.step, progress.seconds))[0]:
            return
        start = time.perf_counter()
        self.save(self.snapshot(), False)
        limit.saving = time.perf_counter() - start
        limit.spent += limit.saving
        spent = progress.seconds + limit.spent
        fitting = limit.costs().fitting(self.config, progress.total_steps, done=progress.step, seconds=spent)
        progress.total_steps = self.world.gather(fitting)[0]
        progress.fixed = True
        for message in limit.messages(progress.total_steps):
            self.listener.message(message)

    def time_validation(self) -> float:
        """Return the seconds that a validation takes; the state of the random generators is kept."""
        generators = take_generators(self.device)
        start = time.perf_counter()
        self.model.eval()
        with self.updater.unsharded(), torch.inference_mode():
            if self.sample_validation is None:
                self.validate(self.progress.step)
                seconds = time.perf_counter() - start
            else:
                seconds = sampled_validation(self.agreed_sample, SAMPLE_SHARE * self.limit.allowed)
        self.model.train()
        put_generators(generators, self.device)
        return seconds

    def agreed_sample(self, every: int) -> float:
        """Validate one example in `every`; return the estimated seconds of a whole validation (first process)."""
        assert self.sample_validation is not None
        return self.world.gather(self.sample_validation(every))[0]

    # --- interruptions ---

    def plan(self) -> dict[str, float | None]:
        """Return the settings that decide how long training lasts."""
        return {"steps": self.config.steps, "epochs": self.config.epochs, "max_minutes": self.config.max_minutes}

    def snapshot(self) -> Snapshot:
        """Return all that resuming needs."""
        model = {name: full_tensor(parameter) for name, parameter in self.model.named_parameters()}
        averages = {} if self.ema is None else self.ema.weights
        averages = {name: full_tensor(tensor) for name, tensor in averages.items()}
        return Snapshot(
            model=model,
            published=averages or model,
            optimizer={
                **optimizer_tensors(self.model, self.updater.optimizer),
                **generators_of_all(self.device, self.world),
                **{f"{AVERAGE}{name}": tensor for name, tensor in averages.items()},
            },
            state={
                "progress": asdict(self.progress),
                "plan": self.plan(),
                "splits": self.oom.splits,
                "window": self.window.state(),
                "watch": self.divergence.state(),
                "schedule": self.schedule.state(),
                "precision": self.updater.precision,
            },
        )

    def restore(self, optimizer: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Continue from a snapshot whose weights have been loaded into the model already.

        Args:
            optimizer: `Snapshot.optimizer`.
            state: `Snapshot.state`.
        """
        restore_optimizer(self.model, self.updater.optimizer, optimizer)
        restore_generators(optimizer, self.device, self.world, self.config.seed)
        if self.ema is not None:
            averages = {
                key.removeprefix(AVERAGE): value for key, value in optimizer.items() if key.startswith(AVERAGE)
            }
            self.ema.restore(averages or dict(self.model.named_parameters()))  # `--force` may have turned EMA on
        self.progress = Progress(**state["progress"])
        timed, changed = self.config.max_minutes is not None, state.get("plan", self.plan()) != self.plan()
        if changed or not timed:  # `--force` allows other settings and another corpus
            self.progress.total_steps, self.progress.fixed = self.planned_steps(), not timed
        self.progress.stopped_early = self.out_of_patience()
        self.oom.splits = state["splits"]
        self.window.restore(state["window"])
        self.divergence.restore(state["watch"])
        self.schedule.restore(state["schedule"])
        self.updater.precision = state["precision"]
