"""Decoders with rotary positions or linear biases, written in several ways, sound or with a defect."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from specimens.planted import PAD, VOCABULARY

D, H = 32, 2
E = D // H


def _angles(length: int, base: float = 10_000.0) -> Tensor:
    return torch.arange(length)[:, None] / base ** (torch.arange(0, E, 2) / E)


def _halves(x: Tensor, angles: Tensor) -> Tensor:
    """Turn x (B, H, T, E) as Llama does: feature i with feature i + E / 2."""
    cos, sin = (torch.cat([part, part], -1) for part in (angles.cos(), angles.sin()))
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def _pairs(x: Tensor, angles: Tensor) -> Tensor:
    """Turn x (B, H, T, E) as GPT-J does: feature 2 i with feature 2 i + 1."""
    even, odd = x[..., ::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


def _complex(x: Tensor, angles: Tensor) -> Tensor:
    numbers = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(numbers * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def _mixed(x: Tensor, angles: Tensor) -> Tensor:
    """Turn halves by angles that are in the order of pairs."""
    cos, sin = (part.repeat_interleave(2, -1) for part in (angles.cos(), angles.sin()))
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


ROTATIONS = {"halves": _halves, "pairs": _pairs, "complex": _complex}
ROTARY_DEFECTS = ("base", "pairing", "mixed", "queries alone", "keys alone", "values", "step")


class Rotary(nn.Module):
    """Two layers of attention with rotary positions.

    Args:
        rotation: a key of ROTATIONS.
        defect: one of ROTARY_DEFECTS, or empty.
        norm: whether queries and keys are normalised.
    """

    def __init__(self, rotation: str, defect: str = "", *, norm: bool = False) -> None:
        super().__init__()
        self.turn, self.defect, self.norm = ROTATIONS[rotation], defect, norm
        self.tokens = nn.Embedding(VOCABULARY, D, padding_idx=PAD)
        self.project = nn.ModuleList(nn.Linear(D, 3 * D) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(2))
        self.out = nn.Linear(D, VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids)
        for project, norm in zip(self.project, self.norms, strict=True):
            q, k, v = (part.unflatten(-1, (H, E)).transpose(1, 2) for part in project(norm(x)).chunk(3, -1))
            if self.norm:
                q, k = functional.rms_norm(q, (E,)), functional.rms_norm(k, (E,))
            q, k, v = self.placed(q, k, v)
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + mixed.transpose(1, 2).flatten(2)
        return self.out(x)

    def placed(self, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        angles, defect = _angles(q.size(2)), self.defect
        other = {"base": _angles(q.size(2), 500.0), "step": angles * 2}.get(defect, angles)
        turn = _mixed if defect == "mixed" else self.turn
        turn_keys = _complex if defect == "pairing" else turn
        return (
            q if defect == "keys alone" else turn(q, angles),
            k if defect == "queries alone" else turn_keys(k, other),
            turn(v, angles) if defect == "values" else v,
        )


class LinearBias(Rotary):
    """ALiBi: `way` is "distance", "keys" (as in BLOOM), "fused", or "reversed" for the wrong sign."""

    def __init__(self, way: str) -> None:
        super().__init__("halves")
        self.way = way

    def forward(self, ids: Tensor) -> Tensor:
        x, time = self.tokens(ids), torch.arange(ids.size(1))
        slopes = 0.5 ** (torch.arange(H) * 4 + 1.0)[:, None, None]
        distance = time[:, None] - time
        bias = slopes * {"keys": time.expand_as(distance), "reversed": distance}.get(self.way, -distance)
        bias = bias.masked_fill(distance < 0, -torch.inf)
        for project, norm in zip(self.project, self.norms, strict=True):
            q, k, v = (part.unflatten(-1, (H, E)).transpose(1, 2) for part in project(norm(x)).chunk(3, -1))
            if self.way == "fused":
                mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
            else:
                mixed = (q @ k.mT * E**-0.5 + bias).softmax(-1) @ v
            x = x + mixed.transpose(1, 2).flatten(2)
        return self.out(x)
