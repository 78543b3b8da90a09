"""Where a token stands: sinusoidal (section 3.5), learned (section 3.5, last paragraph), rotary (Su et al. 2021).

Shapes: B batch (or 1 for all alike), S length, D model width, H heads, E head width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from manyheads.errors import UsageError

__all__ = [
    "LearnedPositions",
    "RotaryPositions",
    "SinusoidalPositions",
    "rotate_pairs",
    "rotate_pairs_in_place",
    "sinusoids",
]

FIRST_ROWS = 256  # rows of the sinusoidal table at the start; it grows when a longer text comes


def sinusoids(length: int, width: int) -> Tensor:
    """PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos of it (section 3.5): -> (length, width) float32."""
    table = torch.empty(length, width)
    if not table.is_meta:
        angles = torch.arange(length, dtype=torch.float64)[:, None] * rates(width, torch.float64)
        table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
    return table


def rates(width: int, dtype: torch.dtype) -> Tensor:
    """1 / 10000^(2i/D): -> (width / 2,).

    On the meta device, which has no memory, nothing is computed: torch would import its compiler for it.
    """
    found = torch.empty(width // 2, dtype=dtype)
    if not found.is_meta:
        torch.exp(torch.arange(0, width, 2, dtype=dtype) * (-math.log(10_000.0) / width), out=found)
    return found


class SinusoidalPositions(nn.Module):
    """The fixed signal of section 3.5, for any length."""

    table: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table", sinusoids(FIRST_ROWS, width), persistent=False)

    def forward(self, positions: Tensor, length: int) -> Tensor:
        """Signal at these positions, all below `length`: (B, S) -> (B, S, D)."""
        if length > self.table.size(0):
            self.table = sinusoids(2 * length, self.width).to(self.table)
        return self.table[positions]


class LearnedPositions(nn.Module):
    """One trained vector for each position up to a limit."""

    def __init__(self, max_positions: int, width: int, scale: float) -> None:
        super().__init__()
        self.table = nn.Embedding(max_positions, width)
        nn.init.normal_(self.table.weight, std=scale)

    def forward(self, positions: Tensor, length: int) -> Tensor:
        """Signal at these positions, all below `length`: (B, S) -> (B, S, D).

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
    """Rotate queries and keys by an angle that grows with the position (Su et al. 2021, section 3.2.2)."""

    rate: Tensor

    def __init__(self, head_width: int) -> None:
        super().__init__()
        self.register_buffer("rate", rates(head_width, torch.float32), persistent=False)

    def forward(self, positions: Tensor) -> Tensor:
        """The rotation of each pair, its cosine and sine: (B or 1, S) -> (B or 1, 1, S, E / 2, 2) float32."""
        angle = positions[:, None, :, None].float() * self.rate.float()
        return torch.view_as_real(torch.polar(torch.ones_like(angle), angle))


def rotate_pairs(x: Tensor, turns: Tensor) -> Tensor:
    """Turn each pair (2i, 2i+1) of a query or key, read as a complex number: (B, H, S, E) -> (B, H, S, E).

    Args:
        x: queries or keys.
        turns: cosine and sine for each pair (B or 1, 1, S, E / 2, 2).
    """
    multiply = real_product if torch.compiler.is_compiling() else complex_product
    return multiply(x.float().unflatten(-1, (-1, 2)), turns).flatten(-2).to(x.dtype)


def rotate_pairs_in_place(x: Tensor, turns: Tensor) -> None:
    """As `rotate_pairs`, but x itself is changed. Args: x: (..., E); turns: (..., E / 2, 2), shapes broadcast."""
    if x.dtype == torch.float32:
        torch.view_as_complex(x.unflatten(-1, (-1, 2))).mul_(torch.view_as_complex(turns))
    else:
        x.copy_(rotate_pairs(x, turns))


def complex_product(a: Tensor, b: Tensor) -> Tensor:
    """The products of complex numbers that are held as pairs, shapes broadcast: twice (..., 2) -> (..., 2)."""
    return torch.view_as_real(torch.view_as_complex(a) * torch.view_as_complex(b))


def real_product(a: Tensor, b: Tensor) -> Tensor:
    """The same in real numbers, the only ones that torch.compile makes code for."""
    (real, imaginary), (cosine, sine) = a.unbind(-1), b.unbind(-1)
    return torch.stack([real * cosine - imaginary * sine, real * sine + imaginary * cosine], -1)
