"""Decoders whose queries see a window of keys; caches hold all keys, a ring, or sinks and the last ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

PAD, VOCABULARY, WIDTH, HEADS = 0, 37, 32, 4


def turned(x: Tensor, positions: Tensor) -> Tensor:
    """Rotate (B, H, T, E) by positions (T,)."""
    half = x.size(-1) // 2
    angles = positions[:, None] / 500 ** (torch.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)


def attend(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
    scores = q @ k.mT / q.size(-1) ** 0.5
    return scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH))

    def project(self, x: Tensor) -> list[Tensor]:
        return [part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1)]

    def close(self, x: Tensor, mixed: Tensor) -> Tensor:
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(x)


class Decoder(nn.Module):
    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)


class DenseCache:
    """Keeps the keys and values of all tokens; `offset` is the number of tokens so far."""

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.values: Tensor | None = None
        self.offset = 0

    def update_and_fetch(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        if self.keys is not None:
            keys, values = torch.cat([self.keys, keys], 2), torch.cat([self.values, values], 2)
        self.keys, self.values, self.offset = keys, values, keys.size(2)
        return keys, values


def window_mask(size: int, offset: int, window: int) -> Tensor:
    """Return the keys (size, offset + size) that new queries see: the last `window` ones up to their own."""
    distance = torch.arange(offset, offset + size)[:, None] - torch.arange(offset + size)
    return (distance >= 0) & (distance < window)


def clamped_mask(size: int, offset: int, window: int) -> Tensor:
    """Return the part of the mask for the last `window` keys."""
    return window_mask(size, offset, window)[:, -window:]


class DenseWindow(Decoder):
    """Every second layer sees a window, though all keys are kept; forward(inputs, cache) -> (logits, cache)."""

    def __init__(self, window: int = 6) -> None:
        super().__init__()
        self.window = window

    def make_cache(self) -> list[DenseCache]:
        return [DenseCache() for _ in self.layers]

    def mask(self, size: int, offset: int, local: bool) -> Tensor:
        if not local:
            return window_mask(size, offset, offset + size)
        return window_mask(size, offset, self.window)

    def forward(self, inputs: Tensor, cache: list[DenseCache] | None = None) -> tuple[Tensor, list[DenseCache]]:
        cache = self.make_cache() if cache is None else cache
        size, offset = inputs.size(1), cache[0].offset
        x, positions = self.embed(inputs), torch.arange(offset, offset + size)
        for number, layer in enumerate(self.layers):
            q, k, v = layer.project(x)
            k, v = cache[number].update_and_fetch(turned(k, positions), v)
            mask = self.mask(size, offset, local=number % 2 == 0)
            k, v = k[:, :, -mask.size(1) :], v[:, :, -mask.size(1) :]
            x = layer.close(x, attend(turned(q, positions), k, v, mask))
        return self.head(self.norm(x)), cache


@dataclass
class Ring:
    """Slots of the last keys and values; `positions` (slots,) tells what each holds, -1 for nothing."""

    keys: Tensor
    values: Tensor
    positions: Tensor

    @classmethod
    def empty(cls, like: Tensor, slots: int) -> Ring:
        zeros = like.new_zeros(*like.shape[:2], slots, like.size(-1))
        return cls(zeros, zeros, torch.full((slots,), -1))

    def written(self, keys: Tensor, values: Tensor, positions: Tensor) -> Ring:
        """Return the ring after new tokens, of which the last ones fit into it."""
        room = self.positions.numel()
        keys, values, positions = keys[:, :, -room:], values[:, :, -room:], positions[-room:]
        slots = positions % room
        return Ring(
            self.keys.index_copy(2, slots, keys),
            self.values.index_copy(2, slots, values),
            self.positions.index_copy(0, slots, positions),
        )


@dataclass
class HybridCache:
    """A ring for each local layer, all keys for each global one."""

    layers: dict[int, Any] = field(default_factory=dict)
    length: int = 0

    def reorder(self, rows: Tensor) -> HybridCache:
        moved = {
            number: Ring(kept.keys[rows], kept.values[rows], kept.positions)
            if isinstance(kept, Ring)
            else tuple(part[rows] for part in kept)
            for number, kept in self.layers.items()
        }
        return HybridCache(moved, self.length)


class RingWindow(Decoder):
    """Local layers keep a ring of `window` slots; forward(input_ids, past_key_values=None, use_cache=False)."""

    def __init__(self, window: int = 8, layers: int = 3) -> None:
        super().__init__(layers)
        self.window = window

    def forward(
        self, input_ids: Tensor, past_key_values: HybridCache | None = None, use_cache: bool = False
    ) -> dict[str, Any]:
        past = HybridCache() if past_key_values is None else past_key_values
        positions = torch.arange(past.length, past.length + input_ids.size(1))
        present, x = HybridCache(length=past.length + input_ids.size(1)), self.embed(input_ids)
        for number, layer in enumerate(self.layers):
            q, k, v = layer.project(x)
            q, k = turned(q, positions), turned(k, positions)
            if number % 3 == 2:
                mixed, kept = self.attend_globally(q, k, v, past.layers.get(number))
            else:
                mixed, kept = self.attend_locally(q, k, v, positions, past.layers.get(number))
            present.layers[number] = kept
            x = layer.close(x, mixed)
        return {"logits": self.head(self.norm(x)), "past_key_values": present if use_cache else None}

    def attend_globally(self, q: Tensor, k: Tensor, v: Tensor, kept: Any) -> tuple[Tensor, Any]:
        if kept is not None:
            k, v = torch.cat([kept[0], k], 2), torch.cat([kept[1], v], 2)
        return attend(q, k, v, window_mask(q.size(2), k.size(2) - q.size(2), k.size(2))), (k, v)

    def attend_locally(
        self, q: Tensor, k: Tensor, v: Tensor, positions: Tensor, ring: Ring | None
    ) -> tuple[Tensor, Ring]:
        cached = ring is not None
        ring = ring if cached else Ring.empty(k, self.window)
        after = ring.written(k, v, positions)
        keys, values = torch.cat([ring.keys, k], 2), torch.cat([ring.values, v], 2)
        places = torch.cat([ring.positions, positions])
        distance = positions[:, None] - places
        seen = (places >= 0) & (distance >= 0) & (distance < self.window)
        return attend(q, keys, values, seen), after

    def reorder_cache(self, past_key_values: HybridCache, rows: Tensor) -> HybridCache:
        return past_key_values.reorder(rows)


class Sinks(Decoder):
    """Sees the first tokens and the last ones; its cache (keys, values, positions) a layer drops those between."""

    def __init__(self, window: int = 12, sinks: int = 2) -> None:
        super().__init__()
        self.window, self.sinks = window, sinks

    def forward(self, tokens: Tensor, kv_cache: Any = None) -> tuple[Tensor, Any]:
        start = 0 if kv_cache is None else int(kv_cache[0][2][-1]) + 1
        positions, x, kept = torch.arange(start, start + tokens.size(1)), self.embed(tokens), []
        for number, layer in enumerate(self.layers):
            q, k, v = layer.project(x)
            q, k, places = turned(q, positions), turned(k, positions), positions
            if kv_cache is not None:
                old_k, old_v, old_places = kv_cache[number]
                k, v, places = torch.cat([old_k, k], 2), torch.cat([old_v, v], 2), torch.cat([old_places, places])
            distance = positions[:, None] - places
            seen = (distance >= 0) & ((distance < self.window) | (places < self.sinks))
            x = layer.close(x, functional.scaled_dot_product_attention(q, k, v, attn_mask=seen))
            keep = (places < self.sinks) | (places > int(positions[-1]) + 1 - self.window)
            kept.append((k[:, :, keep], v[:, :, keep], places[keep]))
        return self.head(self.norm(x)), kept


def decoder(model: nn.Module, **options: Any) -> dict[str, Any]:
    return {"model": model, "vocab_size": VOCABULARY, "kind": "decoder", **options}
