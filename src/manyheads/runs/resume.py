"""Checkpoints of a run that is being trained: kept, and gone back to."""

from __future__ import annotations

import json

from manyheads.checkpoint import Checkpoint, RunDirectory, load_weights, write_atomically
from manyheads.config.schema import TrainingConfig
from manyheads.errors import RunError
from manyheads.training.distributed import World
from manyheads.training.log import Listener
from manyheads.training.progress import Snapshot
from manyheads.training.trainer import Trainer

__all__ = ["forget_metrics_after", "resume", "save"]


def resume(run: RunDirectory, trainer: Trainer, listener: Listener) -> bool:
    """Put a trainer where the last good checkpoint stands; False if there is none.

    Raises:
        RunError: there are checkpoints, but none that can be used.
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
    """Remove the log points of updates that will be done again."""
    path = run.metrics_path
    if path.is_file():
        lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        kept = [line for line in lines if json.loads(line)["step"] <= step]
        write_atomically(path, "".join(f"{line}\n" for line in kept).encode())


def save(run: RunDirectory, snapshot: Snapshot, best: bool, config: TrainingConfig, world: World) -> None:
    """Keep a snapshot; publish its weights when they are the best, and first: a kill in between loses nothing."""
    if not world.is_main:
        return
    if best:
        run.publish(snapshot.published)
    step = snapshot.state["progress"]["step"]
    keep = max(config.keep_checkpoints, config.average_checkpoints)
    checkpoint = Checkpoint(step, snapshot.model, snapshot.optimizer, snapshot.state)
    run.checkpoints.save(checkpoint, keep, every=config.save_every)
