"""Attention weights of one text or pair, layer by layer, without changing what the model computes.

Shapes: B batch, L layers, H heads, S source length, T target length, both with their mark, V vocabulary, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

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
    """The weights of one pair; a list entry a layer, each row of weights adds up to 1.

    Attributes:
        encoder: (H, S, S) where each source token looks among the source.
        decoder: (H, T, T) where each target place looks among the target so far.
        cross: (H, T, S) where each target place looks among the source.
    """

    encoder: list[Tensor]
    decoder: list[Tensor]
    cross: list[Tensor]


@dataclass(frozen=True, eq=False)
class Reading:
    """What a model said of a text, and where it looked.

    Attributes:
        logits: (T, V) of every next token or hidden one, or (C,) of the classes, on the CPU.
        attention: one entry for each kind that the model has.
    """

    logits: Tensor
    attention: tuple[Attention, ...]


@contextmanager
def observing(modules: Sequence[MultiHeadAttention], observer: Observer) -> Iterator[None]:
    """While open, the observer is told of every attention of these modules as it is computed, in their order."""
    for module in modules:
        module.observer = observer
    try:
        yield
    finally:
        for module in modules:
            module.observer = None


@contextmanager
def recording(modules: list[MultiHeadAttention]) -> Iterator[list[Tensor]]:
    """While open, collects the weights (B, H, T, S) of every attention as it is computed, in their order."""
    found: list[Tensor] = []

    def record(module: MultiHeadAttention, query: Tensor, key: Tensor, mask: Tensor | None) -> None:
        found.append(attention_weights(query, key, mask))

    with observing(modules, record):
        yield found


def attention_maps(model: EncoderDecoder, source: Tensor, target_in: Tensor) -> AttentionMaps:
    """Feed a pair by teacher forcing and return where every head looked.

    Args:
        model: in eval mode.
        source: (1, S) ids with the end mark.
        target_in: (1, T) ids with the begin mark; the row of place t is that of predicting token t + 1.
    """
    found = {one.kind: torch.from_numpy(one.weights) for one in watch_pair(model, source, target_in).attention}
    return AttentionMaps(*(list(found[kind]) for kind in ("encoder", "decoder", "cross")))


def watch_pair(model: EncoderDecoder, source: Tensor, target_in: Tensor) -> Reading:
    """Feed a pair by teacher forcing; arguments as `attention_maps`."""
    groups = {
        "encoder": [layer.self_attention for layer in model.encoder_layers],
        "decoder": [layer.self_attention for layer in model.decoder_layers],
        "cross": [layer.cross_attention for layer in model.decoder_layers],
    }
    with collecting(groups) as kept:
        logits = model(source, target_in)
    return Reading(logits[0].cpu(), kept.attention())


def watch_text(model: TextClassifier | MaskedLanguageModel, ids: Tensor, types: Tensor | None) -> Reading:
    """Read a text (1, S) with both marks, of types (1, S) where the model has such; the model in eval mode."""
    with collecting({"encoder": [layer.self_attention for layer in model.encoder_layers]}) as kept:
        logits = model(ids, types)
    return Reading(logits[0].cpu(), kept.attention())


def watch_continuation(model: DecoderOnly, ids: Tensor) -> Reading:
    """Score what may follow each token of a text (1, T); the model in eval mode."""
    with collecting({"decoder": [layer.self_attention for layer in model.decoder_layers]}) as kept:
        logits = model(ids)
    return Reading(logits[0].cpu(), kept.attention())


def mean_entropies(readings: Sequence[Reading]) -> dict[str, list[list[float]]]:
    """How widely each head looked, the mean over some texts: kind -> (L, H), in nats rounded to 4 decimals."""
    kinds: dict[str, list[Attention]] = {}
    for reading in readings:
        for one in reading.attention:
            kinds.setdefault(one.kind, []).append(one)
    return {
        kind: np.round(np.mean([one.entropy for one in found], axis=0, dtype=np.float64), 4).tolist()
        for kind, found in kinds.items()
    }


class Kept:
    """The weights and masks that have been seen of a text alone in its batch, by the module that computed them."""

    def __init__(self, groups: dict[str, list[MultiHeadAttention]]) -> None:
        self.groups = groups
        self.weights: dict[MultiHeadAttention, Tensor] = {}
        self.masks: dict[MultiHeadAttention, Tensor] = {}

    def observe(self, module: MultiHeadAttention, query: Tensor, key: Tensor, mask: Tensor | None) -> None:
        """See `Observer`."""
        weights = attention_weights(query, key, mask)[0].float().cpu()  # (H, T, S)
        allowed = torch.ones(weights.shape[1:]) if mask is None else mask[0, 0].expand(weights.shape[1:])
        self.weights[module], self.masks[module] = weights, allowed.float().cpu()

    def attention(self) -> tuple[Attention, ...]:
        """One entry for each group."""
        found = []
        for kind, modules in self.groups.items():
            weights = np.stack([self.weights[module].numpy() for module in modules])
            found.append(Attention(kind, weights, self.masks[modules[0]].numpy(), entropies(weights)))
        return tuple(found)


@contextmanager
def collecting(groups: dict[str, list[MultiHeadAttention]]) -> Iterator[Kept]:
    """While open, nothing is computed for gradients, and what these attentions do is kept."""
    kept = Kept(groups)
    with torch.inference_mode(), observing([one for group in groups.values() for one in group], kept.observe):
        yield kept
