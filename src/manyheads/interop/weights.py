"""The weights of a folder of transformers: safetensors; a legacy pickle only when somebody vouches for it."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from manyheads.checkpoint import plain_file, read_tensors
from manyheads.errors import RunError

__all__ = ["read_weights"]

WEIGHTS = "model.safetensors"
LEGACY = "pytorch_model.bin"


def read_weights(folder: Path, *, trust_pickle: bool = False) -> dict[str, Tensor]:
    """The tensors of a model folder by name.

    Raises:
        RunError: there are none, they are damaged, or they are a pickle that nobody vouches for.
    """
    if (folder / WEIGHTS).is_file():
        return read_tensors(folder / WEIGHTS)
    if not (folder / LEGACY).is_file():
        raise RunError(f"{folder} has no {WEIGHTS}. Weights in several files are not read: save them as one.")
    if not trust_pickle:
        raise RunError(
            f"{folder} has its weights as {LEGACY} alone. That is a pickle: a program that can do anything when it "
            "is read. If you trust who made it, give --trust-pickle; it is then read by torch's restricted reader, "
            f"which has had security holes of its own. Better is a copy of the model with {WEIGHTS}."
        )
    return read_legacy(plain_file(folder / LEGACY))


def read_legacy(path: Path) -> dict[str, Tensor]:
    """The one place where a pickle is read, by torch's restricted reader."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a broken or hostile file makes the reader raise
        raise RunError(f"{path} cannot be read as weights alone: {str(error).partition(chr(10))[0]}") from error
    if not isinstance(content, dict) or not all(isinstance(one, Tensor) for one in content.values()):
        raise RunError(f"{path} holds something else than tensors by name.")
    return content
