"""Checkpoints, from which a training resumes, and the run directory that holds them.

A checkpoint is a folder, written atomically, with checksums of its files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bitext.files import LOCK, discard, locked, refuse_links, remove_drafts, replacing, write_atomically
from manyheads.checkpoint.directory import WEIGHTS, RunDirectory
from manyheads.checkpoint.files import as_json, read_header, read_json, read_tensors, sha256, write_tensors
from manyheads.errors import RunError
from manyheads.files import plain_file, saving

if TYPE_CHECKING:
    from torch import Tensor

_OPTIMIZER = "optimizer.safetensors"
_STATE = "state.json"
_FILES = (_STATE, WEIGHTS, _OPTIMIZER)
_WRITTEN = ("cache", "checkpoints", "tensorboard", "metrics.jsonl")  # what is changed in place, or holds such files
_NEWER = ".new"  # end of the name of a checkpoint whose step had one, until that is removed


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
        folder = self.folder / f"step-{step}"
        newer = folder.with_name(folder.name + _NEWER)
        return newer if newer.is_dir() else folder

    def found(self) -> list[int]:
        """Return the steps that have a folder, in order; files of damaged checkpoints may be missing."""
        names = {path.name.removeprefix("step-").removesuffix(_NEWER) for path in self.folder.glob("step-*")}
        return sorted(int(name) for name in names if name.isascii() and name.isdecimal() and str(int(name)) == name)

    def steps(self) -> list[int]:
        """Return the steps that have a whole checkpoint, in order."""
        return [step for step in self.found() if all((self.folder_of(step) / name).is_file() for name in _FILES)]

    def save(self, checkpoint: Checkpoint, keep: int, *, every: int = 1) -> None:
        """Write a checkpoint atomically, then remove all later ones, and all but the last `keep`.

        Only this checkpoint and those of every `every`-th step are kept: a checkpoint that was saved in between on
        request must not take the place of a planned one when checkpoints are averaged.

        Raises:
            SaveError: the checkpoint could not be written; earlier ones are intact.
        """
        with saving(f"the checkpoint of step {checkpoint.step}", self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.recover()
            folder = self.folder_of(checkpoint.step)
            place = folder.with_name(folder.name + _NEWER) if folder.exists() else folder
            with replacing(place) as draft:
                draft.mkdir()
                write_tensors(draft / WEIGHTS, checkpoint.model)
                write_tensors(draft / _OPTIMIZER, checkpoint.optimizer)
                sums = {name: sha256(draft / name) for name in (WEIGHTS, _OPTIMIZER)}
                sums[_STATE] = hashlib.sha256(as_json(checkpoint.state)).hexdigest()
                write_atomically(draft / _STATE, as_json({"sha256": sums, "state": checkpoint.state}))
            self.recover()
        self.prune(checkpoint.step, keep, every=every)

    def recover(self) -> None:
        """Remove drafts that a killed process has left, and put checkpoints in the place of older ones."""
        for folder in (self.folder, *self.folder.glob("step-*")):
            remove_drafts(folder)
        for newer in self.folder.glob(f"step-*{_NEWER}"):
            folder = newer.with_name(newer.name.removesuffix(_NEWER))
            if folder.exists():
                discard(folder)
            newer.rename(folder)

    def prune(self, last: int, keep: int, *, every: int = 1) -> None:
        """Remove all checkpoints after a step, and all but the last `keep` (see `save`)."""
        planned = [step for step in self.steps() if step < last and step % every == 0]
        for step in set(self.found()) - {*[*planned, last][-keep:]}:  # those after `last` were damaged
            self.remove(step)

    def remove(self, step: int) -> None:
        """Remove a checkpoint; raises `SaveError`."""
        with saving(f"the list of checkpoints without step {step}", self.folder):
            discard(self.folder_of(step))

    def replace_state(self, step: int, state: Mapping[str, Any]) -> None:
        """Write another state into a checkpoint, atomically.

        Raises:
            SaveError: the state could not be written; the checkpoint is intact.
        """
        path = self.folder_of(step) / _STATE
        sums = read_json(path)["sha256"] | {_STATE: hashlib.sha256(as_json(state)).hexdigest()}
        with saving(f"the checkpoint of step {step}", self.folder):
            write_atomically(path, as_json({"sha256": sums, "state": state}))

    def read(self, step: int) -> Checkpoint:
        """Read a checkpoint and verify its checksums."""
        folder, state = self.checked(step)
        return Checkpoint(step, _finite_tensors(folder / WEIGHTS), _finite_tensors(folder / _OPTIMIZER), state)

    def weights(self, step: int) -> dict[str, Tensor]:
        """Read the weights of a checkpoint; raises as `read`."""
        folder, _ = self.checked(step)
        return _finite_tensors(folder / WEIGHTS)

    def checked(self, step: int) -> tuple[Path, dict[str, Any]]:
        """Verify the checksums of a checkpoint; return its folder and its state."""
        folder = self.folder_of(step)
        content = read_json(folder / _STATE)
        sums, state = content.get("sha256"), content.get("state")
        if not isinstance(sums, dict) or not isinstance(state, dict):
            raise RunError(f"{folder / _STATE} is damaged: it holds no checksums or no state.")
        actual = {_STATE: hashlib.sha256(as_json(state)).hexdigest()}
        for path in filter(Path.is_file, (folder / WEIGHTS, folder / _OPTIMIZER)):
            plain_file(path)
            with suppress(RunError):
                read_header(path)  # a file that holds no tensors is not read whole
                actual[path.name] = sha256(path)
        for name in _FILES:
            if name not in actual or actual[name] != sums.get(name):
                raise RunError(f"{folder / name} is missing or damaged: its checksum does not fit.")
        return folder, state


class TrainingRun(RunDirectory):
    """The directory of a run that is trained.

    Attributes:
        checkpoints: its checkpoints, by step.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.checkpoints = Checkpoints(path / "checkpoints")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the directory against other writers, and remove the drafts that killed processes have left.

        The lock ends with the process.
        """
        in_use = f"{self.path} is being trained by another process. Wait for it, or choose another --output."
        with locked(self.path / LOCK, RunError(in_use)):
            try:
                refuse_links(self.path, _WRITTEN, RunError)
                for folder in (self.path, self.path / "cache"):
                    remove_drafts(folder)
                with saving("the list of checkpoints", self.path):
                    self.checkpoints.recover()
                yield
            finally:
                self.tidy()

    def tidy(self) -> None:
        """Remove the directory if it holds no run."""
        if not self.exists:
            with suppress(OSError):  # Windows removes no open file
                (self.path / LOCK).unlink()
            for folder in (self.path / "cache", self.path):
                with suppress(OSError):  # the folder is not empty
                    folder.rmdir()


def not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """Return the name of the first tensor with NaN or an infinity, or None."""
    return next((name for name, tensor in tensors.items() if not bool(tensor.isfinite().all())), None)


def _finite_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file whose values must be finite; raises `RunError`."""
    tensors = read_tensors(path)
    if name := not_finite(tensors):
        raise RunError(f"{path} cannot be used: {name} holds values that are not finite.")
    return tensors
