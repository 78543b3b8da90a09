"""Findings from the attentions, embeddings and dropouts of a model, traced while it runs.

Shapes: B batch, S source length, T target length, H heads, E head width.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from manyheads.doctor.attention_tracer import AttentionTracer
from manyheads.doctor.catalogue import model_finding
from manyheads.doctor.model_adapter import ModelAdapter, Samples
from manyheads.doctor.report import Finding
from manyheads.doctor.tolerances import SAME_FACTOR
from manyheads.doctor.trace import Attention

__all__ = ["Internals", "fill_findings", "structure_findings", "trace_internals"]

BATCH, SOURCE, TARGET = 3, 11, 7
CUT = (0, 2, 3)  # how many positions of each row are padding
TOKENS_FOR_SIGNAL, POSITIONS_FOR_SIGNAL = 64, 31
# Weaker than this share of the positions, and a token's row is lost in them. S0 has 1 / 121; a Marian model at its
# start without scale_embedding, which trains, has 1 / 35.
WEAKEST = 1 / 40
# A fill of at most this hides: exp(-100) is nothing. One below the smallest half is infinite in half precision.
HIDES, SMALLEST_HALF = -100.0, torch.finfo(torch.half).min
LOWEST = {torch.finfo(dtype).min for dtype in (torch.float64, torch.float32, torch.bfloat16)} | {-math.inf}


@dataclass(frozen=True)
class Internals:
    """Attentions of a pass over padded rows, and of a pass over other tokens with the same padding.

    Attributes:
        attentions: attentions of the first pass.
        others: attentions of the second pass.
        dropped_residuals: number of dropouts on the residual connection, in train().
        signal: by side, deviation over tokens as a ratio to that over positions; inf without positions.
        source_padded, target_padded: padding of the first pass, (B, S) and (B, T).
    """

    attentions: Sequence[Attention]
    others: Sequence[Attention]
    dropped_residuals: int
    signal: Mapping[str, float]
    source_padded: Tensor
    target_padded: Tensor

    def of(self, queries: int, keys: int) -> list[Attention]:
        """Return the attentions with these numbers of queries and keys."""
        return [each for each in self.attentions if (each.queries, each.keys) == (queries, keys)]

    @property
    def decoder_self(self) -> list[Attention]:
        """Return the self-attentions of the decoder."""
        return self.of(TARGET, TARGET)

    @property
    def on_source(self) -> list[Attention]:
        """Return encoder self-attentions and cross-attentions."""
        return [*self.of(SOURCE, SOURCE), *self.of(TARGET, SOURCE)]

    @property
    def across_rows(self) -> list[Attention]:
        """Return the attentions whose queries and keys are the rows of the batch."""
        return self.of(BATCH, BATCH)

    @property
    def without_look_ahead_mask(self) -> list[Attention]:
        """Return the self-attentions of the decoder in which a later key is not hidden."""
        later = torch.ones(TARGET, TARGET, dtype=torch.bool).triu(1)
        return [each for each in self.decoder_self if not hidden_pairs(each)[:, later].all()]

    @property
    def with_visible_padding(self) -> list[Attention]:
        """Return attentions on the source, but for meaningless ones, in which a real query sees a padded key."""
        meaningless = [id(each) for each in self.without_meaning]
        return [
            each for each in self.on_source if id(each) not in meaningless and not self.hides_source_padding(each)
        ]

    @property
    def without_meaning(self) -> list[Attention]:
        """Return attentions whose values are the same for other tokens and for all keys, though queries differ."""
        both = zip(self.attentions, self.others, strict=False)
        return [
            each
            for each, other in both
            if same_value_for_other_tokens(each, other) and one_value_for_all_keys(each)
        ]

    def hides_source_padding(self, attention: Attention) -> bool:
        """Return whether no real query sees a padded source key."""
        queries = self.source_padded if attention.queries == SOURCE else self.target_padded
        pairs = ~queries[:, :, None] & self.source_padded[:, None, :]
        return bool(hidden_pairs(attention)[pairs].all())

    def hides_every_key(self, attention: Attention) -> bool:
        """Return whether every key of some padded query is hidden."""
        padded = self.source_padded if attention.queries == SOURCE else self.target_padded
        return bool(hidden_pairs(attention)[padded].all(-1).any())


def hidden_pairs(attention: Attention) -> Tensor:
    """Return which pairs of query and key are hidden in all heads: bool (B, T, S)."""
    shape = (BATCH, attention.heads, attention.queries, attention.keys)
    hidden = attention.hidden
    if hidden is None:
        return torch.zeros(BATCH, attention.queries, attention.keys, dtype=torch.bool)
    hidden = hidden.detach().cpu()
    if hidden.dim() == 2 and len(hidden) % (BATCH * attention.queries) == 0:  # (B * H * T, S)
        hidden = hidden.unflatten(0, (BATCH, -1, attention.queries))
    elif hidden.dim() == 3:
        hidden = hidden.unsqueeze(1) if len(hidden) in (1, BATCH) else hidden.unflatten(0, (BATCH, -1))
    try:
        return torch.broadcast_to(hidden, shape).all(1)
    except RuntimeError:  # a shape of which nothing is known
        return torch.zeros(BATCH, attention.queries, attention.keys, dtype=torch.bool)


def trace_internals(adapter: ModelAdapter, samples: Samples) -> Internals:
    """Trace two forward passes in eval() and one in train()."""
    first, padded = padded_ids(adapter, samples)
    second, _ = padded_ids(adapter, samples)
    attentions, others = (trace_pass(adapter, ids).attentions for ids in (first, second))
    dropped = 0
    if adapter.module is not None:
        adapter.module.train()
        dropped = trace_pass(adapter, first).dropped_residuals
        adapter.module.eval()
    return Internals(attentions, others, dropped, signal(adapter, samples), padded["source"], padded["target"])


def padded_ids(adapter: ModelAdapter, samples: Samples) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return ids and padding (True where padded) by side, (B, length); without a padding id none is padded."""
    ids = samples.ids(batch=BATCH, source=SOURCE, target=TARGET)
    padded = {}
    for side, length in (("source", SOURCE), ("target", TARGET)):
        cut = torch.tensor(CUT)[:, None] if adapter.pad is not None else torch.zeros(BATCH, 1, dtype=torch.int64)
        padded[side] = torch.arange(length)[None] >= length - cut
    if adapter.pad is not None:
        ids = {side: rows.masked_fill(padded[side], adapter.pad) for side, rows in ids.items()}
    return ids, padded


@torch.no_grad()
def trace_pass(adapter: ModelAdapter, ids: Mapping[str, Tensor]) -> AttentionTracer:
    """Run one forward pass and return its trace."""
    watched = {side: rows.to(adapter.device) for side, rows in ids.items()}
    with AttentionTracer(watched) as tracer:
        adapter(watched)
    return tracer


def signal(adapter: ModelAdapter, samples: Samples) -> dict[str, float]:
    """Return, by side, how much the first layer's input varies over tokens, as a ratio to that over positions."""
    positions = min(POSITIONS_FOR_SIGNAL, adapter.stated_limit or POSITIONS_FOR_SIGNAL)
    # no mark at the first position: every position has all kinds of tokens
    ids = {side: samples.content(side, TOKENS_FOR_SIGNAL, positions) for side in adapter.sides}
    ratios = {}
    for side, stream in trace_pass(adapter, ids).streams.items():
        x = stream.float()
        if x.dim() == 2:  # (B * length, D)
            x = x.unflatten(0, (TOKENS_FOR_SIGNAL, -1)) if len(x) % TOKENS_FOR_SIGNAL == 0 else x[None]
        elif x.size(1) == TOKENS_FOR_SIGNAL:  # time first
            x = x.transpose(0, 1)
        if len(x) != TOKENS_FOR_SIGNAL or x.size(1) < 2:  # of pooled texts no position is left
            continue
        over_tokens = x.var(0).mean()
        over_positions = (x.mean(0).var(0).mean() - over_tokens / len(x)).clamp_min(0)
        ratios[side] = float((over_tokens / over_positions).sqrt()) if over_positions > 1e-12 else math.inf
    return ratios


def structure_findings(adapter: ModelAdapter, internals: Internals) -> Iterator[Finding]:
    """Yield findings about internals that need no symptom in the outputs."""
    yield from scale_findings(internals)
    for attention in internals.attentions:
        layer, width = attention.projection, attention.width
        if layer and attention.heads > 1 and layer.width_in == layer.width_out == width and len(layer.shape) == 4:
            evidence = (
                f"a linear layer of {width} x {width} makes the queries of all {attention.heads} heads of width "
                f"{width}; its input has the shape {layer.shape}"
            )
            yield model_finding("shared-projections", evidence)
    for attention in internals.without_meaning:
        evidence = (
            f"an attention of {attention.queries} queries on {attention.keys} keys averages values that stay the "
            "same to the bit when every token is another one"
        )
        yield model_finding("mask-as-value", evidence)
    if internals.dropped_residuals:
        evidence = (
            f"in train(), {internals.dropped_residuals} additions have the result of a dropout as their residual"
        )
        yield model_finding("dropout-on-residual", evidence)
    yield from embedding_findings(adapter, internals)


def scale_findings(internals: Internals) -> Iterator[Finding]:
    """Yield findings about the factor before the softmax where it is not 1 / sqrt(E)."""
    for attention in internals.attentions:
        heads, width, factor = attention.heads, attention.width, attention.factor
        if width < 2:
            continue
        if heads > 1 and math.isclose(factor, (heads * width) ** -0.5, rel_tol=SAME_FACTOR):
            evidence = (
                f"{heads} heads of width {width}: scores are multiplied by {factor:.4g} = 1 / "
                f"sqrt({heads * width}) instead of {width**-0.5:.4g} = 1 / sqrt({width})"
            )
            yield model_finding("scaled-by-model-width", evidence)
        elif not any(math.isclose(factor, usual, rel_tol=SAME_FACTOR) for usual in (width**-0.5, 1.0)):
            evidence = f"heads of width {width}: scores are multiplied by {factor:.4g}"
            yield model_finding("unusual-scale", evidence, "note")


def same_value_for_other_tokens(attention: Attention, other: Attention) -> bool:
    """Return whether the values are bit-identical though the queries differ."""
    if attention.value is None or other.value is None or attention.query.shape != other.query.shape:
        return False
    return torch.equal(attention.value, other.value) and not torch.equal(attention.query, other.query)


def one_value_for_all_keys(attention: Attention) -> bool:
    """Return whether the values of some row are the same for all its keys; the first row has no padding."""
    value, keys = attention.value, attention.keys
    if value is None or keys not in value.shape:
        return False
    by_key = value.movedim(value.shape.index(keys), 0).flatten(1)  # (S, B x H x E in any order)
    return int((by_key == by_key[:1]).all(0).sum()) * BATCH >= by_key.size(1)


def embedding_findings(adapter: ModelAdapter, internals: Internals) -> Iterator[Finding]:
    """Yield findings about weak token embeddings and the embedding of padding."""
    weak = {side: ratio for side, ratio in internals.signal.items() if ratio < WEAKEST}
    if weak:
        sides = " and ".join(f"{1 / ratio:.0f} times on the {side} side" for side, ratio in weak.items())
        evidence = f"tokens vary less than positions where the first layer reads them: {sides}"
        yield model_finding("weak-embeddings", evidence)
    if adapter.module is None:
        return
    named = list(adapter.module.named_parameters(remove_duplicate=False))
    for part in adapter.module.modules():
        if isinstance(part, nn.Embedding) and part.padding_idx is not None:
            tied = sum(weight is part.weight for _, weight in named) > 1
            strength = float(part.weight[part.padding_idx].detach().abs().max())
            if strength > 0 and not tied:
                evidence = (
                    f"the row {part.padding_idx} of an embedding of {len(part.weight)} rows is up to {strength:.2g}"
                )
                yield model_finding("pad-row-overwritten", evidence)


def fill_findings(internals: Internals) -> Iterator[Finding]:
    """Yield findings about the numbers that hidden scores are filled with."""
    fills = {fill for attention in internals.attentions for fill in attention.fills} - LOWEST
    for fill in sorted(fills):
        if fill > HIDES:
            yield model_finding("mask-fill", f"hidden scores are filled with {fill:g}: they are not hidden at all")
        elif fill < SMALLEST_HALF:
            evidence = (
                f"hidden scores are filled with {fill:g}, which half precision cannot hold (its least: -65504)"
            )
            yield model_finding("mask-fill", evidence, "warning")
        elif fill > SMALLEST_HALF:
            evidence = (
                f"hidden scores are filled with {fill:g}: they are hidden only while all others are far above it"
            )
            yield model_finding("mask-fill", evidence, "note")
