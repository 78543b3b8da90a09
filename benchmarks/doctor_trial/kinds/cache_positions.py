"""Decoders with a cache for each way to tell positions, and caches that hold less than keys and values."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

PAD, VOCABULARY, WIDTH, HEADS, SIZE = 0, 29, 32, 4, 8


class Block(nn.Module):
    def __init__(self, *, inner: int = 64) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.dense = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, inner), nn.GELU(), nn.Linear(inner, WIDTH))

    def projected(self, x: Tensor) -> tuple[Tensor, ...]:
        x = self.first(x)
        return tuple(
            p(x).view(*x.shape[:2], HEADS, SIZE).transpose(1, 2) for p in (self.query, self.key, self.value)
        )

    def closed(self, x: Tensor, mixed: Tensor) -> Tensor:
        x = x + self.dense(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.second(x))


class Base(nn.Module):
    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.final = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def scores(self, x: Tensor) -> Tensor:
        return self.lm_head(self.final(x))


def softmax_attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    return torch.einsum(
        "bhts,bhse->bhte", (torch.einsum("bhte,bhse->bhts", q, k) / SIZE**0.5 + bias).softmax(-1), v
    )


def look_ahead(new: int, total: int) -> Tensor:
    """Return (new, total) with -inf for the keys after each of the last `new` positions."""
    return torch.full((new, total), -torch.inf).triu(total - new + 1)


class Bloom(Base):
    """ALiBi; forward(input_ids, past_key_values=None) -> (logits, past), one tensor (2, B, H, S, E) a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.slopes = 2.0 ** -torch.arange(1, HEADS + 1)

    def alibi(self, new: int, total: int) -> Tensor:
        keys = torch.arange(total)
        return self.slopes[:, None, None] * (keys - keys[total - new :, None])

    def forward(self, input_ids: Tensor, past_key_values: Any = None) -> tuple[Tensor, Any]:
        x, presents = self.embedding(input_ids), []
        for number, block in enumerate(self.blocks):
            q, k, v = block.projected(x)
            if past_key_values is not None:
                k = torch.cat([past_key_values[number][0], k], 2)
                v = torch.cat([past_key_values[number][1], v], 2)
            presents.append(torch.stack([k, v]))
            new, total = q.size(2), k.size(2)
            x = block.closed(x, softmax_attention(q, k, v, self.alibi(new, total) + look_ahead(new, total)))
        return self.scores(x), tuple(presents)


class RotaryEmbedding(nn.Module):
    """Makes tables of angles, and keeps those it made."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("frequencies", 100.0 ** -(torch.arange(0, SIZE, 2) / SIZE), persistent=False)
        self.made: dict[Any, Tensor] = {}

    def table(self, length: int, offset: int = 0) -> Tensor:
        name = (length, offset)
        if name not in self.made:
            angles = torch.arange(offset, offset + length)[:, None] * self.frequencies
            self.made[name] = torch.cat([angles.cos(), angles.sin()], -1)
        return self.made[name]

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        cos, sin = self.table(x.size(2), offset).chunk(2, -1)
        even, odd = x[..., ::2], x[..., 1::2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


class Rotary(Base):
    """Rotated keys are kept; forward(x, kv_cache=None) -> (logits, kv_cache) with a dictionary for each layer."""

    def __init__(self) -> None:
        super().__init__()
        self.rotary = RotaryEmbedding()

    def forward(self, x: Tensor, kv_cache: list[dict[str, Tensor]] | None = None) -> tuple[Tensor, Any]:
        past = kv_cache[0]["k"].size(2) if kv_cache else 0
        x, updated = self.embedding(x), []
        for number, block in enumerate(self.blocks):
            q, k, v = block.projected(x)
            q, k = self.rotary(q, past), self.rotary(k, past)
            if kv_cache:
                k, v = torch.cat([kv_cache[number]["k"], k], 2), torch.cat([kv_cache[number]["v"], v], 2)
            updated.append({"k": k, "v": v})
            x = block.closed(x, softmax_attention(q, k, v, look_ahead(q.size(2), k.size(2))))
        return self.scores(x), updated


class LateRotary(Base):
    """Keys are kept as they were projected, and all of them are rotated in every call."""

    def __init__(self) -> None:
        super().__init__()
        self.rotary = RotaryEmbedding()

    def forward(self, tokens: Tensor, layer_past: Any = None, use_cache: bool = False) -> Any:
        past = layer_past[0][0].size(2) if layer_past else 0
        x, presents = self.embedding(tokens), []
        for number, block in enumerate(self.blocks):
            q, k, v = block.projected(x)
            if layer_past:
                k, v = torch.cat([layer_past[number][0], k], 2), torch.cat([layer_past[number][1], v], 2)
            presents.append((k, v))
            q, k = self.rotary(q, past), self.rotary(k)
            x = block.closed(x, softmax_attention(q, k, v, look_ahead(q.size(2), k.size(2))))
        return (self.scores(x), tuple(presents)) if use_cache else self.scores(x)


class LeftPadded(Base):
    """Positions count real tokens, so that prompts may be padded on the left."""

    def __init__(self, longest: int = 300) -> None:
        super().__init__()
        self.max_length = longest
        self.places = nn.Embedding(longest, WIDTH)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Any = None,
        use_cache: bool = False,
    ) -> dict[str, Any]:
        rows, new = input_ids.shape
        total = new if past_key_values is None else new + past_key_values[0][0].size(2)
        if attention_mask is None:
            attention_mask = torch.ones(rows, total, dtype=torch.long)
        position_ids = (attention_mask.long().cumsum(-1) - 1).clamp(min=0)[:, -new:]
        if int(position_ids.max()) >= self.max_length:
            raise ValueError(f"no position from {self.max_length} on")
        hidden = torch.zeros(rows, 1, 1, total).masked_fill(attention_mask[:, None, None] == 0, -1e9)
        bias = hidden + look_ahead(new, total).clamp(min=-2e9)
        x, presents = self.embedding(input_ids) + self.places(position_ids), []
        for number, block in enumerate(self.blocks):
            q, k, v = block.projected(x)
            if past_key_values is not None:
                k = torch.cat([past_key_values[number][0], k], 2)
                v = torch.cat([past_key_values[number][1], v], 2)
            presents.append((k, v))
            x = block.closed(x, softmax_attention(q, k, v, bias))
        return {"logits": self.scores(x), "past_key_values": tuple(presents) if use_cache else None}


def quantised(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return whole numbers from -127 to 127 and a scale for each vector."""
    scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-6) / 127
    return (x / scale).round().clamp(-127, 127), scale


class StraightThrough(torch.autograd.Function):
    """Keys and values as they are read from a cache of eight bits; gradients pass unchanged."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        numbers, scale = quantised(x)
        return numbers * scale

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


class Bytes(Base):
    """Trained with keys and values of eight bits, which is what its cache holds, with a scale for each vector."""

    def __init__(self) -> None:
        super().__init__()
        self.rotary = RotaryEmbedding()

    def kept(self, x: Tensor) -> tuple[Tensor, Tensor]:
        numbers, scale = quantised(x.detach())
        return numbers.to(torch.int8), scale

    def forward(self, input_ids: Tensor, past: Any = None) -> tuple[Tensor, Any]:
        start = 0 if past is None else past[0][0][0].size(2)
        x, presents = self.embedding(input_ids), []
        for number, block in enumerate(self.blocks):
            q, k, v = block.projected(x)
            q, k = self.rotary(q, start), self.rotary(k, start)
            new = [self.kept(k), self.kept(v)]
            k, v = StraightThrough.apply(k), StraightThrough.apply(v)
            if past is not None:
                (key_bytes, key_scale), (value_bytes, value_scale) = past[number]
                k = torch.cat([key_bytes * key_scale, k], 2)
                v = torch.cat([value_bytes * value_scale, v], 2)
                new = [
                    tuple(torch.cat(pair, 2) for pair in zip(old, part, strict=True))
                    for old, part in zip(past[number], new, strict=True)
                ]
            presents.append(new)
            x = block.closed(x, softmax_attention(q, k, v, look_ahead(q.size(2), k.size(2))))
        return self.scores(x), presents


class Latent(Base):
    """Keeps a small vector a token, of which keys and values are made, and one rotated key for all heads."""

    def __init__(self, rank: int = 12) -> None:
        super().__init__()
        self.rotary = RotaryEmbedding()
        self.down = nn.ModuleList(nn.Linear(WIDTH, rank, bias=False) for _ in self.blocks)
        self.up_keys = nn.ModuleList(nn.Linear(rank, WIDTH, bias=False) for _ in self.blocks)
        self.up_values = nn.ModuleList(nn.Linear(rank, WIDTH, bias=False) for _ in self.blocks)
        self.place_query = nn.ModuleList(nn.Linear(WIDTH, HEADS * SIZE, bias=False) for _ in self.blocks)
        self.place_key = nn.ModuleList(nn.Linear(WIDTH, SIZE, bias=False) for _ in self.blocks)
        for block in self.blocks:
            del block.key, block.value

    def forward(self, idx: Tensor, cache: Any = None) -> tuple[Tensor, Any]:
        past = 0 if cache is None else cache[0][0].size(1)
        x, kept = self.embedding(idx), []
        for number, block in enumerate(self.blocks):
            h = block.first(x)
            latent, place_key = self.down[number](h), self.rotary(self.place_key[number](h)[:, None], past)[:, 0]
            if cache is not None:
                latent = torch.cat([cache[number][0], latent], 1)
                place_key = torch.cat([cache[number][1], place_key], 1)
            kept.append((latent, place_key))
            q, place_q, k, v = (
                part.unflatten(-1, (HEADS, SIZE)).transpose(1, 2)
                for part in (
                    block.query(h),
                    self.place_query[number](h),
                    self.up_keys[number](latent),
                    self.up_values[number](latent),
                )
            )
            q = torch.cat([q, self.rotary(place_q, past)], -1)
            k = torch.cat([k, place_key[:, None].expand(-1, HEADS, -1, -1)], -1)
            bias = look_ahead(q.size(2), k.size(2))
            x = block.closed(x, functional.scaled_dot_product_attention(q, k, v, attn_mask=bias))
        return self.scores(x), kept


def decoder(model: nn.Module, **options: Any) -> dict[str, Any]:
    return {"model": model, "vocab_size": VOCABULARY, "kind": "decoder", **options}
