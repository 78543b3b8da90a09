"""Positions: sinusoidal and learned (section 3.5, the latter in its last paragraph), rotary (Su et al. 2021).

Shapes: B batch (or 1 for the same positions in all rows), S length, D model width, H heads, E head width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from manyheads.errors import UsageError

_FIRST_ROWS = 256  # rows of the sinusoidal table at the start; the table grows with the longest text


def sinusoids(length: int, width: int) -> Tensor:
    """Return PE(p, 2i) = sin(p / 10000^(2i/D)) and PE(p, 2i+1) = cos(p / 10000^(2i/D)): -> (length, D) float32."""
    table = torch.empty(length, width)
    if not table.is_meta:
        angles = torch.arange(length, dtype=torch.float64)[:, None] * _frequencies(width, torch.float64)
        table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
    return table


def _frequencies(width: int, dtype: torch.dtype) -> Tensor:
    """Return the frequencies 1 / 10000^(2i/D) of the sinusoids: -> (width / 2,).

    On the meta device nothing is computed, because torch would import its compiler for that.
    """
    result = torch.empty(width // 2, dtype=dtype)
    if not result.is_meta:
        torch.exp(torch.arange(0, width, 2, dtype=dtype) * (-math.log(10_000.0) / width), out=result)
    return result


class SinusoidalPositions(nn.Module):
    """The sinusoidal position embeddings of section 3.5, for any length."""

    table: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table", sinusoids(_FIRST_ROWS, width), persistent=False)

    def forward(self, positions: Tensor, length: int) -> Tensor:
        """Return the embeddings of positions that are all below `length`: (B, S) -> (B, S, D)."""
        if length > self.table.size(0):
            self.table = sinusoids(2 * length, self.width).to(self.table)
        return self.table[positions]


class LearnedPositions(nn.Module):
    """A trained embedding for each position below `model.max_positions`."""

    def __init__(self, max_positions: int, width: int, scale: float) -> None:
        super().__init__()
        self.table = nn.Embedding(max_positions, width)
        nn.init.normal_(self.table.weight, std=scale)

    def forward(self, positions: Tensor, length: int) -> Tensor:
        """Return the embeddings of positions that are all below `length`: (B, S) -> (B, S, D).

        Raises:
            UsageError: the input is longer than the table.
        """
        if length > self.table.num_embeddings:
            raise UsageError(
                f"an input of {length} tokens is longer than model.max_positions = {self.table.num_embeddings}, "
                f"the limit of this model's learned positions. Split the text into sentences, or train with more."
            )
        return self.table(positions)


class RotaryPositions(nn.Module):
    """The angles by which rotary positions rotate queries and keys (Su et al. 2021, section 3.2.2)."""

    frequencies: Tensor

    def __init__(self, head_width: int) -> None:
        super().__init__()
        self.register_buffer("frequencies", _frequencies(head_width, torch.float32), persistent=False)

    def forward(self, positions: Tensor) -> Tensor:
        """Return the cosine and sine of each angle: (B or 1, S) -> (B or 1, 1, S, E / 2, 2) float32."""
        angles = positions[:, None, :, None].float() * self.frequencies.float()
        return torch.view_as_real(torch.polar(torch.ones_like(angles), angles))


def apply_rotary(x: Tensor, cos_sin: Tensor) -> Tensor:
    """Rotate each pair (2i, 2i+1) of queries or keys by the angle of its position: (B, H, S, E) -> (B, H, S, E).

    Args:
        x: queries or keys.
        cos_sin: cosines and sines of `RotaryPositions` (B or 1, 1, S, E / 2, 2).
    """
    multiply = _multiply_pairs if torch.compiler.is_compiling() else _multiply_complex
    return multiply(x.float().unflatten(-1, (-1, 2)), cos_sin).flatten(-2).to(x.dtype)


def _multiply_complex(a: Tensor, b: Tensor) -> Tensor:
    """Multiply complex numbers that are stored as pairs; shapes broadcast: twice (..., 2) -> (..., 2)."""
    return torch.view_as_real(torch.view_as_complex(a) * torch.view_as_complex(b))


def _multiply_pairs(a: Tensor, b: Tensor) -> Tensor:
    """Compute `_multiply_complex` in real numbers, as torch.compile generates no code for complex numbers."""
    (real, imaginary), (cosine, sine) = a.unbind(-1), b.unbind(-1)
    return torch.stack([real * cosine - imaginary * sine, real * sine + imaginary * cosine], -1)
