"""Attention weights of one text or pair, layer by layer, without changing what the model computes.

Shapes: B batch, L layers, H heads, S source length, T target length, both with their mark, V vocabulary, C classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from manyheads.model.attention import MultiHeadAttention, Observer, attention_weights
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.transformer import Transformer
from manyheads.views.codec import Array
from manyheads.views.parts import Attention, HeadSteps, entropies

ENTROPY_TEXTS = 8  # validation texts on which the entropy of the attention is measured


@dataclass(frozen=True, eq=False)
class Reading:
    """The logits and the attention of a model on one text.

    Attributes:
        logits: (T, V) logits of each next or masked token, or (C,) logits of the classes, on the CPU.
        attention: one entry for each kind of attention.
    """

    logits: Tensor
    attention: tuple[Attention, ...]


@contextmanager
def _observing(modules: Sequence[MultiHeadAttention], observer: Observer) -> Iterator[None]:
    """Call the observer on every attention of these modules while the context is open, in order of computation."""
    for module in modules:
        module.observer = observer
    try:
        yield
    finally:
        for module in modules:
            module.observer = None


@contextmanager
def recording(modules: list[MultiHeadAttention]) -> Iterator[list[Tensor]]:
    """Collect the weights (B, H, T, S) of every attention while the context is open, in order of computation."""
    weights: list[Tensor] = []

    def record(_: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
        weights.append(attention_weights(query, key, mask))

    with _observing(modules, record):
        yield weights


def attention_groups(model: Transformer) -> dict[str, list[MultiHeadAttention]]:
    """Return the attention modules of a model by kind, the lowest layer first."""
    if isinstance(model, EncoderDecoder):
        return {
            "encoder": [layer.self_attention for layer in model.encoder_layers],
            "decoder": [layer.self_attention for layer in model.decoder_layers],
            "cross": [layer.cross_attention for layer in model.decoder_layers],
        }
    kind = "decoder" if isinstance(model, DecoderOnly) else "encoder"
    return {kind: [layer.self_attention for layer in model.layers()]}


@torch.inference_mode()
def capture(model: Transformer, *inputs: Tensor | None) -> Reading:
    """Call a model, in eval mode, on a batch of one text, and return its logits and its attention.

    The inputs are those of the model: a source (1, S) with its end mark and a decoder input (1, T) with the begin
    mark; a text (1, T) with both marks, and its token types if the model has them; or a text (1, T) to continue.
    """
    groups = attention_groups(model)
    weights: dict[MultiHeadAttention, Tensor] = {}
    masks: dict[MultiHeadAttention, Tensor] = {}

    def observe(module: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
        weights[module] = attention_weights(query, key, mask)[0].float().cpu()  # (H, T, S)
        masks[module] = _expanded_mask(mask, weights[module][0])

    with _observing([module for group in groups.values() for module in group], observe):
        logits = model(*inputs)
    attention = []
    for kind, modules in groups.items():
        stacked = np.stack([weights[module].numpy() for module in modules])
        attention.append(Attention(kind, stacked, masks[modules[0]].numpy(), entropies(stacked)))
    return Reading(logits[0].cpu(), tuple(attention))


def _expanded_mask(mask: Tensor | None, weights: Tensor) -> Tensor:
    """Return the mask of a batch of one text as numbers 1 and 0, for weights (T, S): -> (T, S) on the CPU."""
    if mask is None:
        return torch.ones(weights.shape)
    return mask[0, 0].expand(weights.shape).float().cpu()


@torch.inference_mode()
def watch_head(model: Transformer, kind: str, layer: int, head: int, *inputs: Tensor | None) -> HeadSteps:
    """Call a model on a batch of one text, and return what one head computes (section 3.2.1)."""
    computed: list[HeadSteps] = []

    def observe(_: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
        queries, keys, values = (x[0, head].float().cpu() for x in (query, key, value))  # (T, E), twice (S, E)
        weights = attention_weights(query, key, mask)[0, head].float().cpu()
        steps = {
            "queries": queries,
            "keys": keys,
            "values": values,
            "scores": queries @ keys.T / math.sqrt(queries.size(1)),
            "mask": _expanded_mask(mask, weights),
            "weights": weights,
            "outputs": weights @ values,
        }
        computed.append(HeadSteps(kind, layer, head, **{name: x.numpy() for name, x in steps.items()}))

    with _observing([attention_groups(model)[kind][layer]], observe):
        model(*inputs)
    return computed[0]


def mean_entropies(readings: Sequence[Reading]) -> dict[str, list[list[float]]]:
    """Return the entropy of each head, the mean over some texts: kind -> (L, H), in nats, 4 decimals."""
    entropy: dict[str, list[Array]] = {}
    for attention in chain.from_iterable(reading.attention for reading in readings):
        entropy.setdefault(attention.kind, []).append(attention.entropy)
    return {kind: np.round(np.mean(texts, axis=0, dtype=np.float64), 4).tolist() for kind, texts in entropy.items()}
