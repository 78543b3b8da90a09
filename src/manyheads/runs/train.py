"""Train a run from a configuration; the same call resumes after an interruption."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from manyheads import __version__
from manyheads.checkpoint import RunDirectory, saving
from manyheads.checkpoint.sharded import full_tensor
from manyheads.checkpoint.weights import average_tensors, load_weights
from manyheads.config.schema import Config
from manyheads.data.reading import READINGS
from manyheads.errors import require
from manyheads.runs.corpus import Corpus, open_corpus, read_corpus
from manyheads.runs.initialize import take_weights, with_initial_shape
from manyheads.runs.resume import (
    check_same_corpus,
    check_same_run,
    forget_metrics_after,
    recording_signals,
    resume,
    save,
)
from manyheads.runs.training_tasks import TrainingTask, prepare_task
from manyheads.runs.translation import Validation
from manyheads.training.compilation import check_compiler
from manyheads.training.distributed import ALONE, World, joined
from manyheads.training.log import NO_LISTENER, Listener, StepReport, ValidationReport
from manyheads.training.memory import keep_few_kernels, keep_freed_memory
from manyheads.training.precision import pick_device, pick_precision
from manyheads.training.snapshot import seed_process
from manyheads.training.trainer import Trainer

__all__ = ["RecordingListener", "TensorBoardListener", "TrainingSummary", "make_trainer", "train"]


@dataclass(frozen=True)
class TrainingSummary:
    """Result of a training.

    Attributes:
        out: run directory.
        step: number of updates.
        seconds: training time in seconds, without validation.
        metric, best, best_step: best validation score by `training.metric`, and its step.
        stopped_early: whether `training.patience` ended the training.
    """

    out: Path
    step: int
    seconds: float
    metric: str
    best: float
    best_step: int
    stopped_early: bool


def train(config: Config, out: Path, *, listener: Listener = NO_LISTENER, force: bool = False) -> TrainingSummary:
    """Train a model into a run directory, or resume a training there.

    Args:
        config: configuration of the run.
        out: run directory; if it holds a run, training resumes from its last checkpoint.
        listener: receives messages.
        force: whether to resume although configuration or corpus have changed.

    Raises:
        ConfigError, DataError: see the message.
        RunError: the directory holds other files, or a run of another configuration or corpus.
        KeyboardInterrupt, SystemExit: after Ctrl-C or SIGTERM; everything is saved.
    """
    keep_few_kernels()
    keep_freed_memory()
    if config.training.compile:
        check_compiler(pick_device(config.training.device))
    run = RunDirectory(out)
    with joined() as world:
        config = with_initial_shape(config, run, listener if world.is_main else NO_LISTENER)
        if not world.is_main:
            return train_here(config, run, world, NO_LISTENER, force)
        check_same_run(run, config, force)  # before anything is written there
        with run.locked():
            check_same_run(run, config, force)
            return train_here(config, run, world, listener, force)


def train_here(config: Config, run: RunDirectory, world: World, listener: Listener, force: bool) -> TrainingSummary:
    """Train in a locked directory; of several processes one writes."""
    if world.is_main:
        task = begin(config, run, read_corpus(config, run), listener, force)
        world.wait()
    else:
        world.wait()
        task = prepare_task(config, run, open_corpus(config, run), listener)
    trainer = make_trainer(task, run, world, listener)
    if not resume(run, trainer, listener) and world.is_main:
        forget_metrics_after(run, 0)
    if force and world.is_main:  # from here on the run is of this configuration and corpus
        task.begin(run, environment(task.corpus))
    if not (trainer.progress.finished and run.described):  # a kill may have come between the last save and the card
        with recording_signals(launched=world.size > 1) as requests:
            trainer.run(requests.stop, requests.save_now)
        if not trainer.progress.finished:
            listener.message(
                f"stopped and saved at step {trainer.progress.step:,}; run the same command again to resume"
            )
            requests.leave()
        finish(run, trainer, config, listener)
        if world.is_main:
            run.describe(task.card(trainer.progress))
    return summary(run.path, trainer, config)


def begin(config: Config, run: RunDirectory, corpus: Corpus, listener: Listener, force: bool) -> TrainingTask:
    """Prepare vocabularies and token ids, and write the files of a new run."""
    reading = READINGS[config.task]
    for name, counts in zip([config.data.train, *config.data.more], corpus.counts, strict=True):
        what = f" ({name})" if config.data.more else ""
        languages = "-".join(dict.fromkeys(config.languages))
        listener.message(f"{languages}{what}: {counts.describe(reading.noun, reading.other)}")
    check_same_corpus(run, corpus, force)
    task = prepare_task(config, run, corpus, listener)
    if task.too_long:
        listener.message(replace(corpus.total, too_long=task.too_long).describe(reading.noun, reading.other))
    if not run.exists:
        task.begin(run, environment(corpus))
    return task


def make_trainer(task: TrainingTask, run: RunDirectory, world: World, listener: Listener) -> Trainer:
    """Build the model and its trainer."""
    config = task.config
    device = pick_device(config.training.device)
    torch.manual_seed(config.training.seed)
    model = task.model()
    if config.model.init_from is not None and not run.checkpoints.steps():
        take_weights(model, config, task.tokenizers, task.classes, listener)
    model.to(device)
    seed_process(config.training.seed, world.rank)
    listener.message(
        f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters, vocabulary {task.vocabulary}"
    )
    if config.training.compile:
        listener.message("the layers are compiled for each new shape of a batch: the first updates take long")
    validate = task.validation(model, ALONE if config.training.shard else world)
    measured = config.expected(task.corpus.total.kept)
    if config.training.max_minutes is not None and config.measured.updates and measured is None:
        listener.message("the scores in [measured] are of other settings or text: nothing is expected from them")
    return Trainer(
        task.objective(model),
        config.training,
        task.updates(world),
        device=device,
        precision=pick_precision(config.training.precision, device),
        listener=recording(listener, run, config) if world.is_main else listener,
        validate=validate,
        save=lambda snapshot, best: save(run, snapshot, best, config.training, world),
        go_back=lambda trainer: resume(run, trainer, listener),
        world=world,
        sample_validation=validate.seconds if isinstance(validate, Validation) else None,
        measured=measured,
    )


def environment(corpus: Corpus) -> dict[str, Any]:
    """Return versions and machine of a run."""
    return {
        "manyheads": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "threads": torch.get_num_threads(),
        "corpus_sha256": corpus.sha256,
        "corpus": asdict(corpus.total),
    }


def finish(run: RunDirectory, trainer: Trainer, config: Config, listener: Listener) -> None:
    """Average the last checkpoints if configured, and publish the mean if it is better than the best one."""
    trainer.world.wait()
    steps = run.checkpoints.steps()[-config.training.average_checkpoints :]
    if len(steps) < 2:
        return
    model, progress, metric = trainer.model, trainer.progress, config.training.metric
    mean = average_tensors([run.checkpoints.weights(step) for step in steps])
    load_weights(model, mean, "the mean of the checkpoints")
    value = trainer.score().value(metric)
    better = value is not None and (progress.best is None or value > progress.best)
    verdict = "better, kept" if better else "not better, left"
    figure = "none" if value is None else f"{abs(value):.3f}"
    listener.message(f"mean of the last {len(steps)} checkpoints: {metric} {figure} ({verdict})")
    if better:
        weights = {name: full_tensor(parameter) for name, parameter in model.named_parameters()}
        if trainer.world.is_main:
            run.publish(weights)
        progress.best, progress.best_step = value, progress.step


def summary(out: Path, trainer: Trainer, config: Config) -> TrainingSummary:
    """Return the result of a training."""
    progress, metric = trainer.progress, config.training.metric
    best = progress.best if progress.best is not None else math.nan
    return TrainingSummary(
        out=out,
        step=progress.step,
        seconds=progress.seconds,
        metric=metric,
        best=-best if metric == "loss" else best,
        best_step=progress.best_step,
        stopped_early=progress.stopped_early,
    )


# --- logs ---


def recording(listener: Listener, run: RunDirectory, config: Config) -> Listener:
    """Return a listener that also writes metrics.jsonl, and TensorBoard files if configured."""
    if config.training.tensorboard:
        listener = TensorBoardListener(listener, run.path / "tensorboard")
    return RecordingListener(listener, run.metrics_path)


class RecordingListener:
    """Forwards all reports, and appends log points and validations to a file, one JSON object a line."""

    def __init__(self, listener: Listener, path: Path) -> None:
        self.listener = listener
        self.path = path

    def message(self, text: str) -> None:
        """Forward a message."""
        self.listener.message(text)

    def step(self, report: StepReport) -> None:
        """Log a training step."""
        self.append({"kind": "step", **asdict(report)})
        self.listener.step(report)

    def validation(self, report: ValidationReport) -> None:
        """Log a validation."""
        self.append({"kind": "validation", **report.plain()})
        self.listener.validation(report)

    def append(self, record: Mapping[str, Any]) -> None:
        """Append a line; values that are not finite become null."""
        plain = {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in record.items()
        }
        with saving("the log", self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(plain, ensure_ascii=False, allow_nan=False) + "\n")


class TensorBoardListener:
    """Forwards all reports, and writes scalars and a sample for TensorBoard."""

    def __init__(self, listener: Listener, folder: Path) -> None:
        """Open the folder; raises `MissingExtraError` if TensorBoard is not installed."""
        self.listener = listener
        require("tensorboard", extra="tensorboard", purpose="training.tensorboard")
        writer = require("torch.utils.tensorboard", extra="tensorboard", purpose="training.tensorboard")
        self.writer = writer.SummaryWriter(str(folder))

    def message(self, text: str) -> None:
        """Forward a message."""
        self.listener.message(text)

    def step(self, report: StepReport) -> None:
        """Log a training step."""
        self.scalars("train", report.step, asdict(report))
        self.listener.step(report)

    def validation(self, report: ValidationReport) -> None:
        """Log a validation."""
        self.scalars("valid", report.step, report.plain())
        if report.sample is not None:
            self.writer.add_text("sample", "\n\n".join(report.sample), report.step)
        self.writer.flush()
        self.listener.validation(report)

    def scalars(self, group: str, step: int, values: Mapping[str, Any]) -> None:
        """Write every number of a report."""
        for name, value in values.items():
            if isinstance(value, int | float) and name != "step":
                self.writer.add_scalar(f"{group}/{name}", value, step)
