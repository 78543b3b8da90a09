"""Attention weights of one text or pair, layer by layer, without changing what the model computes.

Shapes: B batch, L layers, H heads, S source length, T target length, both with their mark, V vocabulary, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from torch import Tensor, nn

from manyheads.inspection.codec import Array
from manyheads.inspection.parts import Attention, entropies
from manyheads.model.attention import MultiHeadAttention, Observer, attention_weights
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.encoder_only import MaskedLanguageModel, TextClassifier

__all__ = [
    "AttentionMaps",
    "Reading",
    "attention_maps",
    "mean_entropies",
    "observing",
    "recording",
    "watch_continuation",
    "watch_pair",
    "watch_text",
]


@dataclass(frozen=True)
class AttentionMaps:
    """The attention weights of one pair, a list entry for each layer; each row of weights adds up to 1.

    Attributes:
        encoder: (H, S, S) from each source token to the source.
        decoder: (H, T, T) from each target position to the target so far.
        cross: (H, T, S) from each target position to the source.
    """

    encoder: list[Tensor]
    decoder: list[Tensor]
    cross: list[Tensor]


@dataclass(frozen=True, eq=False)
class Reading:
    """The logits and the attention of a model on one text.

    Attributes:
        logits: (T, V) of each next or masked token, or (C,) of the classes, on the CPU.
        attention: one entry for each kind of attention.
    """

    logits: Tensor
    attention: tuple[Attention, ...]


@contextmanager
def observing(modules: Sequence[MultiHeadAttention], observer: Observer) -> Iterator[None]:
    """While open, call the observer on every attention of these modules, in the order of computation."""
    for module in modules:
        module.observer = observer
    try:
        yield
    finally:
        for module in modules:
            module.observer = None


@contextmanager
def recording(modules: list[MultiHeadAttention]) -> Iterator[list[Tensor]]:
    """While open, collect the weights (B, H, T, S) of every attention, in the order of computation."""
    weights: list[Tensor] = []

    def record(module: MultiHeadAttention, query: Tensor, key: Tensor, mask: Tensor | None) -> None:
        weights.append(attention_weights(query, key, mask))

    with observing(modules, record):
        yield weights


def attention_maps(model: EncoderDecoder, source: Tensor, target_in: Tensor) -> AttentionMaps:
    """Feed a pair by teacher forcing and return the attention weights of every head.

    Args:
        model: in eval mode.
        source: (1, S) ids with the end mark.
        target_in: (1, T) ids with the begin mark; row t predicts token t + 1.
    """
    weights = {
        attention.kind: torch.from_numpy(attention.weights)
        for attention in watch_pair(model, source, target_in).attention
    }
    return AttentionMaps(*(list(weights[kind]) for kind in ("encoder", "decoder", "cross")))


def watch_pair(model: EncoderDecoder, source: Tensor, target_in: Tensor) -> Reading:
    """Feed a pair by teacher forcing; arguments as `attention_maps`."""
    groups = {
        "encoder": [layer.self_attention for layer in model.encoder_layers],
        "decoder": [layer.self_attention for layer in model.decoder_layers],
        "cross": [layer.cross_attention for layer in model.decoder_layers],
    }
    return watch(model, groups, source, target_in)


def watch_text(model: TextClassifier | MaskedLanguageModel, ids: Tensor, types: Tensor | None) -> Reading:
    """Read a text (1, S) with both marks, with token types (1, S) if the model has them; the model in eval mode."""
    return watch(model, {"encoder": [layer.self_attention for layer in model.encoder_layers]}, ids, types)


def watch_continuation(model: DecoderOnly, ids: Tensor) -> Reading:
    """Predict the next token after each token of a text (1, T); the model in eval mode."""
    return watch(model, {"decoder": [layer.self_attention for layer in model.decoder_layers]}, ids)


@torch.inference_mode()
def watch(model: nn.Module, groups: dict[str, list[MultiHeadAttention]], *inputs: Tensor | None) -> Reading:
    """Call a model on a batch of one text, and keep the weights and masks of some modules by kind of attention."""
    weights: dict[MultiHeadAttention, Tensor] = {}
    masks: dict[MultiHeadAttention, Tensor] = {}

    def observe(module: MultiHeadAttention, query: Tensor, key: Tensor, mask: Tensor | None) -> None:
        weights[module] = attention_weights(query, key, mask)[0].float().cpu()  # (H, T, S)
        shape = weights[module].shape[1:]
        masks[module] = torch.ones(shape) if mask is None else mask[0, 0].expand(shape).float().cpu()

    with observing([module for group in groups.values() for module in group], observe):
        logits = model(*inputs)
    attention = []
    for kind, modules in groups.items():
        stacked = np.stack([weights[module].numpy() for module in modules])
        attention.append(Attention(kind, stacked, masks[modules[0]].numpy(), entropies(stacked)))
    return Reading(logits[0].cpu(), tuple(attention))


def mean_entropies(readings: Sequence[Reading]) -> dict[str, list[list[float]]]:
    """Return the entropy of each head, the mean over some texts: kind -> (L, H), in nats, 4 decimals."""
    entropy: dict[str, list[Array]] = {}
    for attention in chain.from_iterable(reading.attention for reading in readings):
        entropy.setdefault(attention.kind, []).append(attention.entropy)
    return {kind: np.round(np.mean(texts, axis=0, dtype=np.float64), 4).tolist() for kind, texts in entropy.items()}
