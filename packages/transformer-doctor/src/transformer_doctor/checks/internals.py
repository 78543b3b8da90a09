"""Trace the attentions, embeddings and dropouts of a model while it runs, and judge them.

Shapes: B batch, S source length, T target length, H heads, E head width.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import torch
from torch import Tensor

from transformer_doctor.attention_tracer import AttentionTracer
from transformer_doctor.catalogue import in_case, model_finding
from transformer_doctor.checks.calls import trace_pass
from transformer_doctor.checks.masks import AttentionPart, covered_scores, per_row
from transformer_doctor.checks.positions import embedding_findings, position_tables, signal, sinusoid_findings
from transformer_doctor.checks.scales import scale_findings, tied_logits_findings
from transformer_doctor.checks.settings import (
    SETTINGS,
    residual_findings,
    setting_findings,
    unused_findings,
    window_findings,
)
from transformer_doctor.model_adapter import ModelAdapter, Samples, error_of
from transformer_doctor.report import Finding, reason_of
from transformer_doctor.tolerances import relative_change
from transformer_doctor.trace import HIDES, Attention

_SOURCE, _TARGET = 11, 7  # lengths, unless the model refuses them
_CUT = (0, 2, 3)  # padded positions of the rows, in turn
_MIDDLE = 2  # target position that is padded between real ones in the third pass
_FIRST_HIDDEN = (0, 1, 2)  # diagonals at which a mask of later keys may begin
# A fill below the smallest half is infinite in half precision.
_SMALLEST_HALF = torch.finfo(torch.half).min
_MASKED_SCORES = {torch.finfo(dtype).min for dtype in (torch.float64, torch.float32, torch.bfloat16)} | {-math.inf}

_ATTENTION = "attention is scaled, masked and projected as in the paper"
_SOFTMAX = "the softmax is taken over the keys"
_DROPOUT = "dropout does not fall on the residual connection"
_SIGNAL = "token embeddings are not much weaker than positions"
_TIED = "tied logits are not scaled by the model width"
_SINUSOIDS = "sinusoidal positions are those of the paper"
_NO_ATTENTION = "no attention was recognised"
_Observed = TypeVar("_Observed")


@dataclass(frozen=True)
class Internals:
    """Attentions of a pass over padded rows, and of a pass over other tokens with the same padding.

    Attributes:
        attentions: attentions of the first pass.
        others: attentions of the second pass.
        middle: attentions of a third pass, with padding between real target tokens; empty without padding.
        source_padded, target_padded: padding of the first pass, (B, S) and (B, T).
        found: findings that attentions have no part in.
        reads_past: whether the last scores depend on earlier target tokens.
        asked: checks that were made, a sentence each.
        skipped: checks that could not be made, with their reasons.
    """

    attentions: Sequence[Attention]
    others: Sequence[Attention]
    source_padded: Tensor
    target_padded: Tensor
    middle: Sequence[Attention] = ()
    found: Sequence[Finding] = ()
    reads_past: bool = True
    kind: str = "encoder-decoder"
    asked: Sequence[str] = ()
    skipped: Sequence[tuple[str, str]] = ()

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Return B, S and T."""
        return (*self.source_padded.shape, self.target_padded.size(1))

    def of(self, side_of_queries: str, side_of_keys: str) -> list[Attention]:
        """Return the attentions of queries of one side on keys of a side, recognised by T and S.

        Where source and target have the same length, they are recognised by the ids that they were computed from.
        """
        lengths = dict(zip(("source", "target"), self.sizes[1:], strict=True))
        sizes = (lengths[side_of_queries], lengths[side_of_keys])
        chosen = [attention for attention in self.attentions if (attention.queries, attention.keys) == sizes]
        if lengths["source"] != lengths["target"] or self.kind != "encoder-decoder":
            return chosen
        wanted = [side_of_queries == "target", side_of_keys == "target"]
        return [found for found in chosen if ["target" in traced for traced in found.sides] == wanted]

    @cached_property
    def decoder_self(self) -> AttentionPart:
        """Return the self-attentions of the decoder, which have to hide later keys."""
        real, pairs = ~self.target_padded[:, None, :], torch.ones(self.sizes[2], self.sizes[2], dtype=torch.bool)
        name = "self-attention" if self.kind == "decoder" else "decoder self-attention"
        attentions = [] if self.kind == "encoder" else self.of("target", "target")
        return AttentionPart(name, attentions, pairs.triu(1) & real, pairs.tril() & real)

    @cached_property
    def on_source(self) -> list[AttentionPart]:
        """Return encoder self-attentions and cross-attentions, which have to hide padded keys from real queries."""
        own = "self-attention" if self.kind == "encoder" else "encoder self-attention"
        parts: list[AttentionPart] = []
        if self.kind == "decoder":
            return parts
        for name, side in ((own, "source"), ("cross-attention", "target")):
            queries = self.source_padded if side == "source" else self.target_padded
            real = ~queries[:, :, None]
            hide, show = real & self.source_padded[:, None, :], real & ~self.source_padded[:, None, :]
            attentions = [part for part in self.of(side, "source") if part not in self.without_meaning]
            parts.append(AttentionPart(name, attentions, hide, show))
        return [part for part in parts if part.attentions]

    @cached_property
    def without_meaning(self) -> list[Attention]:
        """Return attentions whose values are the same for other tokens and for all keys, though queries differ."""
        return [
            own
            for own, other in zip(self.attentions, self.others, strict=False)
            if own.value is not None and other.value is not None and torch.equal(own.value, other.value)
            and own.query.shape == other.query.shape and not torch.equal(own.query, other.query)
            and _one_value_for_all_keys(own, self.sizes[0])
        ]  # fmt: skip

    @property
    def without_keys(self) -> list[Attention]:
        """Return the self-attentions of the decoder in which a padded query has no key left.

        Where real queries do not see a padded key either, the mask covers both, and such a query does no harm.
        """
        if not self.target_padded.any():
            return []
        chosen = [
            attention
            for attention in self.decoder_self.attentions
            for rows in per_row(attention, covered_scores(attention), self.sizes[0])
            if bool(rows.all(1)[self.target_padded].all(-1).any())
        ]
        return [] if chosen and self.hides_padded_target_keys else chosen

    @property
    def hides_padded_target_keys(self) -> bool:
        """Return whether the decoder hides a padded target key from the real queries after it."""
        middle = replace(self, attentions=self.middle).decoder_self.attentions
        rows = [next(per_row(found, covered_scores(found), self.sizes[0]), None) for found in middle]
        hidden = [bool(row[:, :, _MIDDLE + 1 :, _MIDDLE].all()) for row in rows if row is not None]
        return bool(hidden) and all(hidden)


def trace_internals(adapter: ModelAdapter, samples: Samples) -> Internals:
    """Trace forward passes in eval() and one in train(); checks that raise an error are listed as not made."""
    skipped: list[tuple[str, str]] = []
    asked: list[str] = []

    def observe(checks: Sequence[str], make: Callable[[], Iterable[_Observed]]) -> list[_Observed]:
        try:
            result = [*make()]
        except Exception as error:  # any exception of the user's model
            skipped.extend((check, reason_of(error)) for check in checks)
            return []
        asked.extend(checks)
        return result

    lengths = {"source": _SOURCE, "target": _TARGET}
    if samples.fixed_length or error_of(adapter, samples.ids(**lengths)) is not None:
        lengths = {"source": samples.source, "target": samples.target}
    first, padded = _padded_ids(adapter, samples, lengths)
    second, _ = _padded_ids(adapter, samples, lengths)
    passes = observe([_ATTENTION, _SOFTMAX, _TIED], lambda: [trace_pass(adapter, ids) for ids in (first, second)])
    attentions, others = [tracer.attentions for tracer, _ in passes] or ([], [])
    if passes and not attentions:
        skipped += [(check, _NO_ATTENTION) for check in (_ATTENTION, _SOFTMAX)]
        asked[:] = [_TIED]
    module, in_training = adapter.module, list[AttentionTracer]()
    if module is not None:
        module.train()
        in_training = observe([_DROPOUT], lambda: [trace_pass(adapter, first)[0]])
        module.eval()
    else:
        skipped.append((_DROPOUT, "no nn.Module was found to call train() on"))
    found = [finding for tracer in in_training for finding in _dropout_findings(tracer)]
    found += observe([_SIGNAL], lambda: embedding_findings(adapter, signal(adapter, samples)))
    found += observe([_SINUSOIDS], lambda: sinusoid_findings(position_tables(adapter, samples)))
    if passes:
        found += observe([], lambda: _tied_logits_findings(*passes[0]))
    if module is not None and passes:
        rates = {rate for tracer in in_training for rate in tracer.dropout_rates}
        found += observe([SETTINGS], lambda: setting_findings(module, *passes[0], rates))
        found += observe([], lambda: window_findings(adapter, samples))
        found += observe([], lambda: unused_findings(adapter, first, *passes[0]))
        if not torch.equal(passes[0][1], passes[1][1]):
            found += observe([], lambda: residual_findings(adapter, passes[0][0], (first, second)))
    middle: Sequence[Attention] = ()
    if adapter.pad is not None and "target" in adapter.sides:
        target = first["target"].clone()
        target[:, _MIDDLE] = adapter.pad
        middle = observe([], lambda: trace_pass(adapter, {**first, "target": target})[0].attentions)
    return Internals(
        attentions, others, padded["source"], padded["target"], middle, found,
        observe([], lambda: [_reads_past(adapter, samples)]) != [False], adapter.kind, asked, skipped,
    )  # fmt: skip


def _padded_ids(
    adapter: ModelAdapter, samples: Samples, lengths: Mapping[str, int]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return ids and padding (True where padded) by side, (B, length); without a padding id none is padded."""
    ids = samples.ids(**lengths)
    rows = torch.arange(samples.batch)[:, None]
    cut = torch.tensor(_CUT)[rows % len(_CUT)] if samples.batch > 1 else torch.tensor([[_CUT[1]]])
    cut = cut if adapter.pad is not None else torch.zeros_like(cut)
    padded = {side: torch.arange(length)[None] >= length - cut for side, length in lengths.items()}
    if adapter.pad is not None:
        ids = {side: rows.masked_fill(padded[side], adapter.pad) for side, rows in ids.items()}
    return ids, padded


def _reads_past(adapter: ModelAdapter, samples: Samples) -> bool:
    if "target" not in adapter.sides:
        return True
    ids = samples.ids()
    other = ids["target"].clone()
    other[:, 1:-1] = samples.others("target", ids["target"])[:, 1:-1]
    with torch.no_grad():
        scores, changed = (adapter(ids | {"target": rows})[:, -1] for rows in (ids["target"], other))
    return relative_change(scores, changed) > adapter.tolerances.same_shape


def _tied_logits_findings(tracer: AttentionTracer, scores: Tensor) -> Iterator[Finding]:
    trace = tracer.trace(scores)
    layer = trace.projection
    if layer is not None and id(layer.weight) in {lookup.table for lookup in tracer.lookups}:
        spread, norm = (
            float(scores.float().std(-1).mean()),
            float(layer.weight.detach().float().norm(dim=-1).mean()),
        )
        yield from tied_logits_findings(layer.width_in, math.prod((*layer.factors, *trace.factors)), spread, norm)


def _dropout_findings(tracer: AttentionTracer) -> Iterator[Finding]:
    if tracer.dropped_residuals:
        evidence = (
            f"in train(), {len(tracer.dropped_residuals)} additions have the result of a dropout as their residual"
        )
        yield model_finding("dropout-on-residual", evidence).at(tracer.dropped_residuals[0])


def structure_findings(internals: Internals) -> Iterator[Finding]:
    """Yield findings about internals that need no symptom in the outputs."""
    yield from scale_findings(internals.attentions, internals.others)
    for attention in internals.attentions:
        layer, width = attention.projection, attention.width
        if layer and attention.heads > 1 and layer.width_in == layer.width_out == width and len(layer.shape) == 4:
            evidence = f"a linear layer of {width} x {width} makes the queries of all {attention.heads}"
            evidence += f" heads of width {width}; its input has the shape {layer.shape}"
            yield model_finding("shared-projections", evidence).at(attention.place)
    for attention in internals.without_meaning:
        evidence = f"an attention of {attention.queries} queries on {attention.keys} keys averages values that"
        evidence += " stay the same to the bit when every token is another one, and vary with the padding alone"
        yield model_finding("mask-as-value", evidence).at(attention.place)
    yield from _softmax_findings(internals)
    causal = list(_causal_cross_attention(internals))
    yield from causal
    for attention, evidence in () if causal else _attention_faults(internals):
        finding = replace(model_finding("attention-differs", evidence, "warning"), check=_ATTENTION)
        yield finding.at(attention.place)
    yield from internals.found


def _softmax_findings(internals: Internals) -> Iterator[Finding]:
    wrong = [attention for attention in internals.attentions if attention.softmax_axis != "keys"]
    if wrong:
        axes = {"queries": "the queries", "other": "the heads or the rows of the batch"}
        evidence = f"in {len(wrong)} of {len(internals.attentions)} attentions the softmax runs over"
        evidence += f" {axes[wrong[0].softmax_axis]}: the weights of a query's keys do not add up to 1"
        yield model_finding("softmax-axis", evidence).at(wrong[0].place)


def _attention_faults(internals: Internals) -> Iterator[tuple[Attention, str]]:
    """Yield faults of heads, and of masks that hide real tokens from every query, each with an attention."""
    batch, parts = internals.sizes[0], [internals.decoder_self, *internals.on_source]
    for attention in internals.attentions:
        records = () if attention.weights is None else per_row(attention, attention.raw + attention.weights, batch)
        same = [torch.allclose(rows, rows[:, :1].expand_as(rows)) for rows in records if rows.size(1) > 1]
        if any(same) and attention.raw.any():
            yield attention, "all heads have the same scores and the same weights"
        assert attention.value is not None
        keys, values = (_equal_heads(tensor, attention.heads) for tensor in (attention.key, attention.value))
        if keys != values and len({*keys}) == len({*values}) < len(keys):
            yield attention, f"the query heads read keys of the heads {keys}, and values of the heads {values}"
    if sum(len(part.attentions) for part in parts) != len(internals.attentions):
        return  # other attentions, such as those of chunks, may see what these hide
    others = dict(zip(internals.attentions, internals.others, strict=False))
    for part in parts:
        pairs = [*part.attentions, *map(others.get, part.attentions)]
        seen = [[rows.any(1) for rows in per_row(pair, ~covered_scores(pair), batch)] for pair in pairs if pair]
        if not pairs or any(part.faults) or not all(seen):
            continue
        visible = part.show & torch.stack([*itertools.chain(*seen)]).any(0)  # (B, T, S)
        first = int(part is internals.decoder_self)  # the start symbol may have the id of padding
        hidden = (part.show.any(1) & ~visible.any(1))[:, first:]  # (B, S - first)
        if part is internals.decoder_self and not visible.diagonal(dim1=1, dim2=2)[:, 1:].any():
            yield part.attentions[0], f"{part.name} hides every token but the first from itself"
        elif hidden.any(1).all() and (first or visible.triu(1).any()):  # not of a causal one
            places = [1 + first + int(row.nonzero()[0]) for row in hidden]
            evidence = f"{part.name} hides a real token of each row from all queries, at positions {places}"
            yield part.attentions[0], evidence


def _equal_heads(tensor: Tensor, heads: int) -> list[int]:
    """Return for each head of keys or values the first head with the same numbers, empty where it is unknown."""
    axis = next((axis for axis in range(1, tensor.dim()) if tensor.size(axis) == heads), None)
    parts = () if axis is None or bool(tensor.isnan().any()) else tensor.unbind(axis)
    return [next(number for number, other in enumerate(parts) if torch.equal(part, other)) for part in parts]


def _causal_cross_attention(internals: Internals) -> Iterator[Finding]:
    """Yield a finding if cross-attention hides the source tokens behind the position of the query."""
    cross = [part for part in internals.on_source if part.name == "cross-attention"]
    for attention in cross[0].attentions if cross else ():
        for hidden in list(per_row(attention, covered_scores(attention), internals.sizes[0]))[:1]:
            rows = hidden[0].any(0)  # of the first row, which is not padded: (T, S)
            if any(torch.equal(rows, torch.ones_like(rows).triu(first)) for first in _FIRST_HIDDEN):
                evidence = f"the first queries see {(~rows).sum(1)[:3].tolist()} of {rows.size(1)} source tokens"
                yield model_finding("causal-cross-attention", evidence).at(attention.place)
                return


def _one_value_for_all_keys(attention: Attention, batch: int) -> bool:
    """Return whether the values of some row are the same for all its keys, and those of other rows are not.

    If the values are a mask, the first row is such a row: it has no padding. Values that never vary are no mask.
    """
    value, keys = attention.value, attention.keys
    if value is None or keys not in value.shape:
        return False
    by_key = value.movedim(value.shape.index(keys), 0).flatten(1)  # (S, B x H x E in any order)
    same = (by_key == by_key[:1]).all(0)
    return int(same.sum()) * batch >= by_key.size(1) and not bool(same.all())


def fill_findings(internals: Internals) -> Iterator[Finding]:
    """Yield findings about the numbers that hidden scores are filled with.

    A fill that hides nothing is reported only if it leaves a score visible that has to be hidden.
    """
    visible = any("fill" in part.faults for part in (internals.decoder_self, *internals.on_source))
    fills = {fill for attention in internals.attentions for fill in attention.fills} - _MASKED_SCORES
    for fill in sorted(fills):
        evidence = f"hidden scores are filled with {fill:g}"
        if fill > HIDES and visible:
            yield model_finding("mask-fill", f"{evidence}: they are not hidden at all")
        elif fill < _SMALLEST_HALF:
            evidence += ", which half precision cannot hold (its least: -65504)"
            yield in_case(model_finding("mask-fill", evidence, "note"), "fill-too-low")
        elif _SMALLEST_HALF < fill <= HIDES:
            evidence += ": they are hidden only while all others are far above it"
            yield in_case(model_finding("mask-fill", evidence, "note"), "fill-moderate")
