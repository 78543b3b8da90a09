"""Checkpoints, from which a training resumes: one folder each, written atomically, with checksums of its files."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyheads.checkpoint.files import (
    as_json,
    read_json,
    read_tensors,
    saving,
    sha256,
    sync,
    write_atomically,
    write_tensors,
)
from manyheads.errors import RunError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["WEIGHTS", "Checkpoint", "Checkpoints"]

WEIGHTS = "model.safetensors"
OPTIMIZER = "optimizer.safetensors"
STATE = "state.json"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint: tensors by name, and the rest of the state."""

    step: int
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict[str, Any]


class Checkpoints:
    """The checkpoints of a run, by step.

    Attributes:
        folder: folder of all checkpoints, which may not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def folder_of(self, step: int) -> Path:
        """Return the folder of the checkpoint of a step."""
        return self.folder / f"step-{step}"

    def steps(self) -> list[int]:
        """Return the steps that have a checkpoint, in order."""
        paths = self.folder.glob("step-*")
        return sorted(int(path.name.removeprefix("step-")) for path in paths if path.name[5:].isdigit())

    def save(self, checkpoint: Checkpoint, keep: int, *, every: int = 1) -> None:
        """Write a checkpoint atomically, then remove all later ones, and all but the last `keep`.

        Only this checkpoint and those of every `every`-th step are kept: a checkpoint that was saved in between on
        request must not take the place of a planned one when checkpoints are averaged.

        Raises:
            SaveError: the checkpoint could not be written; earlier ones are intact.
        """
        folder = self.folder_of(checkpoint.step)
        draft = folder.with_name(f".{folder.name}.draft")
        for cancelled in self.folder.glob(".step-*.draft"):  # left by a killed process
            shutil.rmtree(cancelled, ignore_errors=True)
        try:
            with saving(f"the checkpoint of step {checkpoint.step}", self.folder):
                draft.mkdir(parents=True)
                write_tensors(draft / WEIGHTS, checkpoint.model)
                write_tensors(draft / OPTIMIZER, checkpoint.optimizer)
                sums = {name: sha256(draft / name) for name in (WEIGHTS, OPTIMIZER)}
                sums[STATE] = hashlib.sha256(as_json(checkpoint.state)).hexdigest()
                write_atomically(draft / STATE, as_json({"sha256": sums, "state": checkpoint.state}))
                sync(draft)
                shutil.rmtree(folder, ignore_errors=True)
                draft.rename(folder)
                sync(self.folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        self.prune(checkpoint.step, keep, every=every)

    def prune(self, last: int, keep: int, *, every: int = 1) -> None:
        """Remove all checkpoints after a step, and all but the last `keep` (see `save`)."""
        steps = self.steps()  # checkpoints after `last` were damaged, so training went back
        planned = [step for step in steps if step < last and step % every == 0]
        for step in set(steps) - {*[*planned, last][-keep:]}:
            self.remove(step)

    def remove(self, step: int) -> None:
        """Remove a checkpoint."""
        shutil.rmtree(self.folder_of(step), ignore_errors=True)

    def replace_state(self, step: int, state: Mapping[str, Any]) -> None:
        """Write another state into a checkpoint, atomically.

        Raises:
            SaveError: the state could not be written; the checkpoint is intact.
        """
        path = self.folder_of(step) / STATE
        sums = read_json(path)["sha256"] | {STATE: hashlib.sha256(as_json(state)).hexdigest()}
        with saving(f"the checkpoint of step {step}", self.folder):
            write_atomically(path, as_json({"sha256": sums, "state": state}))
            sync(path.parent)

    def read(self, step: int) -> Checkpoint:
        """Read a checkpoint and verify its checksums.

        Raises:
            RunError: a file is missing or damaged; the message names it.
        """
        folder, state = self.checked(step)
        return Checkpoint(step, read_tensors(folder / WEIGHTS), read_tensors(folder / OPTIMIZER), state)

    def weights(self, step: int) -> dict[str, Tensor]:
        """Read the weights of a checkpoint; raises as `read`."""
        folder, _ = self.checked(step)
        return read_tensors(folder / WEIGHTS)

    def checked(self, step: int) -> tuple[Path, dict[str, Any]]:
        """Verify the checksums of a checkpoint; return its folder and its state."""
        folder = self.folder_of(step)
        content = read_json(folder / STATE)
        sums, state = content.get("sha256"), content.get("state")
        if not isinstance(sums, dict) or not isinstance(state, dict):
            raise RunError(f"{folder / STATE} is damaged: it holds no checksums or no state.")
        actual = {STATE: hashlib.sha256(as_json(state)).hexdigest()}
        actual |= {name: sha256(folder / name) for name in (WEIGHTS, OPTIMIZER) if (folder / name).is_file()}
        for name in (STATE, WEIGHTS, OPTIMIZER):
            if name not in actual or actual[name] != sums.get(name):
                raise RunError(f"{folder / name} is missing or damaged: its checksum does not fit.")
        return folder, state
