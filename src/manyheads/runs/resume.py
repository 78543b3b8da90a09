"""Checkpoints of a run in training, and whether a training belongs to the run that a directory holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyheads.checkpoint import Checkpoint, RunDirectory, load_weights, write_atomically
from manyheads.config.schema import Config, TrainingConfig
from manyheads.errors import RunError
from manyheads.runs.corpus import Corpus
from manyheads.training.distributed import World
from manyheads.training.log import Listener
from manyheads.training.progress import Snapshot
from manyheads.training.trainer import Trainer

__all__ = ["check_same_corpus", "check_same_run", "forget_metrics_after", "resume", "save"]


def resume(run: RunDirectory, trainer: Trainer, listener: Listener) -> bool:
    """Restore a trainer from the last good checkpoint; return False if there is none.

    Raises:
        RunError: there are checkpoints, but none can be read.
    """
    trainer.world.wait()  # for the one that writes
    steps = run.checkpoints.steps()
    for step in reversed(steps):
        try:
            checkpoint = run.checkpoints.read(step)
        except RunError as error:
            listener.message(f"warning: {error}")
            continue
        load_weights(trainer.model, checkpoint.model, f"checkpoint {step}")
        trainer.restore(checkpoint.optimizer, checkpoint.state)
        listener.message(f"going on after step {step:,}")
        if trainer.world.is_main:
            forget_metrics_after(run, step)
        return True
    if steps:
        raise RunError(
            f"no checkpoint in {run.path / 'checkpoints'} can be used. Copy the run again, or remove that folder "
            "to train from the start."
        )
    return False


def forget_metrics_after(run: RunDirectory, step: int) -> None:
    """Remove the log points of updates that will be repeated."""
    path = run.metrics_path
    if path.is_file():
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        kept = [line for line in lines if json.loads(line)["step"] <= step]
        write_atomically(path, "".join(f"{line}\n" for line in kept).encode())


def save(run: RunDirectory, snapshot: Snapshot, best: bool, config: TrainingConfig, world: World) -> None:
    """Save a checkpoint; before that, publish its weights if they are the best, so that a kill loses nothing."""
    if not world.is_main:
        return
    if best:
        run.publish(snapshot.published)
    step = snapshot.state["progress"]["step"]
    keep = max(config.keep_checkpoints, config.average_checkpoints)
    checkpoint = Checkpoint(step, snapshot.model, snapshot.optimizer, snapshot.state)
    run.checkpoints.save(checkpoint, keep, every=config.save_every)


FREE_TO_CHANGE = {
    "data.root",
    "training.keep_checkpoints",
    "training.log_every",
    "training.save_every",
    "training.workers",
}


def check_same_run(run: RunDirectory, config: Config, force: bool) -> None:
    """Check that a directory is empty, or holds a run of the same configuration."""
    if run.exists:
        check_same_config(run.config(), config, force)
    else:
        refuse_foreign(run.path)


def refuse_foreign(out: Path) -> None:
    """Check that a directory without a run holds only remains of an interrupted start."""
    ours = ("cache", "tokenizer.", "labels.json", "languages.json", "environment.json", ".")  # .lock, and drafts
    if out.exists() and not (out.is_dir() and all(path.name.startswith(ours) for path in out.iterdir())):
        raise RunError(f"{out} exists and is no run of manyheads. Choose another --out.")


def check_same_config(old: Config, new: Config, force: bool) -> None:
    """Check that the configuration is the same; the error names the differences."""
    before, after = flat(old.model_dump()), flat(new.model_dump())
    parts = ("task", "data", "tokenizer", "model", "training")
    differing = [
        f"{key}: {before[key]!r} then, {after[key]!r} now"
        for key in before
        if before[key] != after[key] and key not in FREE_TO_CHANGE and key.partition(".")[0] in parts
    ]
    if differing and not force:
        raise RunError(
            f"this run was started with another configuration ({'; '.join(differing)}). "
            "Choose another --out, or go on anyway with --force."
        )


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """{'a': {'b': 1}} -> {'a.b': 1}."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {prefix + key: value}
    return found


def check_same_corpus(run: RunDirectory, corpus: Corpus, force: bool) -> None:
    """Check that the text is the same."""
    if run.exists and not force and run.environment().get("corpus_sha256") != corpus.sha256:
        raise RunError(
            "the corpus has changed since this run was started. Choose another --out, or go on anyway with --force."
        )
