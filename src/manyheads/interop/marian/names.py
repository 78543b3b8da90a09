"""The weights of manyheads models and of transformers' MarianMT, by name.

Both are the same model except for three things. Query, key and value are one matrix in manyheads and three in
MarianMT. The position embedding of manyheads has sines and cosines in turn, that of MarianMT all sines before all
cosines: the model width of one is an exact permutation of the other. The rows of the vocabulary are in another
order.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from manyheads.config.schema import ModelConfig

_LAYERS: dict[str, dict[str, list[str]]] = tomllib.loads(
    (Path(__file__).parent / "layers.toml").read_text(encoding="utf-8")
)
_READERS = ("project_in", "expand")  # layers whose input has the model width; in all others the output has it


@dataclass(frozen=True)
class Entry:
    """One weight of a manyheads model.

    Attributes:
        name: its name in manyheads.
        marian_names: its name in MarianMT, or the names of the three weights that manyheads concatenates.
        axis: axis of the model width; None if it has none.
    """

    name: str
    marian_names: tuple[str, ...]
    axis: int | None


def entries(config: ModelConfig) -> Iterator[Entry]:
    """Yield all weights between the embeddings and the output layer."""
    for side, count in (("encoder", config.num_encoder_layers), ("decoder", config.num_decoder_layers)):
        for number in range(count):
            for our_layer, their_layers in _LAYERS[side].items():
                for kind in ("weight", "bias") if config.bias or our_layer.endswith(".norm") else ("weight",):
                    names = tuple(f"model.{side}.layers.{number}.{name}.{kind}" for name in their_layers)
                    axis = 0 if not our_layer.endswith(_READERS) else 1 if kind == "weight" else None
                    yield Entry(f"{side}_layers.{number}.{our_layer}.{kind}", names, axis)


def their_width(tensor: Tensor, axis: int | None) -> Tensor:
    """Permute the width of a manyheads tensor to MarianMT's order."""
    return tensor if axis is None else tensor.index_select(axis, _permutation(tensor.size(axis)))


def our_width(tensor: Tensor, axis: int | None) -> Tensor:
    """Permute the width of a MarianMT tensor to manyheads' order."""
    return tensor if axis is None else tensor.index_select(axis, _permutation(tensor.size(axis)).argsort())


def _permutation(width: int) -> Tensor:
    """Return the manyheads index of each MarianMT index of the width."""
    return torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])
