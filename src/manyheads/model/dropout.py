"""Dropout (Srivastava et al. 2014) whose random bits are cheap on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Dropout", "SharedDropout"]


class Dropout(nn.Module):
    """Zero elements at random while training, and scale the rest so that the mean stays.

    On a CPU one random byte decides about one element, so the probability is rounded to a multiple of 1/256,
    and the scale fits the rounded one. Bytes are drawn eight at a time: a third of the time of torch's own
    dropout (`benchmarks/layers.py`). Elsewhere, and in compiled code, torch's own is used. In bf16 the scale is
    rounded to 8 significant bits, as torch's own is on a CPU: the mean may then move by up to 0.4 %.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability
        self.threshold = min(255, round(probability * 256))

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> the same shape."""
        if not self.training or self.threshold == 0:
            return x
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return nn.functional.dropout(x, self.probability, training=True)
        return x * self.mask(x)

    def mask(self, x: Tensor) -> Tensor:
        """Factors 0 or 1 / (1 - probability) in the shape and type of x, from torch's default generator."""
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        kept = words.view(torch.uint8)[: x.numel()].view(x.shape) >= self.threshold
        return kept.to(x.dtype).mul_(256 / (256 - self.threshold))

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"{self.probability}"


class SharedDropout(Dropout):
    """Dropout that decides once for all that lies along some axes: a word as a whole, a layer for a sentence."""

    def __init__(self, probability: float, axes: tuple[int, ...]) -> None:
        super().__init__(probability)
        self.axes = axes

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> the same shape."""
        if not self.training or self.threshold == 0:
            return x
        shape = list(x.shape)
        for axis in self.axes:
            shape[axis] = 1
        return x * super().forward(x.new_ones(shape))
