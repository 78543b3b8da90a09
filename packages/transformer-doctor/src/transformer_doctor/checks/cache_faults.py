"""Name what is wrong where a step with a cache differs from a call without: position, mask, keys, values.

The attentions of the step are compared with those of the call: the first one that differs shows the fault.

Shapes: B batch, T tokens so far, n new ones among them, S keys, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from transformer_doctor.checks.cases import at_line, in_case
from transformer_doctor.report import Finding
from transformer_doctor.tolerances import relative_change
from transformer_doctor.trace import Attention

_NO_WEIGHT = 1e-4  # weights of attention up to which a key counts as hidden, and two weights as the same


@dataclass(frozen=True)
class Comparison:
    """Attentions of a step with a cache, and of a call without cache up to the same token.

    Attributes:
        step, whole: attentions in the order of their computation.
        new, tokens: n and T.
        tolerance: share of their spread up to which two tensors agree.
        repeat: function that returns the attentions of a call whose rows repeat the last token of each row.
        padded: whether rows are padded, so that keys of padding may differ.
    """

    step: Sequence[Attention]
    whole: Sequence[Attention]
    new: int
    tokens: int
    tolerance: float
    repeat: Callable[[], Sequence[Attention]]
    padded: bool = False

    def explain(self, finding: Finding) -> Finding:
        """Return a finding with the case, the line and the detail that the attentions show, if they show any."""
        steps = [attention for attention in self.step if attention.queries == self.new]
        wholes = [attention for attention in self.whole if attention.queries == self.tokens][-len(steps) :]
        for index, (part, full) in enumerate(zip(steps, wholes, strict=False) if len(steps) == len(wholes) else ()):
            case = self._case(index, part, full)
            if case is None:
                continue
            name, _, detail = case.partition(": ")
            finding = at_line(in_case(finding, name) if name else finding, part)
            seen = f"; attention {index + 1} of {len(steps)} is the first to differ: {detail}"
            return replace(finding, evidence=finding.evidence + seen)
        return finding

    def _case(self, index: int, part: Attention, full: Attention) -> str | None:
        """Return the case and the detail of an attention; None where it agrees."""
        query = _last(full.query, part.query, self.tokens, self.new)
        if query is None:
            return None
        if self._differs(query, part.query):
            position = self._position(index, part) if index == 0 else None
            if position is not None:
                return f"cache-position: token {self.tokens} has the position of token {position + 1}"
            return ": its queries"
        if full.keys != self.tokens:
            same = all(not self._differs(*pair) for pair in ((full.key, part.key), (full.value, part.value)))
            return self._mask_case(part, full) if same else "cache-cross: its keys or values are not those of the source"
        if part.keys > self.tokens and float(_weights(part)[..., self.tokens :].max()) > _NO_WEIGHT:
            return f"cache-content: it sees {part.keys} keys of {self.tokens} tokens"
        lost = self.tokens - part.keys
        if lost > 0 and float(_weights(full)[..., -self.new :, :lost].max()) > _NO_WEIGHT:
            return f"cache-content: it sees {part.keys} keys of {self.tokens} tokens"
        return self._content_case(index, part, full) or self._mask_case(part, full)

    def _content_case(self, index: int, part: Attention, full: Attention) -> str | None:
        """Return the case of keys or values that differ."""
        seen, changed = min(part.keys, self.tokens), list[str]()
        old = max(seen - self.new, 0)
        for name, ours, theirs in (("keys", part.key, full.key), ("values", part.value, full.value)):
            axis = None if theirs is None else _axis_of(theirs, self.tokens)
            if axis is None or ours is None or ours.dim() != theirs.dim() or (self.padded and index > 0):
                return None
            ours, theirs = ours.narrow(axis, 0, seen), theirs.narrow(axis, self.tokens - seen, seen)
            for age, begin, size in (("old", 0, old), ("new", old, seen - old)):
                if size and self._differs(theirs.narrow(axis, begin, size), ours.narrow(axis, begin, size)):
                    changed.append(f"{age} {name}")
        if not changed:
            return None
        case = "content" if "old values" in changed else "keys" if "old keys" in changed else "position"
        return f"cache-{case}: its {' and '.join(changed)}"

    def _mask_case(self, part: Attention, full: Attention) -> str | None:
        """Return the case of weights that differ though queries and keys agree."""
        ours, theirs = _weights(part), _weights(full)[..., -self.new :, :]
        seen = min(ours.size(-1), theirs.size(-1))
        ours, theirs = ours[..., :seen], theirs[..., -seen:]
        if ours.shape != theirs.shape or float((ours - theirs).abs().max()) <= _NO_WEIGHT:
            return None
        hidden = int(((ours <= _NO_WEIGHT) & (theirs > _NO_WEIGHT)).sum())
        shown = int(((ours > _NO_WEIGHT) & (theirs <= _NO_WEIGHT)).sum())
        return f"cache-mask: it hides {hidden} keys that the call shows, and shows {shown} that the call hides"

    def _position(self, index: int, part: Attention) -> int | None:
        """Return the position whose query of the last token is that of the step, None where there is none."""
        length = self.tokens + 1
        try:
            query = [attention for attention in self.repeat() if attention.queries == length][index].query
        except Exception:  # any exception of the user's model, as beyond its longest text
            return None
        axis = _axis_of(query, length)
        if axis is None or query.dim() != part.query.dim():
            return None
        ours = part.query.narrow(axis, part.query.size(axis) - 1, 1)
        return next((p for p in range(length) if not self._differs(query.narrow(axis, p, 1), ours)), None)

    def _differs(self, ours: object, theirs: object) -> bool:
        if not isinstance(ours, Tensor) or not isinstance(theirs, Tensor) or ours.shape != theirs.shape:
            return True
        return not relative_change(ours.detach().float(), theirs.detach().float()) <= self.tolerance


def _weights(attention: Attention) -> Tensor:
    """Return the weights of an attention (..., T, S), scores where they are unknown."""
    known = (attention.used, attention.weights, attention.raw)
    return next(values for values in known if values is not None)


def _axis_of(tensor: Tensor, size: int) -> int | None:
    """Return the axis of the tokens in queries, keys or values, from the end; None if no axis has their number."""
    return next((axis for axis in (-2, -1, -3) if tensor.dim() >= -axis and tensor.size(axis) == size), None)


def _last(whole: Tensor, part: Tensor, tokens: int, new: int) -> Tensor | None:
    """Return the last queries of all, as many as those of a step; None where the shapes do not fit."""
    if whole.dim() != part.dim():
        return None
    axes = [axis for axis in range(whole.dim()) if whole.size(axis) != part.size(axis)]
    if new == tokens:
        return whole if not axes else None
    fits = len(axes) == 1 and (whole.size(axes[0]), part.size(axes[0])) == (tokens, new)
    return whole.narrow(axes[0], tokens - new, new) if fits else None
