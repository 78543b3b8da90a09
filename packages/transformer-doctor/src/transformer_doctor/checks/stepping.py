"""Compare a decoder that keeps its state between tokens with teacher forcing (invariant E).

Shapes: B batch, T target length, L length of a table of positions, V vocabulary, D model width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from transformer_doctor.catalogue import model_finding
from transformer_doctor.model_adapter import ModelAdapter, Samples
from transformer_doctor.report import Report, make_report
from transformer_doctor.tolerances import percentage, relative_change

STEPPING = "step-by-step decoding gives the scores of teacher forcing"
_ADDITIONS = {"add", "__add__", "__radd__", "add_", "__iadd__"}
# Wrong positions, counted from 0, that a decoder with a KV cache may use at steps 1, 2, 3, ...
_WRONG_POSITIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "one too high": lambda positions: positions + 1,
    "one too high from the second step on": lambda positions: positions + (positions > 0).long(),
    "one too low": lambda positions: (positions - 1).clamp_min(0),
    "that of the first token at every step": torch.zeros_like,
}


class Stepping(Protocol):
    """Decoder that keeps its state between tokens."""

    def step(self, tokens: Tensor) -> Tensor:
        """Feed the next token of each row (B,); return scores or log-probabilities of the following one (B, V)."""
        ...


@torch.no_grad()
def check_stepper(adapter: ModelAdapter, samples: Samples, start: Callable[[Tensor], Stepping]) -> Report:
    """Feed a target token by token and all at once, and compare the probabilities."""
    ids = samples.ids()
    at_once = adapter(ids).float().log_softmax(-1)
    stepper = start(ids[adapter.sides[0]].to(adapter.device))
    target = ids["target"].to(adapter.device)
    steps = [stepper.step(target[:, position]).float().log_softmax(-1) for position in range(target.size(1))]
    changes = [relative_change(at_once[:, position], step) for position, step in enumerate(steps)]
    wrong = [position for position, change in enumerate(changes) if not change <= adapter.tolerances.other_shape]
    if not wrong:
        return make_report([], [STEPPING])
    first = wrong[0]
    evidence = (
        f"at step {first + 1} the log-probabilities differ by {percentage(changes[first])} of their spread"
        + (f", and at {len(wrong)} of {len(steps)} steps" if len(wrong) > 1 else "")
        + _positions_clause(adapter, ids, torch.stack(steps, 1))
    )
    return make_report([model_finding("cache-differs", evidence)], [STEPPING])


def _positions_clause(adapter: ModelAdapter, ids: Mapping[str, Tensor], steps: Tensor) -> str:
    """Return a clause for the evidence if teacher forcing with wrong positions gives the scores (B, T, V)."""
    length = ids["target"].size(1)
    longer = {**ids, "target": torch.cat([ids["target"], ids["target"][:, -1:]], 1)}
    plain = adapter(longer)[:, :length].float().log_softmax(-1)
    for words, wrong in _WRONG_POSITIONS.items():
        positions = wrong(torch.arange(length + 1)).clamp_max(length)
        with _WrongPositions(positions, len(steps)):
            scores = adapter(longer)[:, :length].float().log_softmax(-1)
        moved = relative_change(plain, scores) > adapter.tolerances.other_shape
        if moved and relative_change(scores, steps) <= adapter.tolerances.other_shape:
            return f"; they are those of teacher forcing with wrong positions: {words}"
    return ""


class _WrongPositions(TorchFunctionMode):
    """Mode that gives each position the encoding of another one.

    A table of position encodings is a tensor that is added to a tensor (B, L, D) and is the same for all rows of
    the batch, or a tensor that is looked up by the numbers 0, 1, 2, ...

    Args:
        positions: for each of L positions, the position whose row it gets.
        batch: B.
    """

    def __init__(self, positions: Tensor, batch: int) -> None:
        super().__init__()
        self.positions, self.batch = positions, batch
        self.done: list[Tensor] = []  # encodings that were looked up at other positions

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Call the function, with other positions where a table of them is looked up or added."""
        if func.__name__ == "embedding" and len(args) > 1:
            others = [self.looked_up(value) if isinstance(value, Tensor) else value for value in args]
            result = func(*others, **(kwargs or {}))
            if any(other is not value for other, value in zip(others, args, strict=True)):
                self.done.append(result)
            return result
        if func.__name__ in _ADDITIONS and len(args) == 2 and all(isinstance(value, Tensor) for value in args):
            args = [self.added(table, other) for table, other in (args, args[::-1])]
        return func(*args, **(kwargs or {}))

    def looked_up(self, ids: Tensor) -> Tensor:
        length = len(self.positions)
        if ids.is_floating_point() or ids.dim() == 0 or ids.size(-1) != length or ids.numel() == 1:
            return ids
        counted = ids - ids[..., :1] == torch.arange(length, device=ids.device)
        return ids[..., self.positions.to(ids.device)] if counted.all() else ids

    def added(self, table: Tensor, other: Tensor) -> Tensor:
        """Return a tensor with other rows if it is a table (L, D) or (1, L, D) that is added to a batch."""
        length = len(self.positions)
        if any(table is result for result in self.done):
            return table
        matches = other.shape[:2] == (self.batch, length) and table.shape[-2:] == other.shape[-2:]
        if not matches or table.dim() not in (2, 3) or table.numel() != length * other.size(-1):
            return table
        return table.index_select(-2, self.positions.to(table.device))
