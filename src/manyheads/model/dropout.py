"""Dropout (Srivastava et al. 2014) that needs few random numbers on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Dropout(nn.Module):
    """Zero elements at random in training, and scale the others so that the mean stays the same.

    On a CPU each element is decided by one random byte, drawn eight at a time, which takes a third of the time of
    torch's dropout (`benchmarks/layers.py`). The probability is therefore rounded to a multiple of 1/256, and the
    scale fits the rounded probability. On other devices and in compiled code, torch's dropout is used. In bf16 the
    scale is rounded to 8 significant bits, as in torch's dropout on a CPU, which changes the mean by up to 0.4 %.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability
        self.threshold = min(255, round(probability * 256))

    def forward(self, x: Tensor) -> Tensor:
        """Apply dropout in training mode; the shape stays."""
        if not self.training or self.threshold == 0:
            return x
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return nn.functional.dropout(x, self.probability, training=True)
        return x * self.mask(x)

    def mask(self, x: Tensor) -> Tensor:
        """Draw factors 0 or 1 / (1 - probability) in the shape and type of x, from torch's default generator."""
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        keep = words.view(torch.uint8)[: x.numel()].view(x.shape) >= self.threshold
        return keep.to(x.dtype).mul_(256 / (256 - self.threshold))

    def extra_repr(self) -> str:
        """Return the probability, which `print(model)` shows."""
        return f"{self.probability}"


class SharedDropout(Dropout):
    """Dropout with one decision for all elements along some axes: for a whole word vector, or a whole sentence."""

    def __init__(self, probability: float, axes: tuple[int, ...]) -> None:
        super().__init__(probability)
        self.axes = axes

    def forward(self, x: Tensor) -> Tensor:
        """Apply dropout in training mode; the shape stays."""
        if not self.training or self.threshold == 0:
            return x
        shape = list(x.shape)
        for axis in self.axes:
            shape[axis] = 1
        return x * super().forward(x.new_ones(shape))
