"""Uniform wrapper around a user's model: token ids in, scores out.

Shapes: B batch, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from manyheads.errors import UsageError

__all__ = ["Kind", "ModelAdapter", "restore_modes", "restore_weights", "tensor_of"]

Kind = Literal["encoder-decoder", "encoder", "decoder"]


@dataclass(frozen=True)
class ModelAdapter:
    """Model behind one call.

    Attributes:
        kind: which sides the model has.
        call: function of the ids of its sides, each (B, length), that returns (B, length, V).
        module: holds the weights and is put into train() and eval(); None where a function names none.
        source_size, target_size: V of the two sides; 0 where there is none.
        pad: the id of padding, or None.
        bos, eos: the marks, or None.
        stated_limit: longest text in tokens that the model states, or None.
        device: of the weights.
    """

    kind: Kind
    call: Callable[..., Tensor]
    module: nn.Module | None
    source_size: int
    target_size: int
    pad: int | None = None
    bos: int | None = None
    eos: int | None = None
    stated_limit: int | None = None
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def sides(self) -> list[str]:
        """Return the sides of the input, in order."""
        return {"encoder-decoder": ["source", "target"], "encoder": ["source"], "decoder": ["target"]}[self.kind]

    def __call__(self, ids: Mapping[str, Tensor], seed: int = 0) -> Tensor:
        """Return float32 scores of ids: (B, T, V), for an encoder (B, S, V or D), for a classifier (B, 1, C).

        Raises:
            UsageError: the scores have another shape.
        """
        torch.manual_seed(seed)
        scores = self.call(*(ids[side].to(self.device) for side in self.sides))
        last = ids[self.sides[-1]]
        if scores.dim() == 2 and len(scores) == last.numel():  # (B * T, V)
            scores = scores.unflatten(0, last.shape)
        elif scores.dim() == 2 and self.kind == "encoder" and len(scores) == len(last):
            scores = scores[:, None]
        elif scores.dim() != 3 or scores.shape[:2] != last.shape:
            raise UsageError(
                f"the model gave scores of shape {tuple(scores.shape)} for ids {tuple(last.shape)}; "
                f"({last.size(0)}, {last.size(1)}, vocabulary) is expected.{advice(scores, last)}"
            )
        return scores.float()

    def content(self, side: str) -> list[int]:
        """Return the ids of a side that are no marks."""
        size = self.source_size if side == "source" else self.target_size
        return [token for token in range(size) if token not in (self.pad, self.bos, self.eos)]


def advice(scores: Tensor, ids: Tensor) -> str:
    """Return what to do about scores whose shape does not fit ids (B, T)."""
    if scores.dim() != 3:
        return ""
    if scores.shape[:2] == ids.t().shape:
        return " If it wants the time first, say time_first=True."
    if scores.shape[:2] == (len(ids), 1):
        return (
            " Only the last position is scored. Where the model scores all in training, examine a function that "
            "calls it so: lambda target: model(target, targets=target)[0]."
        )
    if scores.shape[::2] == ids.shape:
        return " If the vocabulary is the second axis, examine lambda *ids: model(*ids).transpose(1, 2)."
    return ""


def tensor_of(output: Any) -> Tensor:
    """Return the scores in the output of a model: a tensor, the first of a tuple, or `logits` of a mapping.

    Raises:
        UsageError: there is no tensor.
    """
    if isinstance(output, Tensor):
        return output
    if isinstance(output, Mapping):
        for name in ("logits", "prediction_logits", "last_hidden_state"):
            if name in output:
                return output[name]
    if isinstance(output, (tuple, list)) and output:
        return tensor_of(output[0])
    raise UsageError(
        f"the model returned {type(output).__name__}, in which no scores were found: neither a tensor, nor a "
        "tuple that begins with one, nor logits or last_hidden_state. Examine a function that returns the logits."
    )


@contextmanager
def restore_modes(module: nn.Module | None) -> Iterator[None]:
    """Restore torch's random generators and the training mode of each module afterwards."""
    modes = [] if module is None else [(part, part.training) for part in module.modules()]
    with torch.random.fork_rng():
        try:
            yield
        finally:
            for part, mode in modes:
                part.training = mode


@contextmanager
def restore_weights(module: nn.Module | None) -> Iterator[None]:
    """Restore the weights afterwards and clear the gradients; the copy takes as much memory as the weights."""
    weights = {} if module is None else {name: value.clone() for name, value in module.state_dict().items()}
    try:
        yield
    finally:
        if module is not None:
            module.load_state_dict(weights)
            module.zero_grad(set_to_none=True)
