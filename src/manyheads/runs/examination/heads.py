"""Where the heads of a trained model look, over some texts.

Shapes: H heads, T queries, S keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from manyheads.doctor.after.inside import Head
from manyheads.inspection.capture import recording
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.transformer import Transformer

__all__ = ["heads_of"]

Named = tuple[
    str, MultiHeadAttention, bool
]  # of an attention: its name, itself, whether it sees only what is before


def heads_of(model: Transformer, passes: Sequence[Callable[[], object]]) -> list[Head]:
    """Every head, its figures averaged over some passes, each of one text."""
    named = list(attentions(model))
    sums = [torch.zeros(3, module.num_heads, dtype=torch.float64) for _, module, _ in named]
    for go in passes:
        with torch.inference_mode(), recording([module for _, module, _ in named]) as weights:
            go()
        for place, (_, _, causal) in enumerate(named):
            sums[place] += figures(weights[place][0].double().cpu(), causal=causal)
    return [
        Head(f"{name}.{head + 1}", *(total[:, head] / len(passes)).tolist())
        for (name, module, _), total in zip(named, sums, strict=True)
        for head in range(module.num_heads)
    ]


def attentions(model: Transformer) -> Iterator[Named]:
    """All attentions, in the order in which they are computed."""
    if isinstance(model, EncoderDecoder):
        for number, encoder in enumerate(model.encoder_layers, start=1):
            yield f"encoder {number}", encoder.self_attention, False
        for number, decoder in enumerate(model.decoder_layers, start=1):
            yield f"decoder {number}", decoder.self_attention, True
            yield f"cross {number}", decoder.cross_attention, False
        return
    causal = hasattr(model, "decoder_layers")
    for number, layer in enumerate(model.layers(), start=1):
        yield f"layer {number}", layer.self_attention, causal


def figures(weights: Tensor, *, causal: bool) -> Tensor:
    """Evenness, weight on the first and on the last token: (H, T, S) -> (3, H)."""
    if causal:  # the first query has no choice, and the last token is always its own
        weights = weights[:, 1:]
        visible = torch.arange(2, weights.size(1) + 2)
    else:
        visible = torch.full((weights.size(1),), weights.size(2))
    if weights.size(1) == 0 or int(visible[-1]) < 2:
        return torch.zeros(3, weights.size(0), dtype=torch.float64)
    entropy = -(weights * weights.clamp_min(1e-12).log()).sum(-1)
    even = (entropy / visible.double().clamp_min(math.e**1e-3).log()).mean(1)
    last = torch.zeros_like(even) if causal else weights[..., -1].mean(1)
    return torch.stack([even, weights[..., 0].mean(1), last])
