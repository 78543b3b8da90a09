"""Our weights and those of transformers' MarianMT, by name.

Both are the same model but for three things. Query, key and value are one matrix in ours and three in theirs. Our
position embedding has sines and cosines in turn, theirs all sines before all cosines: their width is an exact
permutation of ours. And the rows of the vocabulary are in another order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from manyheads.config.schema import ModelConfig

__all__ = ["Entry", "entries", "our_width", "their_width"]

READS, WRITES = 1, 0  # axis of the model width in the matrix of a layer that reads it, and of one that writes it
# Linear layer or norm of ours: theirs, or the three that are one matrix in ours; axis of the model width.
SELF_ATTENTION = (
    ("self_attention.project_in", ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), READS),
    ("self_attention.project_out", ("self_attn.out_proj",), WRITES),
)
CROSS_ATTENTION = (
    ("cross_attention.project_in", ("encoder_attn.q_proj", "encoder_attn.k_proj", "encoder_attn.v_proj"), READS),
    ("cross_attention.project_out", ("encoder_attn.out_proj",), WRITES),
    ("around_cross_attention.norm", ("encoder_attn_layer_norm",), WRITES),
)
FEED_FORWARD = (
    ("feed_forward.expand", ("fc1",), READS),
    ("feed_forward.contract", ("fc2",), WRITES),
    ("around_feed_forward.norm", ("final_layer_norm",), WRITES),
)
ENCODER_LAYER = (
    *SELF_ATTENTION,
    ("around_attention.norm", ("self_attn_layer_norm",), WRITES),
    *FEED_FORWARD,
)
DECODER_LAYER = (
    *SELF_ATTENTION,
    ("around_self_attention.norm", ("self_attn_layer_norm",), WRITES),
    *CROSS_ATTENTION,
    *FEED_FORWARD,
)


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
    for side, count, layer in (
        ("encoder", config.num_encoder_layers, ENCODER_LAYER),
        ("decoder", config.num_decoder_layers, DECODER_LAYER),
    ):
        for number in range(count):
            prefix = f"model.{side}.layers.{number}"
            for ours, theirs, axis in layer:
                for kind in ("weight", "bias") if config.bias or ours.endswith(".norm") else ("weight",):
                    names = tuple(f"{prefix}.{name}.{kind}" for name in theirs)
                    kind_axis = None if kind == "bias" and axis == READS else axis
                    yield Entry(f"{side}_layers.{number}.{ours}.{kind}", names, kind_axis)


def their_width(tensor: Tensor, axis: int | None) -> Tensor:
    """Permute a tensor of ours to their order of the width."""
    return tensor if axis is None else tensor.index_select(axis, permutation(tensor.size(axis)))


def our_width(tensor: Tensor, axis: int | None) -> Tensor:
    """Permute a tensor of theirs to our order of the width."""
    return tensor if axis is None else tensor.index_select(axis, permutation(tensor.size(axis)).argsort())


def permutation(width: int) -> Tensor:
    """Return our index of each of their indices of the width."""
    return torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])
