"""Judge the masks of traced attentions: which scores are hidden, and how a mask is wrong.

A score is hidden where the softmax gives it no weight. The effect of a mask is read from the scores before and
after it, however it is implemented.

Shapes: B batch, T queries, S keys, H heads. Records have the shape (lead, T, S), see `transformer_doctor.trace`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from transformer_doctor.trace import HIDES, Attention

_MOVED = 50.0  # how far below its product a score is moved by a mask
_SAME_SCORE_SHARE = 1e-3  # share of the largest score up to which two scores are equal

# Kinds of wrong masks, the most certain ones last, and how the evidence names them.
_PHRASES = {
    "absent": "without a mask",
    "partial": "with a mask that hides other keys",
    "heads": "with a mask that some heads lack",
    "wide": "with a mask that is one position too wide",
    "queries": "with queries hidden in the place of keys",
    "inverted": "with the mask inverted",
    "added": "with the mask added as numbers",
    "multiplied": "with scores multiplied by the mask",
    "late": "masked after the softmax",
    "fill": "filled with a number that hides nothing",
}
MaskFault = str


@dataclass(frozen=True)
class AttentionPart:
    """Attentions of one part of a model.

    Attributes:
        name: "encoder self-attention", "decoder self-attention" or "cross-attention".
        attentions: the attentions.
        hide: scores that a mask has to hide, bool (B, T, S).
        show: scores of which a mask has to leave some to each query, bool (B, T, S).
    """

    name: str
    attentions: Sequence[Attention]
    hide: Tensor
    show: Tensor

    @cached_property
    def layers(self) -> list[list[Attention]]:
        """Return the attentions by layer: heads that are modules of their own read the same input."""
        layers: dict[object, list[Attention]] = {}
        for attention in self.attentions:
            source = None if attention.projection is None else attention.projection.source
            layers.setdefault(id(attention) if source is None else id(source), []).append(attention)
        return list(layers.values())

    @cached_property
    def faults(self) -> list[MaskFault | None]:
        """Return the fault of each layer, None where its mask is right."""
        faults = [[_mask_fault(attention, self.hide, self.show) for attention in layer] for layer in self.layers]
        return [next(filter(None, layer), None) for layer in faults]

    @cached_property
    def hides_in_reverse(self) -> bool:
        """Return whether every mask is right for a text in reverse order, whose padding stands before it."""
        turned = [[mask.flip(axes) for mask in (self.hide, self.show)] for axes in ((-1,), (-2, -1))]
        return all(
            any(bool(rows.permute(0, 2, 3, 1)[hide].all()) and not bool(rows.permute(0, 2, 3, 1)[show].any())
                for hide, show in turned for rows in per_row(
                    attention, _hidden_scores(attention), len(self.hide)))
            for attention in self.attentions
        )  # fmt: skip

    def clause(self, *, skip: Sequence[MaskFault] = ()) -> str:
        """Return the number of layers with each fault, such as "cross-attention 2 of 2 without a mask"."""
        faults = self.faults
        kinds = [kind for kind in _PHRASES if kind in faults and kind not in skip]
        return "; ".join(f"{self.name} {faults.count(kind)} of {len(faults)} {_PHRASES[kind]}" for kind in kinds)


def per_row(attention: Attention, values: Tensor, batch: int) -> Iterator[Tensor]:
    """Yield values (lead, T, S) as (B, H, T, S), in each order in which `lead` may hold rows and heads."""
    *lead, queries, keys = values.shape
    for axis, size in enumerate(lead):
        if size == batch:
            yield values.movedim(axis, 0).reshape(batch, -1, queries, keys)
            return
    if len(lead) == 1 and lead[0] % batch == 0:
        yield values.unflatten(0, (batch, -1))
        yield values.unflatten(0, (-1, batch)).transpose(0, 1)


def _hidden_scores(attention: Attention) -> Tensor:
    """Return which scores are hidden from the softmax: bool (lead, T, S)."""
    logits, used, weights = attention.logits, attention.used, attention.weights
    if logits is None:
        return torch.zeros_like(attention.raw, dtype=torch.bool)
    moved = logits - attention.raw * _score_factor(attention)
    hidden = (logits == -math.inf) | ((logits <= HIDES) & (moved < -_MOVED))
    if attention.filled is not None:
        hidden |= attention.filled
    if used is not None and weights is not None:  # weights that were masked late, and divided by their sum again
        sums = used.sum(-1, keepdim=True)
        hidden |= (used == 0) & (weights > 0) & ((sums - 1).abs() < _SAME_SCORE_SHARE)
    return hidden


def covered_scores(attention: Attention) -> Tensor:
    """Return which scores are hidden, or were to be hidden by a mask: bool (lead, T, S)."""
    hidden = _hidden_scores(attention)
    return hidden if attention.intended is None else hidden | attention.intended


def _mask_fault(attention: Attention, hide: Tensor, show: Tensor) -> MaskFault | None:
    """Return how a mask is wrong, None where it hides what it has to, or where rows cannot be told apart.

    `hide` are the scores that have to be hidden, `show` those that need not be, bool (B, T, S).
    """
    batch = len(hide)
    hidden = list(per_row(attention, _hidden_scores(attention), batch))
    if not hidden and bool((hide == hide[:1]).all()):  # no batch, as in a loop over rows
        hidden = [_hidden_scores(attention).reshape(1, -1, *hide.shape[1:]).expand(batch, -1, -1, -1)]
        hide, show = hide[:1].expand(batch, -1, -1), show[:1].expand(batch, -1, -1)
    if not hidden or any(bool(row_scores.permute(0, 2, 3, 1)[hide].all()) for row_scores in hidden):
        return None
    faults = [_fault_of(attention, order, row_scores, hide, show) for order, row_scores in enumerate(hidden)]
    return max(faults, key=list(_PHRASES).index)


def _fault_of(attention: Attention, order: int, hidden: Tensor, hide: Tensor, show: Tensor) -> MaskFault:
    """Return the fault of a mask that leaves scores visible: hidden (B, H, T, S), hide and show (B, T, S)."""
    batch = len(hide)
    hide, show = (mask[:, None].expand_as(hidden) for mask in (hide, show))
    visible = hide & ~hidden

    def values(records: Tensor | None) -> Tensor | None:
        if records is None:
            return None
        rows = list(per_row(attention, records, batch))
        return rows[order] if rows else records.expand(1, 1, *records.shape[-2:]).expand_as(hidden)

    raw, logits, used, weights = map(values, (attention.raw, attention.logits, attention.used, attention.weights))
    assert raw is not None
    if used is not None and weights is not None and bool((used[visible] == 0).all() & (weights[visible] > 0).all()):
        return "late"
    if any(fill > HIDES for fill in attention.fills):
        return "fill"
    if hidden.any():
        return _fault_of_a_hiding_mask(hidden, visible, hide, show)
    if logits is None or not bool(logits.isfinite().all()):
        return "absent"
    scores = raw * _score_factor(attention)
    moved = logits - scores
    moved = moved - (moved * show).sum(-1, keepdim=True) / show.sum(-1, keepdim=True).clamp_min(1)
    same = float(scores.abs().max()) * max(_SAME_SCORE_SHARE, 4 * torch.finfo(attention.query.dtype).eps) + 1e-9
    inside = moved[visible]
    if float(moved[show].abs().max()) > same:
        return "absent"
    if float((inside + scores[visible]).abs().max()) <= same < float(scores[visible].abs().max()):
        return "multiplied"
    if float(inside.max() - inside.min()) <= same and abs(float(inside.mean())) > 4 * same:
        return "added"
    return "absent"


def _score_factor(attention: Attention) -> float:
    factor = attention.factor / attention.input_factor if attention.input_factor else 1.0
    return factor if math.isfinite(factor) else 1.0


def _fault_of_a_hiding_mask(hidden: Tensor, visible: Tensor, hide: Tensor, show: Tensor) -> MaskFault:
    """Return the fault of a mask that hides some scores, but not all that it has to; all bool (B, H, T, S)."""
    if bool((hidden | ~hide).transpose(0, 1).flatten(1).all(1).any()):
        return "heads"
    queries, keys = hidden.shape[-2:]
    other_keys = show & ~torch.eye(queries, keys, dtype=torch.bool, device=hidden.device)
    rows = hidden.all(-1)
    if bool(rows.any()) and not bool((hidden & ~rows[..., None]).any()):
        return "queries"
    if not bool((hide & hidden & ~rows[..., None]).any()) and bool(hidden[other_keys].all()):
        return "inverted"
    first = hide & ~torch.nn.functional.pad(hide, (1, -1))  # the first of a run of scores to be hidden
    if not bool((visible & ~first).any()):
        return "wide"
    return "partial"
