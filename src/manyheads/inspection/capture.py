"""Attention weights of one sentence pair, layer by layer, without changing what the model computes.

Shapes: H heads, S source length, T target length, both with their mark.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from manyheads.model.attention import MultiHeadAttention, attention_weights
from manyheads.model.encoder_decoder import EncoderDecoder

__all__ = ["AttentionMaps", "attention_maps", "recording"]


@dataclass(frozen=True)
class AttentionMaps:
    """The weights of one pair; a list entry a layer, each row of weights adds up to 1.

    Attributes:
        encoder: (H, S, S) where each source token looks among the source.
        decoder: (H, T, T) where each target place looks among the target so far.
        cross: (H, T, S) where each target place looks among the source.
    """

    encoder: list[Tensor]
    decoder: list[Tensor]
    cross: list[Tensor]


@contextmanager
def recording(modules: list[MultiHeadAttention]) -> Iterator[list[Tensor]]:
    """While open, collects the weights (B, H, T, S) of every attention as it is computed, in their order."""
    found: list[Tensor] = []

    def record(module: MultiHeadAttention, query: Tensor, key: Tensor, mask: Tensor | None) -> None:
        found.append(attention_weights(query, key, mask))

    for module in modules:
        module.observer = record
    try:
        yield found
    finally:
        for module in modules:
            module.observer = None


def attention_maps(model: EncoderDecoder, source: Tensor, target_in: Tensor) -> AttentionMaps:
    """Feed a pair by teacher forcing and return where every head looked.

    Args:
        model: in eval mode.
        source: (1, S) ids with the end mark.
        target_in: (1, T) ids with the begin mark; the row of place t is that of predicting token t + 1.
    """
    encoder = [layer.self_attention for layer in model.encoder_layers]
    decoder = [layer.self_attention for layer in model.decoder_layers]
    cross = [layer.cross_attention for layer in model.decoder_layers]
    with torch.inference_mode(), recording([*encoder, *decoder, *cross]) as found:
        model(source, target_in)
    weights = [one[0].float().cpu() for one in found]
    first = len(encoder)
    return AttentionMaps(weights[:first], weights[first::2], weights[first + 1 :: 2])
