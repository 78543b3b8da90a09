"""One run on disk: what it was begun with, its checkpoints, and the weights that translate."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import portalocker
from torch import Tensor

from manyheads.checkpoint.files import (
    as_json,
    read_json,
    read_json_text,
    read_shapes,
    read_tensors,
    saving,
    sha256,
    sync,
    write_atomically,
    write_tensors,
)
from manyheads.checkpoint.tokenizers import read_tokenizers, write_tokenizers
from manyheads.checkpoint.weights import check_shapes, load_weights
from manyheads.config.load import config_from_json, config_to_json
from manyheads.config.schema import Config, Task
from manyheads.errors import ConfigError, RunError
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.transformer import Transformer
from manyheads.text.tokenizer import TokenizerPair

__all__ = ["Checkpoint", "RunDirectory"]

WEIGHTS = "model.safetensors"
OPTIMIZER = "optimizer.safetensors"
STATE = "state.json"
CONFIG = "config.json"
ENVIRONMENT = "environment.json"
CARD = "README.md"
LOCK = ".lock"
VERBS: dict[Task, str] = {  # what uses a run of each task
    "translation": "translate",
    "classification": "classify",
    "language-modeling": "generate",
    "masked-lm": "",
}

Model = TypeVar("Model", bound=Transformer)


@dataclass(frozen=True)
class Checkpoint:
    """What resuming needs: tensors by name, and the state."""

    step: int
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict[str, Any]


class RunDirectory:
    """The files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def existing(cls, path: Path) -> RunDirectory:
        """A run that exists.

        Raises:
            RunError: there is no such directory, or it is none of ours.
        """
        if not path.is_dir():
            raise RunError(f"{path} is not a directory. Give the folder that `manyheads train` wrote.")
        if not (path / CONFIG).is_file():
            raise RunError(f"{path} is not a run of manyheads: it has no {CONFIG}.")
        return cls(path)

    @property
    def metrics_path(self) -> Path:
        """Where the log points go, one JSON object a line."""
        return self.path / "metrics.jsonl"

    @property
    def weights_path(self) -> Path:
        """The weights that translate.

        Raises:
            RunError: there are none yet.
        """
        path = self.path / WEIGHTS
        if not path.is_file():
            raise RunError(f"{self.path} has no {WEIGHTS} yet. It is written at the first validation.")
        return path

    @property
    def exists(self) -> bool:
        """Whether a run has begun here."""
        return (self.path / CONFIG).is_file()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep all others from writing to this directory; the system opens it again however the process ends.

        Raises:
            RunError: another process writes here.
            SaveError: the directory cannot be written.
        """
        with saving("the run directory", self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            file = (self.path / LOCK).open("a")
        with file:
            try:
                portalocker.lock(file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
            except portalocker.AlreadyLocked as error:
                raise RunError(
                    f"{self.path} is being trained by another process. Wait for it, or choose another --out."
                ) from error
            try:
                yield
            finally:
                self.tidy()

    def tidy(self) -> None:
        """Leave nothing behind when nothing has begun here."""
        if not self.exists:
            (self.path / LOCK).unlink(missing_ok=True)
            for folder in (self.path / "cache", self.path):
                with suppress(OSError):  # it holds something
                    folder.rmdir()

    def begin(
        self,
        config: Config,
        tokenizers: TokenizerPair,
        environment: Mapping[str, Any],
        more: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Write what stands before the first step.

        Args:
            config: of the run.
            tokenizers: of its text.
            environment: what it is made with.
            more: what else its task must remember, as JSON documents by the names of their files.

        Raises:
            SaveError: it could not be written.
        """
        with saving("the beginning of the run", self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / CARD).unlink(missing_ok=True)
            write_tokenizers(self.path, tokenizers)
            documents = {name: as_json(content) for name, content in (more or {}).items()}
            for name, content in documents.items():
                write_atomically(self.path / name, content)
            sums: dict[str, Any] = {"tokenizer_sha256": [tokenizers.source.sha256, tokenizers.target.sha256]}
            if documents:
                sums["sha256"] = {name: hashlib.sha256(text).hexdigest() for name, text in documents.items()}
            write_atomically(self.path / ENVIRONMENT, as_json({**environment, **sums}))
            write_atomically(self.path / CONFIG, config_to_json(config).encode())  # last: now it is a run

    def config(self) -> Config:
        """The configuration of the run.

        Raises:
            RunError: it is none of ours, damaged, or of a newer format.
        """
        path = self.path / CONFIG
        try:
            return config_from_json(read_json_text(path), str(path))
        except ConfigError as error:
            raise RunError(str(error)) from error

    def config_of(self, task: Task) -> Config:
        """The configuration of a run of a task; raises as `config`, and `RunError` when it is of another."""
        config = self.config()
        if config.task != task:
            verb = VERBS[config.task]
            cure = f" Use: manyheads {verb} {self.path}" if verb else ""
            raise RunError(f'{self.path} was trained for task = "{config.task}", not for "{task}".{cure}')
        return config

    def environment(self) -> dict[str, Any]:
        """What the run was begun with."""
        return read_json(self.path / ENVIRONMENT)

    def tokenizers(self, config: Config) -> TokenizerPair:
        """The tokenizers of the run.

        Raises:
            RunError: one is missing, damaged, or not the one that the run was begun with.
        """
        recorded = self.environment().get("tokenizer_sha256") if (self.path / ENVIRONMENT).is_file() else None
        return read_tokenizers(self.path, config, recorded)

    def document(self, name: str) -> dict[str, Any]:
        """A JSON document that `begin` was given.

        Raises:
            RunError: it is missing, damaged, or not the one that the run was begun with.
        """
        path = self.path / name
        content = read_json(path)
        recorded = self.environment() if (self.path / ENVIRONMENT).is_file() else {}
        if recorded.get("sha256", {}).get(name, sha256(path)) != sha256(path):
            raise RunError(f"{path} is not the one this run was begun with. Copy the whole run directory again.")
        return content

    def model(self, config: Config, tokenizers: TokenizerPair) -> EncoderDecoder:
        """The translator with the weights of the best validation, on the CPU, in eval mode.

        Raises:
            RunError: the weights are missing, damaged, or of another shape.
        """
        path = self.weights_path
        sizes = tokenizers.source.size, tokenizers.target.size
        check_shapes(config.model, sizes, read_shapes(path), str(path))  # before any memory is taken
        return self.fill(EncoderDecoder(config.model, *sizes))

    def fill(self, model: Model) -> Model:
        """A model given the weights of the best validation, in eval mode; raises as `model`."""
        load_weights(model, self.weights(), str(self.weights_path))
        return model.eval()

    def weights(self) -> dict[str, Tensor]:
        """The weights of the best validation; raises as `model`."""
        return read_tensors(self.weights_path)

    def publish(self, tensors: Mapping[str, Tensor]) -> None:
        """Make these the weights that translate.

        Raises:
            SaveError: they could not be written; those before are intact.
        """
        with saving(WEIGHTS, self.path):
            write_tensors(self.path / WEIGHTS, tensors)

    @property
    def described(self) -> bool:
        """Whether there is a model card: it is what is written last."""
        return (self.path / CARD).is_file()

    def describe(self, card: str) -> None:
        """Write the model card."""
        with saving("the model card", self.path):
            write_atomically(self.path / CARD, card.encode())

    def steps(self) -> list[int]:
        """The steps of which there is a checkpoint, first to last."""
        found = (self.path / "checkpoints").glob("step-*")
        return sorted(int(path.name.removeprefix("step-")) for path in found if path.name[5:].isdigit())

    def save(self, checkpoint: Checkpoint, keep: int, *, every: int = 1) -> None:
        """Write a checkpoint, whole or not at all, then remove those after it, and all but the last `keep`.

        Only this one and those of every `every`-th step are kept: one that was saved in between because somebody
        asked must not take the place of a planned one in a mean.

        Raises:
            SaveError: it could not be written; those before it are intact.
        """
        folder = self.path / "checkpoints" / f"step-{checkpoint.step}"
        draft = folder.with_name(f".{folder.name}.draft")
        for abandoned in folder.parent.glob(".step-*.draft"):  # by a kill
            shutil.rmtree(abandoned, ignore_errors=True)
        try:
            with saving(f"the checkpoint of step {checkpoint.step}", folder.parent):
                draft.mkdir(parents=True)
                write_tensors(draft / WEIGHTS, checkpoint.model)
                write_tensors(draft / OPTIMIZER, checkpoint.optimizer)
                sums = {name: sha256(draft / name) for name in (WEIGHTS, OPTIMIZER)}
                sums[STATE] = hashlib.sha256(as_json(checkpoint.state)).hexdigest()
                write_atomically(draft / STATE, as_json({"sha256": sums, "state": checkpoint.state}))
                sync(draft)
                shutil.rmtree(folder, ignore_errors=True)
                draft.rename(folder)
                sync(folder.parent)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        steps = self.steps()  # those after this one were damaged when training went back before them
        planned = [step for step in steps if step < checkpoint.step and step % every == 0]
        for step in set(steps) - {*[*planned, checkpoint.step][-keep:]}:
            shutil.rmtree(self.path / "checkpoints" / f"step-{step}", ignore_errors=True)

    def checkpoint(self, step: int) -> Checkpoint:
        """Read a checkpoint and check its sums.

        Raises:
            RunError: a file is missing or damaged; it is named.
        """
        folder, state = self.checked(step)
        return Checkpoint(step, read_tensors(folder / WEIGHTS), read_tensors(folder / OPTIMIZER), state)

    def weights_of(self, step: int) -> dict[str, Tensor]:
        """The weights of a checkpoint; raises as `checkpoint`."""
        folder, _ = self.checked(step)
        return read_tensors(folder / WEIGHTS)

    def checked(self, step: int) -> tuple[Path, dict[str, Any]]:
        """The folder of a checkpoint whose sums are right, and its state."""
        folder = self.path / "checkpoints" / f"step-{step}"
        content = read_json(folder / STATE)
        sums, state = content.get("sha256"), content.get("state")
        if not isinstance(sums, dict) or not isinstance(state, dict):
            raise RunError(f"{folder / STATE} is damaged: it holds no checksums or no state.")
        found = {STATE: hashlib.sha256(as_json(state)).hexdigest()}
        found |= {name: sha256(folder / name) for name in (WEIGHTS, OPTIMIZER) if (folder / name).is_file()}
        for name in (STATE, WEIGHTS, OPTIMIZER):
            if name not in found or found[name] != sums.get(name):
                raise RunError(f"{folder / name} is missing or damaged: its checksum does not fit.")
        return folder, state
