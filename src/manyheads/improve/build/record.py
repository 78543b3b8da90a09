"""Record the settings and inputs of each product, and cache the hashes of files."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bitext.files import sum_of
from manyheads import __version__
from manyheads.checkpoint import RunDirectory, saving, write_atomically
from manyheads.checkpoint.files import as_json, read_json
from manyheads.config.schema import Config
from manyheads.files import reading

KEPT = "What is finished is kept."


@dataclass(frozen=True)
class Record:
    """The record of a step, a JSON file.

    Attributes:
        kind: kind of the step.
        settings: settings of the step; for a step that trains, of its configuration.
        inputs: content hash of each input by its name.
        state: "begun"; "made" when the product is complete under its draft name; "done" under its final name.
        product: SHA-256 of each file of the product.
        result: result to display, such as scores.
        versions: versions of manyheads, Python and torch, and the platform.
        starts: times at which a process began or resumed the step, in seconds since 1970.
        seconds: duration of the step in seconds, over all starts whose end is known.
        finished: time of the end, in seconds since 1970; 0 before.
    """

    kind: str
    settings: Mapping[str, Any]
    inputs: Mapping[str, str]
    state: str = "begun"
    product: Mapping[str, str] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    starts: tuple[float, ...] = ()
    seconds: float = 0.0
    finished: float = 0.0

    @property
    def key(self) -> str:
        """Hash of everything that the product depends on.

        Settings without a value are left out, and those that this version of a configuration does not have: another
        version may have more of them.
        """
        settings = {name: value for name, value in self.settings.items() if value is not None and _is_known(name)}
        return _key_of([self.kind, settings, self.inputs])

    @property
    def sha256(self) -> str:
        """Hash of the content of the product."""
        return _key_of(self.product)

    def write(self, path: Path) -> None:
        """Write the record atomically; raises `SaveError`."""
        with saving("the record of a step", path, KEPT):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, as_json({**asdict(self), "key": self.key, "sha256": self.sha256}))

    @classmethod
    def read(cls, path: Path) -> Record | None:
        """Read a record; return None if there is none."""
        if not path.is_file():
            return None
        values = read_json(path)
        known = {name: values[name] for name in cls.__dataclass_fields__ if name in values}
        return cls(**{**known, "starts": tuple(known.get("starts", ()))})

    def begun(self, earlier: Record | None) -> Record:
        """Return the record of a process that begins the step, or resumes it from a record of the same key."""
        starts = (time.time(),)
        if earlier is not None and earlier.key == self.key and earlier.state != "done":
            return replace(earlier, starts=earlier.starts + starts)
        versions = {
            "manyheads": __version__,
            "python": platform.python_version(),
            "torch": version("torch"),
            "platform": platform.platform(),
        }
        return replace(self, starts=starts, versions=versions)


def _is_known(name: str) -> bool:
    """Return whether a setting of a configuration exists; settings of steps have no section in their names."""
    section, dot, key = name.partition(".")
    field = Config.model_fields.get(section)
    return not dot or (field is not None and key in getattr(field.annotation, "model_fields", {}))


def _key_of(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def model_files(run: Path) -> list[Path]:
    """Return the files of a run directory that determine its output, without its settings."""
    return [run / "model.safetensors", *sorted(run.glob("tokenizer.*")), *sorted(run.glob("labels.json"))]


class Hashes:
    """SHA-256 of files, cached by size and time of the last change, so that a large file is read once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[str, list[Any]] = read_json(path) if path.is_file() else {}
        self.changed = False

    def of_file(self, path: Path) -> str:
        """Return the hash of a file; raises `RunError` if it is missing."""
        name, status = str(path.absolute()), path.stat() if path.is_file() else None
        mark = [status.st_size, status.st_mtime_ns] if status else []
        stored = self.known.get(name)
        if stored is not None and stored[:2] == mark:
            return str(stored[2])
        with reading(path):
            digest = sum_of(path)
        self.known[name] = [*mark, digest]
        self.changed = True
        return digest

    def of_model(self, run: Path) -> str:
        """Return the hash of a run directory: weights, tokenizers, and settings of the model.

        The sections data and training are left out, and so are defaults: a newer version may have more settings.
        """
        config = RunDirectory.existing(run).config()
        settings = [
            [name, key, value]
            for name, section in config
            if name not in ("task", "data", "training")
            for key, value in section
            if value != section.model_fields[key].default
        ]
        return _key_of([config.task, settings, config.languages, *map(self.of_file, model_files(run))])

    def product(self, folder: Path, files: Iterable[Path]) -> dict[str, str]:
        """Return the hash of each file of a product by its name in the folder."""
        return {str(path.relative_to(folder)): self.of_file(path) for path in files}

    def save(self) -> None:
        """Store the hashes."""
        if self.changed:
            with saving("the hashes of files", self.path, KEPT):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(self.path, as_json(self.known))
            self.changed = False
