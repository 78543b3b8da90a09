"""Files that are whole or not there: written to a temporary name, synced, renamed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from manyheads.errors import RunError, SaveError

__all__ = [
    "as_json",
    "read_json",
    "read_tensors",
    "read_text",
    "saving",
    "sha256",
    "sync",
    "write_atomically",
    "write_tensors",
]


def read_text(path: Path) -> str:
    """A small text file of a run."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path} cannot be read: {error}.") from error


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object of a run."""
    try:
        content = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is damaged: {error}.") from error
    if not isinstance(content, dict):
        raise RunError(f"{path} is damaged: it holds no JSON object.")
    return content


def read_tensors(path: Path) -> dict[str, Tensor]:
    """A safetensors file."""
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise RunError(f"{path} is damaged: {error}. Copy it again, or use another checkpoint.") from error


@contextmanager
def saving(
    what: str,
    where: Path,
    cure: str = "The last checkpoint is intact; free some space and run the same line again.",
) -> Iterator[None]:
    """Say what could not be written, and what to do."""
    try:
        yield
    except OSError as error:
        raise SaveError(f"{what} could not be written to {where}: {error.strerror or error}. {cure}") from error


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """A safetensors file, synced and renamed."""
    draft = path.with_name(f".{path.name}.draft")
    plain = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
    try:
        save_file(plain, draft)
        draft.chmod(0o644)  # the library makes it readable to its owner alone
        sync(draft)
        os.replace(draft, path)
    except SafetensorError as error:
        raise OSError(str(error)) from error
    finally:
        draft.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """A file, synced and renamed."""
    draft = path.with_name(f".{path.name}.draft")
    try:
        draft.write_bytes(content)
        sync(draft)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Have the system put a file or folder onto the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256(path: Path) -> str:
    """Checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def as_json(value: Mapping[str, Any]) -> bytes:
    """A JSON document for people and programs."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
