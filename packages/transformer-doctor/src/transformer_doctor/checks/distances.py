"""Judge rotary positions and linear biases by the scores of one token that fills the whole text.

All queries, keys and values of such a text are the same but for their positions, in every layer, unless positions
are added to the tokens. Texts of two tokens tell positions that multiply (rotary) from others.

Shapes: B batch, T queries, S keys, L length, N features.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from transformer_doctor.catalogue import model_finding
from transformer_doctor.checks.calls import trace_pass
from transformer_doctor.checks.masks import covered_scores
from transformer_doctor.checks.positions import fastest_sinusoid
from transformer_doctor.model_adapter import ModelAdapter, Samples
from transformer_doctor.report import Report, make_report
from transformer_doctor.tolerances import relative_change
from transformer_doctor.trace import Attention

_SIDES = {"source": 31, "target": 29}  # lengths: primes, which are the sizes of no other axis
_EDGE = 8  # first positions, which convolutions before an attention change
_SAME, _TURNED = 1e-3, 0.1  # shares of the largest feature up to which, and from which on, positions are different
_OTHER_DISTANCE = 0.05  # share of the spread of the scores by which those of one distance may differ
_FASTEST = 1.5  # radians a position; rotary angles begin with 1, and with less in stretched texts
_ROTARY = re.compile("rotary|rope|inv_freq|freqs_cis")  # in names of modules and buffers
_STRAIGHT = 1e-2  # share of its slope by which a straight line may bend

DISTANCES = "rotary positions and linear biases follow the distance of query and key"


def distance_report(adapter: ModelAdapter, samples: Samples) -> Report:
    """Return findings about rotary positions and linear biases; the check is listed if the model has any."""
    first_ids, second_ids = (
        {side: torch.full((max(2, samples.smallest_batch), _SIDES[side]), adapter.content(side)[number])
         for side in adapter.sides}
        for number in (0, -1)
    )  # fmt: skip
    with _Angles() as angles:
        (first, scores), (second, _) = trace_pass(adapter, first_ids), trace_pass(adapter, second_ids)
    late = scores[:, _EDGE:]
    placed = late.size(1) > 1 and relative_change(late[:, 1:], late[:, :-1]) > _SAME
    faults = [
        (attention, fault)
        for attention, other in zip(first.attentions, second.attentions, strict=False)
        if attention.queries == attention.keys in _SIDES.values() and attention.raw.shape == other.raw.shape
        for fault in _faults(attention, other, placed=placed)
    ]
    found = [model_finding("wrong-distances", fault).at(attention.place) for attention, fault in faults if fault]
    if angles.zero and all(angles.zero):
        evidence = f"sines and cosines are taken of angles that are 0 at all {_SIDES['target']} positions"
        found.append(model_finding("no-positions", evidence))
    unturned = [
        all(_is_constant(_by_position(part, attention.keys)) for part in (attention.query, attention.key))
        for attention in first.attentions
        if attention.queries == attention.keys in _SIDES.values()
    ]
    module = adapter.module or torch.nn.Module()
    named = any(_ROTARY.search(name) for name, _ in chain(module.named_modules(), module.named_buffers()))
    if named and not faults and unturned and all(unturned) and not placed:
        evidence = "the model has rotary angles, but queries and keys of one token are the same at all positions"
        found.append(model_finding("wrong-distances", evidence))
    asked = bool(faults or angles.zero or found)
    skipped = [(DISTANCES, "rotary positions were not recognised")] if named and not asked else []
    return make_report(found, [DISTANCES] if asked else [], skipped)


class _Angles(TorchFunctionMode):
    """Mode that records, for each sine and cosine by position, whether all angles are 0."""

    def __init__(self) -> None:
        super().__init__()
        self.zero: list[bool] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        if getattr(func, "__name__", "") in ("sin", "cos") and {*args[0].shape} & {*_SIDES.values()}:
            self.zero.append(not bool(args[0].any()))
        return func(*args, **(kwargs or {}))


def _faults(attention: Attention, other: Attention, *, placed: bool) -> Iterator[str]:
    """Yield the fault of rotary positions or of a linear bias, empty where they are right; nothing without them.

    Args:
        attention: attention of a text of one token.
        other: the same attention, of a text of another token.
        placed: whether the scores of the model differ by position.
    """
    length = attention.keys
    layers = (attention.projection, attention.key_projection, attention.value_projection)
    inputs = [_by_position(layer.source, length) for layer in layers if layer is not None]
    parts = [_by_position(part, length) for part in (attention.query, attention.key, attention.value)]
    others = [_by_position(part, length) for part in (other.query, other.key, other.value)]
    if any(part is None for part in (*parts, *others)) or not all(map(_is_constant, inputs)):
        return
    turned = list(map(_turns, parts, others))
    if any(turned[:2]) and inputs and placed and turned[2]:
        yield f"the values of one token at positions {_EDGE + 1} to {length} are turned by their positions"
    elif any(turned[:2]) and _is_constant(parts[2]):
        share = _change_along_diagonals(attention.raw[..., _EDGE:, _EDGE:])
        differ = f"scores of one distance differ by up to {share:.0%} of the spread of the scores"
        yield f"of one token at all {length} positions, {differ}" if share > _OTHER_DISTANCE else ""
        turned_part = parts[turned.index(True)]
        assert turned_part is not None
        fastest = fastest_sinusoid(turned_part, attention.width)
        yield f"the fastest angle is {fastest:.3g} radians a position, not 1" if fastest > _FASTEST else ""
    elif all(map(_is_constant, parts[:2])) and attention.logits is not None:
        line, covered = (x[..., -1, :].flatten(0, -2) for x in (attention.logits, covered_scores(attention)))
        steps = line.diff()  # from key to key of the last query
        straight = (steps - steps[:, :1]).abs().amax(1) <= _STRAIGHT * steps[:, 0].abs()
        slopes = steps[straight & steps[:, 0].ne(0) & ~covered.any(1), 0]
        if slopes.numel():
            lower = f"a bias lowers the scores of keys by {-slopes[0]:.3g} the nearer they are"
            yield lower if bool((slopes < 0).all()) else ""


def _by_position(tensor: Tensor | None, length: int) -> Tensor | None:
    """Return the features of all but the first positions, (L, N); None if not one axis alone has their number."""
    if tensor is not None and tensor.dim() == 2 and len(tensor) > length and len(tensor) % length == 0:
        tensor = tensor.unflatten(0, (-1, length))  # (B * L, D)
    if tensor is None or list(tensor.shape).count(length) != 1:
        return None
    return tensor.detach().double().movedim(list(tensor.shape).index(length), 0).flatten(1)[_EDGE:]


def _is_constant(features: Tensor | None) -> bool:
    """Return whether features (L, N) are known, and the same at all positions."""
    return features is not None and bool((features - features[-1:]).abs().max() <= _SAME * features.abs().max())


def _turns(first: Tensor | None, second: Tensor | None) -> bool:
    """Return whether the difference of two tokens has another direction at other positions: (L, N) each."""
    assert first is not None
    assert second is not None
    difference = first - second
    unit = difference / difference.norm(dim=1, keepdim=True).clamp_min(1e-30)
    return bool(difference.any()) and float((unit - unit[-1:]).norm(dim=1).max()) > _TURNED


def _change_along_diagonals(scores: Tensor) -> float:
    """Return by what share of their spread scores (lead, T, S) of one distance differ."""
    pairs = [(scores[..., by:, by:], scores[..., :-by, :-by]) for by in (1, scores.size(-1) // 2)]
    change = max(float((later - earlier).abs().max()) for later, earlier in pairs)
    return change / max(float(scores.max() - scores.min()), 1e-30)
