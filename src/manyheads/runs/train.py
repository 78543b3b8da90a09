"""Train a run from a configuration; the same call resumes after an interruption."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bitext.shell import command_line
from manyheads import __version__
from manyheads.allocator import keep_few_kernels, keep_freed_memory
from manyheads.checkpoint.checkpoints import TrainingRun
from manyheads.checks.lines import LineCounts
from manyheads.config.schema import Config
from manyheads.data.reading import READINGS, describe_too_long
from manyheads.data.training_text import Corpus, name_limit, open_corpus, read_corpus, validation_examples
from manyheads.errors import TrainingError
from manyheads.inference.translation.confidence import CONFIDENCE
from manyheads.reports import NO_LISTENER, Advance, Listener
from manyheads.runs.listeners import recording
from manyheads.runs.model_card import trained_card
from manyheads.runs.resume import RunStorage, check_same_corpus, check_same_run, forget_metrics_after
from manyheads.runs.signals import Requests
from manyheads.tensors.devices import pick_device, pick_precision
from manyheads.tensors.weights import average_tensors
from manyheads.training.distributed import ALONE, World, join_world
from manyheads.training.initialize import take_weights, with_initial_shape
from manyheads.training.interruption import Interrupted, Watch
from manyheads.training.progress import Progress
from manyheads.training.registry import prepare_task
from manyheads.training.snapshot import full_tensors, seed_process
from manyheads.training.task import TrainingTask
from manyheads.training.time_limit import TimedValidation
from manyheads.training.trainer import Trainer

_EXAMINED_PAIRS = 2_000  # evenly spread over the text


@dataclass(frozen=True)
class TrainingSummary:
    """Result of a training.

    Attributes:
        out: run directory.
        step: number of updates.
        seconds: training time in seconds, without validation.
        metric, best, best_step: best validation score by `training.metric`, and its step.
        stopped_early: whether `training.patience` ended the training.
        used: seconds of `training.max_minutes` that were used, by all commands; None without a limit.
    """

    out: Path
    step: int
    seconds: float
    metric: str
    best: float
    best_step: int
    stopped_early: bool
    used: float | None = None


def train(
    config: Config,
    out: str | Path,
    *,
    listener: Listener = NO_LISTENER,
    force: bool = False,
    start_time: float | None = None,
) -> TrainingSummary:
    """Train a model into a run directory, or resume a training there.

    Args:
        config: configuration of the run.
        out: run directory; if it holds a run, training resumes from its last checkpoint.
        listener: receives messages.
        force: whether to resume although configuration or corpus have changed.
        start_time: reading of `time.perf_counter` from which `training.max_minutes` counts; now by default.

    Raises:
        ConfigError, DataError: see the message.
        RunError: the directory holds other files, or a run of another configuration or corpus.
        KeyboardInterrupt, SystemExit: after Ctrl-C, SIGTERM or SIGHUP; everything is saved.
    """
    start_time = time.perf_counter() if start_time is None else start_time
    keep_few_kernels()
    keep_freed_memory()
    run = TrainingRun(Path(out))
    with join_world() as world:
        config = with_initial_shape(config, run, listener if world.is_main else NO_LISTENER)
        if not world.is_main:
            return _train_here(config, run, world, NO_LISTENER, force, start_time)
        check_same_run(run, config, force)  # before anything is written there
        with run.locked():
            check_same_run(run, config, force)
            return _train_here(config, run, world, listener, force, start_time)


def _train_here(
    config: Config, run: TrainingRun, world: World, listener: Listener, force: bool, start_time: float
) -> TrainingSummary:
    """Train in a locked directory; only the main process writes."""
    if world.is_main:
        task = _begin(config, run, read_corpus(config, run.path, listener), listener, force)
        world.wait()
    else:
        world.wait()
        task = prepare_task(config, run, open_corpus(config, run.path), listener)
    requests = Requests()
    watch = Watch(listener, requests.stop, world)
    trainer = make_trainer(task, run, watch, prepared=time.perf_counter() - start_time)
    snapshot = trainer.storage.load()
    if snapshot is not None:
        trainer.restore(snapshot)
        listener.message(f"resuming after step {trainer.progress.step:,}")
    elif world.is_main:
        forget_metrics_after(run, 0)
    if force and world.is_main:  # from here on the run is of this configuration and corpus
        task.begin(run, _environment(config, task.corpus))
    trained = not (trainer.progress.complete and run.described)
    if trained:  # a kill may have come between the last save and the card
        requests.stop_message = lambda: trainer.stop_message
        with requests.recorded(listener, launched=world.size > 1):
            try:
                trainer.run(requests.stop, requests.save_now)
                if not trainer.progress.complete:
                    raise Interrupted
                _finish(run, trainer, config, watch)
                if world.is_main:
                    task.finish()
            except Interrupted:
                listener.message(_stopped_text(trainer.progress))
                requests.leave()
            except TrainingError as error:
                if steps := run.checkpoints.steps():
                    raise TrainingError(f"{error} The checkpoint of step {steps[-1]:,} is good.") from error
                raise
        if world.is_main:
            run.describe(trained_card(config, task.tokenizers, trainer.progress, task.classes))
    elif world.is_main and not (run.path / CONFIDENCE).is_file():
        task.finish()  # of an older version
    return _summary(run.path, trainer, config)


def _stopped_text(progress: Progress) -> str:
    """Return the message about a training that was stopped by a signal."""
    if not progress.step:
        return "stopped before the first update; run the same command again to start"
    return f"stopped and saved at step {progress.step:,}; run the same command again to resume"


def _begin(config: Config, run: TrainingRun, corpus: Corpus, listener: Listener, force: bool) -> TrainingTask:
    """Prepare vocabularies and token ids, and write the files of a new run."""
    reading = READINGS[config.spec.reads]
    for name, counts in zip(config.data.corpus_names, corpus.counts, strict=True):
        languages = "-".join(dict.fromkeys(config.languages))
        corpus_name = f"{languages} ({name})" if config.data.more else languages
        shown = name if config.multilingual else corpus_name
        listener.message(f"{shown}: {counts.describe(reading.noun, reading.other)}")
    check_same_corpus(run, corpus, force)
    task = prepare_task(config, run, corpus, listener)
    if task.too_long:
        listener.message(describe_too_long(corpus.total.kept, task.too_long, name_limit(config), reading.noun))
    if not run.exists:
        _warn_of_defects(corpus, listener)
        task.begin(run, _environment(config, corpus))
    return task


def _warn_of_defects(corpus: Corpus, listener: Listener) -> None:
    """Name the defects of lines of the training text, such as subword pieces, from a sample."""
    for name, texts in zip(("source", "target"), corpus.train.sides(_EXAMINED_PAIRS), strict=True):
        counts = LineCounts()
        for row, text in zip(texts.rows, texts, strict=True):
            counts.add(text, int(corpus.train.lines[row]))
        for finding in counts.findings(f"train, {name}"):
            cure = command_line("manyheads", "doctor", "--explain", finding.name)
            listener.message(f"warning: {finding.evidence}. Cure: {cure}")


def make_trainer(task: TrainingTask, run: TrainingRun, watch: Watch, *, prepared: float = 0.0) -> Trainer:
    """Build the model and its trainer; `prepared` are the seconds that the preparation took."""
    config, world, listener = task.config, watch.world, watch.listener
    device = pick_device(config.training.device)
    torch.manual_seed(config.training.seed)
    model = task.model()
    if config.model.init_from is not None and not run.checkpoints.steps():
        take_weights(model, task.task, config, task.tokenizers, task.classes, listener)
    model.to(device)
    seed_process(config.training.seed, world.rank)
    listener.message(
        f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters, vocabulary {task.vocabulary}"
    )
    validate = task.validation(model, ALONE if config.training.shard else world, watch)
    return Trainer(
        task.objective(model),
        config.training,
        task.updates(world),
        device=device,
        precision=pick_precision(config.training.precision, device),
        listener=recording(listener, run, config) if world.is_main else listener,
        validate=validate,
        storage=RunStorage(run, config.training, world, listener),
        world=world,
        timed_validation=validate if isinstance(validate, TimedValidation) else None,
        prepared=prepared,
    )


def _environment(config: Config, corpus: Corpus) -> dict[str, Any]:
    examples = [] if config.spec.decodes else validation_examples(config, corpus.valid)  # else the log has some
    return {
        "manyheads": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "threads": torch.get_num_threads(),
        "corpus_sha256": corpus.sha256,
        "corpus": asdict(corpus.total),
        "examples": examples,
    }


def _finish(run: TrainingRun, trainer: Trainer, config: Config, watch: Watch) -> None:
    """Average the last checkpoints if configured, and publish the mean if it is better than the best weights.

    Raises:
        Interrupted: a stop was requested; the same command averages again.
    """
    trainer.world.wait()
    steps = run.checkpoints.steps()[-config.training.average_checkpoints :]
    if len(steps) < 2:
        return
    limit = trainer.limit
    if limit is not None and not trainer.world.gather(limit.affords_average())[0]:
        watch.listener.message(
            f"the mean of the last {len(steps)} checkpoints is not tried: the time is over. "
            f"To make it: {command_line('manyheads', 'train', 'average', run.path, '--last', str(len(steps)))}"
        )
        return
    with trainer.stopping_with(f"stopping; the checkpoint of step {trainer.progress.step:,} is saved"):
        with watch.phase("averaging checkpoints", len(steps), "checkpoints") as advance:
            mean = average_tensors(_weights_of(run, steps, advance))
        if trainer.try_weights(mean, f"mean of the last {len(steps)} checkpoints"):
            weights = full_tensors(dict(trainer.model.named_parameters()))
            if trainer.world.is_main:
                run.publish(weights)


def _weights_of(run: TrainingRun, steps: Sequence[int], advance: Advance) -> list[dict[str, Tensor]]:
    """Read the weights of checkpoints; `advance` is called after each."""
    weights = []
    for step in steps:
        weights.append(run.checkpoints.weights(step))
        advance(1)
    return weights


def _summary(out: Path, trainer: Trainer, config: Config) -> TrainingSummary:
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
        used=None if trainer.limit is None else trainer.limit.elapsed,
    )
