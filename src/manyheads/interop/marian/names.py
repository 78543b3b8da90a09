"""Our weights and those of transformers' MarianMT, name by name.

Both are the same model but for three things. Query, key and value stand in one matrix here, in three there. Our
positional signal has sines and cosines in turn, theirs all sines, then all cosines: so their width is ours in
another order, which is exact. And the rows of the vocabulary have other numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from manyheads.config.schema import ModelConfig

__all__ = ["Entry", "entries", "our_width", "their_width"]


@dataclass(frozen=True)
class Entry:
    """One of our weights.

    Attributes:
        ours: its name.
        theirs: the name of theirs, or of the three that stand one above the other in ours.
        axes: along which of its axes the width runs.
    """

    ours: str
    theirs: tuple[str, ...]
    axes: tuple[int, ...]


def entries(config: ModelConfig) -> Iterator[Entry]:
    """All weights between the embeddings and the output layer."""
    for layer in range(config.num_encoder_layers):
        ours, theirs = f"encoder_layers.{layer}", f"model.encoder.layers.{layer}"
        yield from attention(f"{ours}.self_attention", f"{theirs}.self_attn", config.bias)
        yield from norm(f"{ours}.around_attention.norm", f"{theirs}.self_attn_layer_norm")
        yield from feed_forward(ours, theirs, config.bias)
    for layer in range(config.num_decoder_layers):
        ours, theirs = f"decoder_layers.{layer}", f"model.decoder.layers.{layer}"
        yield from attention(f"{ours}.self_attention", f"{theirs}.self_attn", config.bias)
        yield from norm(f"{ours}.around_self_attention.norm", f"{theirs}.self_attn_layer_norm")
        yield from attention(f"{ours}.cross_attention", f"{theirs}.encoder_attn", config.bias)
        yield from norm(f"{ours}.around_cross_attention.norm", f"{theirs}.encoder_attn_layer_norm")
        yield from feed_forward(ours, theirs, config.bias)


def attention(ours: str, theirs: str, bias: bool) -> Iterator[Entry]:
    """Inside the heads the order of the width stays."""
    parts = [f"{theirs}.{name}_proj" for name in "qkv"]
    yield Entry(f"{ours}.project_in.weight", tuple(f"{part}.weight" for part in parts), (1,))
    yield Entry(f"{ours}.project_out.weight", (f"{theirs}.out_proj.weight",), (0,))
    if bias:
        yield Entry(f"{ours}.project_in.bias", tuple(f"{part}.bias" for part in parts), ())
        yield Entry(f"{ours}.project_out.bias", (f"{theirs}.out_proj.bias",), (0,))


def feed_forward(ours: str, theirs: str, bias: bool) -> Iterator[Entry]:
    """The two matrices, and the norm after them."""
    yield Entry(f"{ours}.feed_forward.expand.weight", (f"{theirs}.fc1.weight",), (1,))
    yield Entry(f"{ours}.feed_forward.contract.weight", (f"{theirs}.fc2.weight",), (0,))
    if bias:
        yield Entry(f"{ours}.feed_forward.expand.bias", (f"{theirs}.fc1.bias",), ())
        yield Entry(f"{ours}.feed_forward.contract.bias", (f"{theirs}.fc2.bias",), (0,))
    yield from norm(f"{ours}.around_feed_forward.norm", f"{theirs}.final_layer_norm")


def norm(ours: str, theirs: str) -> Iterator[Entry]:
    """Gain and bias."""
    yield Entry(f"{ours}.weight", (f"{theirs}.weight",), (0,))
    yield Entry(f"{ours}.bias", (f"{theirs}.bias",), (0,))


def their_width(tensor: Tensor, axes: tuple[int, ...]) -> Tensor:
    """A tensor of ours in their order of the width."""
    for axis in axes:
        places = torch.arange(tensor.size(axis))
        tensor = tensor.index_select(axis, torch.cat([places[::2], places[1::2]]))
    return tensor


def our_width(tensor: Tensor, axes: tuple[int, ...]) -> Tensor:
    """A tensor of theirs in our order of the width."""
    for axis in axes:
        places = torch.arange(tensor.size(axis))
        tensor = tensor.index_select(axis, torch.cat([places[::2], places[1::2]]).argsort())
    return tensor
