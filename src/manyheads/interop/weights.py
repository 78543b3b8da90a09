"""The weights of a folder of transformers: safetensors; a legacy pickle only on the user's request."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from manyheads.checkpoint import plain_file, read_json, read_tensors
from manyheads.errors import RunError

_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_LEGACY = "pytorch_model.bin"


def read_weights(folder: Path, *, trust_pickle: bool = False) -> dict[str, Tensor]:
    """Read the tensors of a model folder by name; with `trust_pickle`, from a pickle if there are no safetensors.

    Raises:
        RunError: there are no weights, they are damaged, or they are a pickle without `trust_pickle`.
    """
    if (folder / _WEIGHTS).is_file():
        return read_tensors(folder / _WEIGHTS)
    if (folder / _INDEX).is_file():
        return _read_shards(folder)
    if not (folder / _LEGACY).is_file():
        raise RunError(f"{folder} has neither {_WEIGHTS} nor {_INDEX}. Download the model with its weights.")
    if not trust_pickle:
        raise RunError(
            f"{folder} has its weights as {_LEGACY} alone. That is a pickle: a program that can do anything when "
            "it is read. If you trust who made it, give --trust-pickle; it is then read by torch's restricted "
            f"reader, which has had security holes of its own. Better is a copy of the model with {_WEIGHTS}."
        )
    return _read_legacy(plain_file(folder / _LEGACY))


def _read_shards(folder: Path) -> dict[str, Tensor]:
    """Read weights in several files, by the index of which tensor is in which file.

    Raises:
        RunError: the index is damaged, names a file outside of the folder, or does not fit the files.
    """
    origin = folder / _INDEX
    index = read_json(origin).get("weight_map")
    if not isinstance(index, dict) or not all(isinstance(name, str) for name in index.values()):
        raise RunError(f"{origin} is damaged: its weight_map does not say which tensor is in which file.")
    tensors: dict[str, Tensor] = {}
    for name in sorted(set(index.values())):
        if Path(name).name != name:
            raise RunError(f"{origin} names the file {name!r}, which is no plain file of this folder.")
        shard = read_tensors(folder / name)
        if wrong := sorted(shard.keys() ^ {tensor for tensor, file in index.items() if file == name}):
            raise RunError(f"{origin} and {name} do not fit: only one of them has {', '.join(wrong[:3])}.")
        tensors |= shard
    return tensors


def _read_legacy(path: Path) -> dict[str, Tensor]:
    """Read a pickle by torch's restricted reader; no other function reads a pickle."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a broken or hostile file makes the reader raise
        # The reader's own error, to which torch adds how to read the file without restrictions.
        reason = str(error.__context__ or error).partition("\n")[0].partition(". ")[0].removesuffix(".")
        raise RunError(
            f"{path} cannot be read as weights alone, and no code in it was run: {reason or type(error).__name__}. "
            f"Use a copy of the model with {_WEIGHTS}."
        ) from error
    if not isinstance(content, dict) or not all(isinstance(tensor, Tensor) for tensor in content.values()):
        raise RunError(f"{path} holds something else than tensors by name.")
    return content
