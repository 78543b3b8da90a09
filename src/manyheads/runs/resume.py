"""Save and resume a training: its checkpoints, and their mean as a new run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyheads.checkpoint import RunDirectory, read_bytes, write_atomically
from manyheads.checkpoint.checkpoints import Checkpoint, TrainingRun, not_finite
from manyheads.config.schema import FREE_TO_CHANGE, Config, TrainingConfig
from manyheads.data.training_text import Corpus
from manyheads.errors import RunError, TrainingError
from manyheads.files import new_folder, saving
from manyheads.inference.labels import LABELS
from manyheads.reports import Listener
from manyheads.tensors.weights import average_tensors
from manyheads.training.distributed import World
from manyheads.training.registry import task_of
from manyheads.training.snapshot import Snapshot

if TYPE_CHECKING:
    from torch import Tensor

_KEPT_CHECKPOINTS = 2  # besides the best weights
_COMPARED_SECTIONS = ("task", "data", "tokenizer", "model", "training")


# --- checkpoints ---


def forget_metrics_after(run: RunDirectory, step: int, *, pending: bool = False) -> None:
    """Remove the log points of updates that will be repeated, and with `pending` the validation of the step."""
    if lines := run.log():
        last = {"step": step, "validation": step - pending}
        earlier = [line + b"\n" for line in lines[:-1] if _is_up_to(last, line)]
        with saving("the log", run.metrics_path):
            write_atomically(run.metrics_path, b"".join(earlier))


def _is_up_to(last: Mapping[str, int], line: bytes) -> bool:
    """Return whether the step of a line of the log is not after the last one of its kind; not if it is damaged."""
    try:
        record = json.loads(line)
        return bool(record["step"] <= last[record["kind"]])
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


class RunStorage:
    """The checkpoints of a training in its run directory (`Storage`); only the main process writes."""

    def __init__(self, run: TrainingRun, config: TrainingConfig, world: World, listener: Listener) -> None:
        self.run = run
        self.every = config.save_every
        self.keep = max(_KEPT_CHECKPOINTS, config.average_checkpoints)
        self.world = world
        self.listener = listener

    def save(self, snapshot: Snapshot) -> None:
        """Store a checkpoint; if its validation is pending, the checkpoint before it is kept until then."""
        progress = snapshot.state["progress"]
        checkpoint = Checkpoint(progress["step"], snapshot.model, snapshot.optimizer, snapshot.state)
        if name := not_finite(checkpoint.model | checkpoint.optimizer):
            raise TrainingError(
                f"{name} is not finite at step {checkpoint.step}: not saved. "
                "Try a lower training.learning_rate or a longer warm-up."
            )
        if self.world.is_main:
            self.run.checkpoints.save(checkpoint, self.keep + progress["pending"], every=self.every)

    def confirm(self, step: int, state: Mapping[str, Any], best: Mapping[str, Tensor] | None) -> None:
        """Publish the best weights, then store the state that knows of them, so that a kill loses nothing."""
        if self.world.is_main:
            if best is not None:
                self.run.publish(best)
            self.run.checkpoints.replace_state(step, state)
            self.run.checkpoints.prune(step, self.keep, every=self.every)

    def discard(self, step: int) -> None:
        """Remove the checkpoint of a step."""
        if self.world.is_main:
            self.run.checkpoints.remove(step)

    def load(self) -> Snapshot | None:
        """Return the last good checkpoint, and forget what was logged after it; None if there is none.

        Raises:
            RunError: there are checkpoints, but none can be read.
        """
        self.world.wait()  # for the process that writes
        steps = self.run.checkpoints.found()
        for step in reversed(steps):
            try:
                checkpoint = self.run.checkpoints.read(step)
            except RunError as error:
                self.listener.message(f"warning: {error}")
                continue
            if self.world.is_main:
                forget_metrics_after(self.run, step, pending=checkpoint.state["progress"].get("pending", False))
            return Snapshot(checkpoint.model, checkpoint.optimizer, checkpoint.state)
        if steps:
            raise RunError(
                f"no checkpoint in {self.run.path / 'checkpoints'} can be used. Copy the run again, or remove that "
                "folder to train from the start."
            )
        return None


def average(run: Path, *, last: int | None = None, out: Path | None = None) -> Path:
    """Average the weights of the last checkpoints; write them as a new run directory without checkpoints.

    Args:
        run: run directory.
        last: number of checkpoints (default: all).
        out: new run directory (default: RUN-averaged).

    Raises:
        RunError: there are fewer checkpoints, or `out` exists.
    """
    source = TrainingRun.existing(run)
    steps = source.checkpoints.steps()
    if not steps or (last is not None and last > len(steps)):
        raise RunError(
            f"{run} keeps {len(steps)} checkpoints, {last or 1} are wanted. "
            "Train with a larger training.average_checkpoints."
        )
    out = out or run.with_name(f"{run.name}-averaged")
    with new_folder(out) as draft:
        mean = average_tensors([source.checkpoints.weights(step) for step in steps[-last if last else 0 :]])
        for path in [*run.glob("tokenizer.*"), *map(run.joinpath, ("environment.json", LABELS, "config.json"))]:
            if path.exists():
                write_atomically(draft / path.name, read_bytes(path))
        averaged = RunDirectory(draft)
        averaged.publish(mean)
        task_of(averaged.config()).open_model(averaged)  # raises `RunError` if it cannot be opened
    return out


# --- comparison of a training with the run in its directory ---


def check_same_run(run: RunDirectory, config: Config, force: bool) -> None:
    """Check that a directory is empty, or holds a run of the same configuration."""
    if run.exists:
        _check_same_config(run.config(), config, force)
    else:
        _refuse_foreign(run.path)


def _refuse_foreign(out: Path) -> None:
    """Check that a directory without a run holds only remains of an interrupted start."""
    names = (
        "cache",
        "tokenizer.",
        "labels.json",
        "languages.json",
        "source_model.json",
        "environment.json",
        ".",
    )  # .lock, and drafts
    if out.exists() and not (out.is_dir() and all(path.name.startswith(names) for path in out.iterdir())):
        raise RunError(f"{out} exists and is no run of manyheads. Choose another --output.")


def _check_same_config(old: Config, new: Config, force: bool) -> None:
    """Check that the configuration is the same; the error names the differences."""
    before, after = old.flat(), new.flat()
    differing = [
        f"{key}: {before[key]!r} then, {after[key]!r} now"
        for key in before
        if before[key] != after[key] and key not in FREE_TO_CHANGE and key.partition(".")[0] in _COMPARED_SECTIONS
    ]
    if differing and not force:
        raise RunError(
            f"this run was started with another configuration ({'; '.join(differing)}). "
            "Choose another --output, or resume anyway with --force."
        )


def check_same_corpus(run: RunDirectory, corpus: Corpus, force: bool) -> None:
    """Check that the text is the same."""
    if run.exists and not force and run.environment().get("corpus_sha256") != corpus.sha256:
        raise RunError(
            "the corpus has changed since this run was started. "
            "Choose another --output, or resume anyway with --force."
        )
