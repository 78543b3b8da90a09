"""Our weights and those of transformers' MarianMT, by name.

Both are the same model but for three things. Query, key and value are one matrix in ours and three in theirs. Our
position embedding has sines and cosines in turn, theirs all sines before all cosines: their width is an exact
permutation of ours. And the rows of the vocabulary are in another order.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from manyheads.config.schema import ModelConfig

__all__ = ["Entry", "entries", "our_width", "their_width"]

LAYERS: dict[str, dict[str, list[str]]] = tomllib.loads(
    (Path(__file__).parent / "layers.toml").read_text(encoding="utf-8")
)
READERS = ("project_in", "expand")  # layers whose input is of the model width; of all others it is the output


@dataclass(frozen=True)
class Entry:
    """One weight of ours.

    Attributes:
        ours: our name.
        theirs: their name, or those of the three that are concatenated in ours.
        axis: axis of the model width; None if it has none.
    """

    ours: str
    theirs: tuple[str, ...]
    axis: int | None


def entries(config: ModelConfig) -> Iterator[Entry]:
    """Yield all weights between the embeddings and the output layer."""
    for side, count in (("encoder", config.num_encoder_layers), ("decoder", config.num_decoder_layers)):
        for number in range(count):
            for ours, theirs in LAYERS[side].items():
                for kind in ("weight", "bias") if config.bias or ours.endswith(".norm") else ("weight",):
                    names = tuple(f"model.{side}.layers.{number}.{name}.{kind}" for name in theirs)
                    axis = 0 if not ours.endswith(READERS) else 1 if kind == "weight" else None
                    yield Entry(f"{side}_layers.{number}.{ours}.{kind}", names, axis)


def their_width(tensor: Tensor, axis: int | None) -> Tensor:
    """Permute a tensor of ours to their order of the width."""
    return tensor if axis is None else tensor.index_select(axis, permutation(tensor.size(axis)))


def our_width(tensor: Tensor, axis: int | None) -> Tensor:
    """Permute a tensor of theirs to our order of the width."""
    return tensor if axis is None else tensor.index_select(axis, permutation(tensor.size(axis)).argsort())


def permutation(width: int) -> Tensor:
    """Return our index of each of their indices of the width."""
    return torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])
