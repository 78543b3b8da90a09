"""A run directory: configuration, tokenizers, and the best weights."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bitext.files import write_atomically
from bitext.shell import command_line
from manyheads.checkpoint.files import (
    as_json,
    check_nodes,
    read_json,
    read_json_text,
    read_tensors,
    sha256,
    write_tensors,
)
from manyheads.config.load import config_from_json, config_to_json
from manyheads.config.schema import TASKS, Config
from manyheads.errors import ConfigError, ManyheadsError, RunError
from manyheads.files import read_bytes, saving
from manyheads.text.tokenizer import TokenizerPair, load_tokenizer

if TYPE_CHECKING:
    from torch import Tensor


WEIGHTS = "model.safetensors"  # the best so far
_CONFIG = "config.json"
_ENVIRONMENT = "environment.json"
_CARD = "README.md"
_MOST_CARD = 2**18  # bytes
_MOST_LOG = 2**28


class RunDirectory:
    """The files of one run.

    Attributes:
        path: folder of the run.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def existing(cls, path: Path) -> Self:
        """Open an existing run.

        Raises:
            RunError: there is no such directory, or it is not a run directory.
        """
        if (path / "model.bin").is_file():
            command = command_line("manyheads", "import", path, "-o", "RUN")
            raise RunError(f"{path} is a model of CTranslate2, not a run. Make a run of it: {command}")
        if (path / _CONFIG).is_file():
            return cls(path)
        problem = f"is not a run of manyheads: it has no {_CONFIG}" if path.is_dir() else "is not a directory"
        raise RunError(f"{path} {problem}. {_runs_near(path)}")

    @property
    def name(self) -> str:
        """Name of the folder, to show: bytes that are not UTF-8 are replaced."""
        return self.path.resolve().name.encode(errors="replace").decode()

    @property
    def metrics_path(self) -> Path:
        """Path of the training log, one JSON object a line."""
        return self.path / "metrics.jsonl"

    def log(self) -> list[bytes]:
        """Read the lines of the training log; there are none before the first update."""
        path = self.metrics_path
        return read_bytes(path, _MOST_LOG).split(b"\n") if os.path.lexists(path) else []

    def card(self) -> str:
        """Read the model card (Markdown); "" without one."""
        path = self.path / _CARD
        return read_bytes(path, _MOST_CARD).decode(errors="replace") if os.path.lexists(path) else ""

    @property
    def weights_path(self) -> Path:
        """Path of the best weights so far.

        Raises:
            RunError: there are no weights yet.
        """
        path = self.path / WEIGHTS
        if not path.is_file():
            raise RunError(f"{self.path} has no {WEIGHTS} yet. It is written at the first validation.")
        return path

    @property
    def exists(self) -> bool:
        """Whether the directory holds a run."""
        return (self.path / _CONFIG).is_file()

    @contextmanager
    def frozen(self, folder: Path) -> Iterator[Path]:
        """Yield a directory with hard links to the files that the run has now, which a training does not change.

        It is made in a new folder. Where the system makes no such links, the run itself is yielded.

        Raises:
            RunError: the run itself was yielded, and a training has changed its weights meanwhile.
        """
        run, before = folder / self.path.resolve().name, self.weights_path.stat()
        failure = None
        try:
            run.mkdir(parents=True)
            for path in filter(Path.is_file, self.path.iterdir()):
                os.link(path, run / path.name, follow_symlinks=False)
        except (OSError, NotImplementedError):  # another disk, or files of another user
            run = self.path
        try:
            yield run
        except ManyheadsError as error:
            error.args = (str(error).replace(str(run), str(self.path)),)
            failure = error
        if run is self.path and not os.path.samestat(self.weights_path.stat(), before):
            raise RunError(f"{run} has new weights: it is being trained. Give the same command again.") from failure
        if failure:
            raise failure

    def begin(
        self,
        config: Config,
        tokenizers: TokenizerPair,
        environment: Mapping[str, Any],
        more: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Write the files that a run has before its first step.

        `environment` names versions and machine; `more` are further JSON documents of its task, by file name.
        """
        with saving("the beginning of the run", self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / _CARD).unlink(missing_ok=True)
            write_tokenizers(self.path, tokenizers)
            documents = {name: as_json(content) for name, content in (more or {}).items()}
            for name, content in documents.items():
                write_atomically(self.path / name, content)
            sums: dict[str, Any] = {"tokenizer_sha256": [tokenizers.source.sha256, tokenizers.target.sha256]}
            if documents:
                sums["sha256"] = {name: hashlib.sha256(text).hexdigest() for name, text in documents.items()}
            write_atomically(self.path / _ENVIRONMENT, as_json({**environment, **sums}))
            write_atomically(
                self.path / _CONFIG, config_to_json(config).encode()
            )  # last: it makes the folder a run

    def config(self) -> Config:
        """Read the configuration of the run.

        Raises:
            RunError: the file is missing, damaged, or of a newer format.
        """
        path = self.path / _CONFIG
        try:
            return config_from_json(read_json_text(path), str(path))
        except ConfigError as error:
            raise RunError(str(error)) from error

    def config_of(self, task: str) -> Config:
        """Read the configuration of a run of this task; raises as `config`, and `RunError` for another task."""
        config = self.config()
        if config.task != task:
            use = command_to_use(self.path, config.task)
            raise RunError(f'{self.path} was trained for task = "{config.task}", not for "{task}". Use: {use}')
        return config

    def environment(self) -> dict[str, Any]:
        """Read the versions and the machine with which the run began."""
        return read_json(self.path / _ENVIRONMENT)

    def recorded(self) -> dict[str, Any]:
        """Return `environment`, or nothing if the run has none."""
        return self.environment() if (self.path / _ENVIRONMENT).is_file() else {}

    def tokenizers(self, config: Config) -> TokenizerPair:
        """Read the tokenizers of the run."""
        return read_tokenizers(self.path, config, self.recorded().get("tokenizer_sha256"))

    def document(self, name: str) -> dict[str, Any]:
        """Read a JSON document that `begin` wrote.

        Raises:
            RunError: the document is missing, damaged, or not the one that the run was begun with.
        """
        path = self.path / name
        content = read_json(path)
        recorded = self.recorded().get("sha256") or {}
        if not isinstance(recorded, dict):
            raise RunError(f"{self.path / _ENVIRONMENT} is damaged: its sha256 are no checksums by name.")
        if recorded.get(name, sha256(path)) != sha256(path):
            raise RunError(f"{path} is not the one this run was begun with. Copy the whole run directory again.")
        return content

    def weights(self) -> dict[str, Tensor]:
        """Read the best weights."""
        return read_tensors(self.weights_path)

    def publish(self, tensors: Mapping[str, Tensor]) -> None:
        """Write the best weights.

        Raises:
            SaveError: the file could not be written; the previous weights are intact.
        """
        with saving(WEIGHTS, self.path):
            write_tensors(self.path / WEIGHTS, tensors)

    @property
    def described(self) -> bool:
        """Whether there is a model card, which is written last."""
        return (self.path / _CARD).is_file()

    def describe(self, card: str) -> None:
        """Write the model card."""
        with saving("the model card", self.path):
            write_atomically(self.path / _CARD, card.encode())


def command_to_use(run: Path, task: str) -> str:
    """Return the command that uses a run of a task: a training that starts from it where no other does."""
    if command := TASKS[task].command:
        return command_line("manyheads", command, run)
    return command_line("manyheads", "train", "CONFIG", "--set", f"model.init_from={run}")


def _runs_near(path: Path) -> str:
    """Return a hint that names the runs in, beside or above a path that is not a run, for a message."""
    folder = path if path.is_dir() else path.parent
    folders = {file.parent for parent in (folder, folder.parent) for file in parent.glob(f"*/{_ENVIRONMENT}")}
    runs = sorted(map(str, folders - {path}))
    near = get_close_matches(str(path), runs, cutoff=0.7) or runs[:3]
    return f"Did you mean {' or '.join(near)}?" if near else "Give the folder that `manyheads train` wrote."


def write_tokenizers(folder: Path, tokenizers: TokenizerPair) -> None:
    """Write `tokenizer.source.*` and `tokenizer.target.*`."""
    for side, tokenizer in (("source", tokenizers.source), ("target", tokenizers.target)):
        write_atomically(folder / f"tokenizer.{side}{tokenizer.suffix}", tokenizer.to_bytes())


def read_tokenizers(folder: Path, config: Config, recorded: Any) -> TokenizerPair:
    """Read the tokenizers of both sides; `recorded` are their checksums when the folder was made, if known.

    Raises:
        RunError: a tokenizer is missing, damaged, or not the one that the weights were trained with.
    """
    sums = recorded or (None, None)
    if not isinstance(sums, list | tuple) or len(sums) != 2:
        raise RunError(f"{folder} is damaged: its tokenizer_sha256 are no two checksums. Copy it again.")
    pair = []
    for side, language, expected in zip(("source", "target"), config.languages, sums, strict=True):
        path, content = _tokenizer_file(folder, side)
        try:
            tokenizer = load_tokenizer(config.tokenizer, language, content, keep_space=config.keep_space)
        except RunError as error:
            raise RunError(f"{path}: {error}") from error
        if expected not in (None, tokenizer.sha256):
            raise RunError(
                f"tokenizer.{side}.* in {folder} is not the one this run was begun with. Its weights mean "
                "other words: copy the whole run directory again."
            )
        pair.append(tokenizer)
    source, target = pair
    joint = source.sha256 == target.sha256
    if config.model.tied_embeddings == "all" and source.size != target.size:
        raise RunError(
            f"tokenizer.source.* and tokenizer.target.* in {folder} have {source.size:,} and {target.size:,} "
            "tokens, and the model has one vocabulary. Copy the whole run directory again."
        )
    return TokenizerPair(source, source if joint else target, joint=joint).with_normal_forms(config)


def _tokenizer_file(folder: Path, side: str) -> tuple[Path, bytes]:
    paths = sorted(folder.glob(f"tokenizer.{side}.*"))
    if not paths:
        raise RunError(f"{folder} has no tokenizer.{side}.* file. Copy the whole run directory.")
    data = read_bytes(paths[0])
    return paths[0], check_nodes(data, paths[0]) if paths[0].suffix == ".json" else data
