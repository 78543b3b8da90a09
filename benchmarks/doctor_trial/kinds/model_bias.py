"""Decoders without a table of positions: linear biases in einsum style, scaled by log n, or in local blocks."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, einsum, nn
from torch.nn import functional

PAD, V, D = 0, 41, 32


def slopes(heads: int) -> Tensor:
    """Return the slopes of the paper on ALiBi, for any number of heads."""

    def power_of_two(n: int) -> list[float]:
        first = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [first ** (i + 1) for i in range(n)]

    if math.log2(heads).is_integer():
        return torch.tensor(power_of_two(heads))
    below = 2 ** math.floor(math.log2(heads))
    return torch.tensor(power_of_two(below) + power_of_two(2 * below)[::2][: heads - below])


class Alibi(nn.Module):
    def __init__(self, heads: int, dim_head: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.norm = nn.LayerNorm(D)
        self.to_q = nn.Linear(D, heads * dim_head, bias=False)
        self.to_kv = nn.Linear(D, 2 * heads * dim_head, bias=False)
        self.to_out = nn.Linear(heads * dim_head, D)
        self.register_buffer("slopes", slopes(heads), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x)
        q, (k, v) = self.to_q(x), self.to_kv(x).chunk(2, dim=-1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)) for part in (q, k, v))
        sim = einsum("b i h d, b j h d -> b h i j", q * self.scale, k)
        i = torch.arange(x.size(1), device=x.device)
        bias = i[None, :] - i[:, None]
        sim = sim + self.slopes.to(sim)[:, None, None] * bias
        sim = sim.masked_fill(i[None, :] > i[:, None], -torch.finfo(sim.dtype).max)
        out = einsum("b h i j, b j h d -> b i h d", sim.softmax(dim=-1), v)
        return self.to_out(out.flatten(2))


class LogScaled(nn.Module):
    """Rotary-free attention whose scores grow with the logarithm of the number of keys seen."""

    def __init__(self, heads: int, dim_head: int) -> None:
        super().__init__()
        self.heads, self.dim = heads, dim_head
        self.norm = nn.RMSNorm(D)
        self.qkv = nn.Linear(D, 3 * heads * dim_head, bias=False)
        self.out = nn.Linear(heads * dim_head, D, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, self.dim)).permute(2, 0, 3, 1, 4)
        length = x.size(1)
        keys = torch.arange(1, length + 1, device=x.device)
        q = q * (keys.float().log() / math.log(64)).clamp(min=1).to(q)[:, None]
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Local(nn.Module):
    """Each block of eight tokens sees itself, causally, and the whole block before it."""

    def __init__(self, heads: int, dim_head: int, block: int = 8) -> None:
        super().__init__()
        self.heads, self.dim, self.block = heads, dim_head, block
        self.norm = nn.LayerNorm(D)
        self.qkv = nn.Linear(D, 3 * heads * dim_head, bias=False)
        self.out = nn.Linear(heads * dim_head, D)

    def forward(self, x: Tensor) -> Tensor:
        length, w = x.size(1), self.block
        missing = -length % w
        x = functional.pad(self.norm(x), (0, 0, 0, missing))
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, self.dim)).permute(2, 0, 3, 1, 4)
        q, k, v = (part.unflatten(2, (-1, w)) for part in (q, k, v))
        k, v = (torch.cat([functional.pad(p, (0, 0, 0, 0, 1, 0))[:, :, :-1], p], 3) for p in (k, v))
        seen = torch.ones(w, 2 * w, dtype=torch.bool, device=x.device).tril(w)
        seen = seen.expand(q.size(2), -1, -1).clone()
        seen[0, :, :w] = False
        scores = (q @ k.mT * self.dim**-0.5).masked_fill(~seen, -torch.inf)
        mixed = (scores.softmax(-1) @ v).flatten(2, 3)
        mixed = mixed[:, :, :length]
        return self.out(mixed.transpose(1, 2).flatten(2))


class Decoder(nn.Module):
    def __init__(self, kind: type[nn.Module], heads: int = 4, depth: int = 2, positions: int = 0) -> None:
        super().__init__()
        self.token_emb = nn.Embedding(V, D)
        self.pos_emb = nn.Embedding(positions, D) if positions else None
        self.attends = nn.ModuleList(kind(heads, 8) for _ in range(depth))
        self.feeds = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(D), nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))
            for _ in range(depth)
        )
        self.to_logits = nn.Sequential(nn.LayerNorm(D), nn.Linear(D, V))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.token_emb(tokens)
        if self.pos_emb is not None:
            x = x + self.pos_emb.weight[: tokens.size(1)]
        for attend, feed in zip(self.attends, self.feeds, strict=True):
            x = attend(x) + x
            x = feed(x) + x
        return self.to_logits(x)


def decoder(kind: type[nn.Module], **options: Any) -> dict[str, Any]:
    """Return the arguments of a language model."""
    longest = options.get("positions") or 1024
    return {"model": Decoder(kind, **options), "vocab_size": V, "pad": PAD, "kind": "decoder", "longest": longest}
