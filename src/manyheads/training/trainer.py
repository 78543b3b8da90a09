"""The loop that turns batches into weights.

An update: the pairs of one batch in `accumulation` parts -> loss summed over target tokens / their number in the
whole update -> gradients -> clipped -> optimiser. All that the loop depends on is in `Progress`, the optimiser,
the schedule and torch's generators; `snapshot` and `restore` carry them over an interruption.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from manyheads.config.schema import MeasuredConfig, TrainingConfig
from manyheads.errors import TrainingError
from manyheads.model.sharded import full_tensor
from manyheads.training.distributed import ALONE, World
from manyheads.training.divergence import DivergenceDetector
from manyheads.training.ema import ExponentialMovingAverage
from manyheads.training.feed import Pairs, Updates, updates_ahead
from manyheads.training.generators import generators_of_all, put_generators, restore_generators, take_generators
from manyheads.training.log import Listener, ValidationReport
from manyheads.training.objective import Objective
from manyheads.training.oom import OomRecovery
from manyheads.training.optimizer import optimizer_tensors, restore_optimizer
from manyheads.training.part import Part
from manyheads.training.precision import Precision
from manyheads.training.progress import Progress, Snapshot, Window
from manyheads.training.schedule import Schedule
from manyheads.training.timing import SAMPLE_SHARE, TimeLimit, sampled_validation
from manyheads.training.update import Updater

__all__ = ["Trainer"]

MOST_SKIPPED = 20  # updates in a row without a finite gradient before training gives up
MOST_ROLLBACKS = 3
AVERAGE = "average."  # before the names of averaged weights in a checkpoint


def never() -> bool:
    """Nobody asks for anything, and nothing is kept."""
    return False


class Trainer:
    """Trains a model to the end of its plan, validating and saving on the way."""

    def __init__(
        self,
        objective: Objective,
        config: TrainingConfig,
        updates: Updates,
        *,
        device: torch.device,
        precision: Precision,
        listener: Listener,
        validate: Callable[[int], ValidationReport],
        save: Callable[[Snapshot, bool], None],
        go_back: Callable[[], bool] = never,
        world: World = ALONE,
        sample_validation: Callable[[int], float] | None = None,
        measured: MeasuredConfig | None = None,
    ) -> None:
        """Set up; nothing is computed yet.

        Args:
            objective: the model, whose weights are changed in place, with its loss.
            config: the plan.
            updates: where batches come from.
            device: where the model is.
            precision: number format of the products.
            listener: who is told.
            validate: scores the model at a step; its `best` is filled in here.
            save: keeps a snapshot; the second argument says whether it is the best so far.
            go_back: calls `restore` with the last snapshot kept, and puts its weights into the model; False when
                there is none.
            world: the processes that train together.
            sample_validation: validates one pair in n, and returns the seconds that all of them would take;
                for a time limit. Unless given, `validate` is timed.
            measured: scores by number of updates that hold for this training; they tell what a time limit gives.
        """
        self.model = model = objective.model
        self.config = config
        self.updates = updates
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

    def planned_steps(self) -> int:
        """Updates that the configuration asks for, before any time limit."""
        if self.config.epochs is None:
            return self.config.steps
        return len(self.updates.epoch(0)) * self.config.epochs

    def plan(self) -> dict[str, float | None]:
        """The settings that say how long training goes on."""
        return {name: getattr(self.config, name) for name in ("steps", "epochs", "max_minutes")}

    # --- the loop ---

    def run(self, stop: Callable[[], bool] = never, save_now: Callable[[], bool] = never) -> None:
        """Train until the plan is fulfilled or patience runs out.

        Args:
            stop: asked after each update; once it is true, a snapshot is saved and training ends there.
            save_now: asked after each update; when it is true, a snapshot is saved and training goes on.

        Raises:
            TrainingError: too many updates in a row had no finite gradient, or memory ran out.
        """
        start = time.perf_counter()
        self.model.train()
        self.try_heaviest()
        if not self.progress.fixed:
            self.limit.validation = self.time_validation()
            self.limit.spent = time.perf_counter() - start
        start = time.perf_counter()
        while not self.finished():
            plan = self.updates.epoch(self.progress.epoch)
            epoch, first = self.progress.epoch, self.progress.position
            for pairs, batches in updates_ahead(self.updates, epoch, plan, first, self.config.workers, self.device):
                rate = self.update(pairs, batches, start)
                if self.tell(rate, len(plan)):
                    start = time.perf_counter()
                    break  # training went back to a checkpoint, maybe of another epoch
                saving = self.planned(self.config.save_every)
                if saving:
                    self.checkpoint()
                stopping, asked = self.world.total([stop(), save_now()])
                if (stopping or asked) and not saving:
                    self.save(self.snapshot(), False)
                if stopping or self.finished():
                    return
                start = time.perf_counter()
            else:
                self.progress.epoch, self.progress.position = self.progress.epoch + 1, 0

    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.progress.stopped_early or self.progress.step >= self.progress.total_steps

    def planned(self, every: int) -> bool:
        """Whether something that is due every so many updates, and after the last, is due now."""
        return self.progress.step >= self.progress.total_steps or self.progress.step % every == 0

    def tell(self, rate: float, epoch_updates: int) -> bool:
        """Report at a log point; True when training diverged there and has gone back."""
        if not self.planned(self.config.log_every):
            return False
        report = self.window.report(self.progress, rate, epoch_updates, self.world)
        self.window = Window()
        self.listener.step(report)
        return self.divergence.see(report.loss) and self.diverged(report.loss)

    def diverged(self, loss: float) -> bool:
        """Warn of a loss far above its running mean, or go back before it."""
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
        if not self.go_back():
            cure = "Try a lower training.learning_rate or a longer warm-up."
            raise TrainingError(f"{what}, and there is no checkpoint to go back to. {cure}")
        self.progress.rollbacks = rollbacks
        self.listener.message(f"warning: {what}. Back to step {self.progress.step:,}, at half the rate.")
        return True

    # --- an update ---

    def update(self, pairs: Pairs, batches: Sequence[Part], start: float) -> float:
        """One optimiser update on these pairs, begun at a reading of the clock; returns its learning rate."""
        progress, shapes = self.progress, self.updater.layers.shapes
        known = len(shapes)
        tokens = self.world.total([sum(batch.target_tokens for batch in batches)])[0]
        for sums in self.oom.gradients(batches, tokens, lambda: self.updates.describe(pairs)):
            self.window.add(*sums)
        rate = self.schedule.rate(progress.step + 1, progress.total_steps) * 0.5**progress.rollbacks
        norm = self.updater.apply(rate, progress.step + 1)
        if math.isfinite(norm):
            self.window.norm += norm
            self.window.updates += 1
            progress.skipped_in_row = 0
            if self.ema is not None:
                self.ema.update(self.model, progress.step + 1)
        else:
            self.skip(pairs)
        seconds = time.perf_counter() - start
        self.window.seconds += seconds
        progress.advance(seconds)
        if not progress.fixed:
            self.measure(seconds, tokens, compiled=len(shapes) > known)
        return rate

    def try_heaviest(self) -> None:
        """Compute the gradients that need the most memory, and drop them: if it runs out, then now."""
        if self.finished():
            return
        position = self.updates.heaviest()
        pairs = self.updates.epoch(0)[position]
        batches = self.updates.batches(0, position, pairs)
        generators = take_generators(self.device)
        self.oom.gradients(batches, 1.0, lambda: self.updates.describe(pairs))
        self.updater.forget()
        put_generators(generators, self.device)

    def skip(self, pairs: Pairs) -> None:
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

    def measure(self, seconds: float, tokens: float, *, compiled: bool) -> None:
        """Time the first updates, then fix the number of steps that fit into `max_minutes`.

        An update in which a process compiled its layers tells nothing about those to come. A checkpoint is saved to
        time it, too.
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

    # --- validation ---

    def checkpoint(self) -> None:
        """Validate, note whether this is the best so far, and save."""
        with self.published():
            report = self.score()
        best = self.note(report)
        self.listener.validation(replace(report, best=best))
        self.save(self.snapshot(), best)

    def score(self) -> ValidationReport:
        """Validate the weights that the model has now."""
        self.model.eval()
        with self.updater.unsharded(), torch.inference_mode():
            report = self.validate(self.progress.step)
        self.model.train()
        return report

    def time_validation(self) -> float:
        """Return the seconds that a validation takes; what training depends on stays as it is."""
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
        """Validate one pair in `every`; the seconds are those of the first process."""
        assert self.sample_validation is not None
        return self.world.gather(self.sample_validation(every))[0]

    def published(self) -> AbstractContextManager[None]:
        """While open, the model has the weights that translate."""
        return nullcontext() if self.ema is None else self.ema.instead(self.model)

    def note(self, report: ValidationReport) -> bool:
        """Compare with the best so far and count patience; returns whether it is the best."""
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
        best = progress.note(value)
        if not self.updater.pace.complete(progress.step):  # layers that learn later may still bring something
            progress.waited = 0
        progress.stopped_early = self.out_of_patience()
        return best

    def out_of_patience(self) -> bool:
        """Whether too many validations in a row brought nothing better."""
        return self.config.patience is not None and self.progress.waited >= self.config.patience

    # --- interruptions ---

    def snapshot(self) -> Snapshot:
        """All that resuming needs."""
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
        """Go on from a snapshot; the model's weights have been loaded already."""
        restore_optimizer(self.model, self.updater.optimizer, optimizer)
        restore_generators(optimizer, self.device, self.world, self.config.seed)
        if self.ema is not None:
            found = {
                key.removeprefix(AVERAGE): value for key, value in optimizer.items() if key.startswith(AVERAGE)
            }
            self.ema.restore(found or dict(self.model.named_parameters()))  # it may have been asked for by force
        self.progress = Progress(**state["progress"])
        timed, changed = self.config.max_minutes is not None, state.get("plan", self.plan()) != self.plan()
        if changed or not timed:  # settings or corpus may have been changed by force
            self.progress.total_steps, self.progress.fixed = self.planned_steps(), not timed
        self.progress.stopped_early = self.out_of_patience()
        self.oom.splits = state["splits"]
        self.window.restore(state["window"])
        self.divergence.restore(state["watch"])
        self.schedule.restore(state["schedule"])
        self.updater.precision = state["precision"]
