"""Name what is wrong where a step with a cache differs from a call without: positions, masks, keys, values.

Shapes: T tokens so far, n new ones among them, S keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from transformer_doctor.catalogue import in_case
from transformer_doctor.report import Finding
from transformer_doctor.tolerances import relative_change
from transformer_doctor.trace import Attention

_NO_WEIGHT = 1e-4  # weights of attention up to which a key counts as hidden, and two weights as the same


@dataclass(frozen=True)
class Comparison:
    """Attentions of a step with a cache, and of a call without: the first one that differs shows the fault.

    Attributes:
        step, whole: attentions in the order of their computation.
        new, tokens: n and T.
        tolerance: share of their spread up to which two tensors agree.
        repeat: function that returns the attentions of a call whose rows are the last token of each, T + 1 times.
        padded: whether rows are padded: what is computed at padding may differ.
    """

    step: Sequence[Attention]
    whole: Sequence[Attention]
    new: int
    tokens: int
    tolerance: float
    repeat: Callable[[], Sequence[Attention]]
    padded: bool = False

    def explain(self, finding: Finding) -> Finding:
        """Return a finding with the case and the line that the attentions show, if they show it."""
        parts = [attention for attention in self.step if attention.queries == self.new]
        wholes = [attention for attention in self.whole if attention.queries == self.tokens][-len(parts) :]
        for index, (part, full) in enumerate(zip(parts, wholes, strict=False)):
            name, words = self._case(part, full, first=index == 0) if len(parts) == len(wholes) else ("", "")
            if words:
                finding = (in_case(finding, f"cache-{name}") if name else finding).at(part.place)
                seen = f"attention {index + 1} of {len(parts)} is the first to differ: {words}"
                return replace(finding, evidence=f"{finding.evidence}; {seen}")
        return finding

    def _case(self, part: Attention, full: Attention, *, first: bool) -> tuple[str, str]:
        """Return the case of an attention, empty where it is none, and what differs, empty where it agrees."""
        query = _last(full.query, part.query)
        if query is None:
            return "", ""
        if self._differ(query, part.query):
            position = self._position(part) if first else None
            padding = ", padding counted" if self.padded else ""
            place = f"token {self.tokens} has the place of token {position}{padding}"
            return ("", "other queries") if position is None else ("position", place)
        if full.keys != self.tokens:
            if self._differ(full.key, part.key) or self._differ(full.value, part.value):
                return "cross", "other keys or values than those of the source"
            return self._weights_case(part, full)
        lost, more = _weights(full)[..., -self.new :, : max(self.tokens - part.keys, 0)], _weights(part)
        if bool((lost > _NO_WEIGHT).any() or (more[..., self.tokens :] > _NO_WEIGHT).any()):
            return "", f"it sees {part.keys} keys of {self.tokens} tokens"
        keys, values = (
            not (self.padded and not first) and self._differ(*_shared(ours, theirs, self.tokens))
            for ours, theirs in ((part.key, full.key), (part.value, full.value))
        )
        if keys or values:
            return ("", "other values") if values else ("keys", "other keys, with the same values")
        return self._weights_case(part, full)

    def _weights_case(self, part: Attention, full: Attention) -> tuple[str, str]:
        seen = min(part.keys, full.keys)
        ours, theirs = _weights(part)[..., :seen], _weights(full)[..., -self.new :, -seen:]
        if ours.shape != theirs.shape or not bool(((ours - theirs).abs() > _NO_WEIGHT).any()):
            return "", ""
        hides, shows = ours <= _NO_WEIGHT, theirs > _NO_WEIGHT
        counts = int((hides & shows).sum()), int((~hides & ~shows).sum())
        return "mask", f"its mask hides {counts[0]} weights too many, and {counts[1]} too few"

    def _position(self, part: Attention) -> int | None:
        """Return the position, counted from 1, at which the last token has the query of the step, or None."""
        length = self.tokens + 1
        try:
            query = next(attention for attention in self.repeat() if attention.queries == length).query
        except Exception:  # any exception of the user's model, as beyond its longest text
            return None
        axis = _axis(query, length)
        if axis is None or query.dim() != part.query.dim():
            return None
        ours = part.query.narrow(axis, part.query.size(axis) - 1, 1)
        return next((p + 1 for p in range(length) if not self._differ(query.narrow(axis, p, 1), ours)), None)

    def _differ(self, ours: Tensor | None, theirs: Tensor | None) -> bool:
        if ours is None or theirs is None:
            return ours is not theirs
        if ours.shape != theirs.shape:
            return True
        return not relative_change(ours.float(), theirs.float()) <= self.tolerance


def _weights(attention: Attention) -> Tensor:
    """Return the weights of an attention (lead, T, S), scores where they are unknown."""
    return next(values for values in (attention.used, attention.weights, attention.raw) if values is not None)


def _axis(tensor: Tensor, size: int) -> int | None:
    """Return the axis of the tokens, from the end; None if no axis has their number."""
    return next((axis for axis in (-2, -1, -3) if tensor.dim() >= -axis and tensor.size(axis) == size), None)


def _last(whole: Tensor, part: Tensor) -> Tensor | None:
    """Return the last queries of all, as many as those of a step; None where the shapes do not fit."""
    axes = [axis for axis in range(part.dim()) if whole.dim() == part.dim() and whole.size(axis) != part.size(axis)]
    if len(axes) != 1:
        return whole if whole.shape == part.shape else None
    return whole.narrow(axes[0], whole.size(axes[0]) - part.size(axes[0]), part.size(axes[0]))


def _shared(part: Tensor | None, whole: Tensor | None, tokens: int) -> tuple[Tensor | None, Tensor | None]:
    """Return the keys or values that a step and a call both have: of a window the last, of a static cache all."""
    axis = None if whole is None else _axis(whole, tokens)
    if part is None or whole is None or axis is None or part.dim() != whole.dim():
        return None, None
    size = min(part.size(axis), tokens)
    return part.narrow(axis, 0, size), whole.narrow(axis, tokens - size, size)
