"""Decoders with a KV cache in several code styles, sound and with planted defects of the cache."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from transformer_doctor import Report, examine
from transformer_doctor.model_adapter import Kind

PAD, VOCABULARY, D, H, E, LAYERS, LONGEST = 0, 23, 16, 2, 8, 2, 64


def rotated(x: Tensor, positions: Tensor) -> Tensor:
    """Turn queries or keys by their positions: (B, H, T, E), (T,) -> (B, H, T, E)."""
    angles = positions[:, None] / 100 ** (torch.arange(E // 2) / (E // 2))
    cos, sin = angles.cos(), angles.sin()
    left, right = x.chunk(2, -1)
    return torch.cat([left * cos - right * sin, left * sin + right * cos], -1)


def causal(new: int, keys: int, defect: str) -> Tensor:
    """Return the keys (T, S) that new queries may see, True where they may."""
    ones = torch.ones(new, keys, dtype=torch.bool)
    if defect == "future":
        return ones
    if defect == "mask-open" and keys > new:  # no mask once there is a cache
        return ones
    return ones.tril() if defect == "mask-corner" else ones.tril(keys - new)


class Block(nn.Module):
    """Pre-norm block; `project` gives queries, keys and values (B, H, T, E)."""

    def __init__(self, *, cross: bool = False) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(3))
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.feed_forward = nn.Sequential(nn.Linear(D, 29), nn.GELU(), nn.Linear(29, D))
        if cross:
            self.cross_q, self.cross_kv, self.cross_out = nn.Linear(D, D), nn.Linear(D, 2 * D), nn.Linear(D, D)

    def project(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(heads(part) for part in self.qkv(self.norms[0](x)).chunk(3, -1))

    def close(self, x: Tensor, mixed: Tensor) -> Tensor:
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.feed_forward(self.norms[1](x))


def heads(x: Tensor) -> Tensor:
    return x.unflatten(-1, (H, E)).transpose(1, 2)


def attend(q: Tensor, k: Tensor, v: Tensor, seen: Tensor | None = None) -> Tensor:
    scores = q @ k.transpose(-1, -2) / E**0.5
    if seen is not None:
        scores = scores.masked_fill(~seen, torch.finfo(scores.dtype).min)
    return scores.softmax(-1) @ v


class Base(nn.Module):
    """Embeddings, blocks and output layer; a defect is planted by its name."""

    def __init__(self, defect: str = "") -> None:
        super().__init__()
        self.defect = defect
        self.tokens, self.places = nn.Embedding(VOCABULARY, D), nn.Embedding(LONGEST, D)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, VOCABULARY)
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.3)

    def start(self, past: int) -> int:
        """Return the position of the first new token."""
        return {"position-zero": 0, "position-late": past + (past > 0)}.get(self.defect, past)


class Tuples(Base):
    """The GPT-2 of 2019: forward(idx, past=None) -> (logits, presents), learned positions."""

    def forward(self, idx: Tensor, past: Any = None) -> tuple[Tensor, Any]:
        length = 0 if past is None else past[0][0].size(-2)
        x, presents = self.embed(idx, length), []
        for number, block in enumerate(self.blocks):
            q, k, v = block.project(x)
            if past is not None:
                old_k, old_v = past[0 if self.defect == "values-layer" else number]
                if self.defect == "lost":
                    old_k, old_v = old_k[:, :, 1:], old_v[:, :, 1:]
                if self.defect == "values-order":
                    k, v = torch.cat([k, old_k], -2), torch.cat([v, old_v], -2)
                else:
                    k, v = torch.cat([old_k, k], -2), torch.cat([old_v, v], -2)
            presents.append((k, v))
            x = block.close(x, attend(q, k, v, causal(q.size(-2), k.size(-2), self.defect)))
        return self.head(self.norm(x)), tuple(presents)

    def embed(self, idx: Tensor, length: int) -> Tensor:
        return self.tokens(idx) + self.places(torch.arange(idx.size(1)) + self.start(length))


class Window(Tuples):
    """Each token sees the last 24; the cache holds as many keys, the new one among them."""

    def __init__(self, defect: str = "") -> None:
        super().__init__(defect)
        self.window = 24

    def forward(self, idx: Tensor, past: Any = None) -> tuple[Tensor, Any]:
        length = 0 if past is None else past[-1]
        x, presents = self.embed(idx, length), []
        for number, block in enumerate(self.blocks):
            q, k, v = block.project(x)
            if past is not None:
                k, v = (torch.cat([old, new], -2) for old, new in zip(past[number], (k, v), strict=True))
            seen = causal(q.size(-2), k.size(-2), "")
            kept = -(self.window - 2 if self.defect == "window-short" else self.window - 1)
            presents.append((k[:, :, kept:], v[:, :, kept:]))
            x = block.close(x, attend(q, k, v, seen & ~seen.tril(k.size(-2) - q.size(-2) - self.window)))
        return self.head(self.norm(x)), (*presents, length + idx.size(1))


class Whole(Tuples):
    """Wants all tokens beside its cache, and reads the new ones alone."""

    def embed(self, idx: Tensor, length: int) -> Tensor:
        return super().embed(idx, 0)[:, min(length, idx.size(1) - 1) :]


class Dicts(Base):
    """forward(input_ids, attention_mask=None, kv_cache=None, use_cache=False) -> dict; rotary positions."""

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, kv_cache: Any = None, use_cache: bool = False
    ) -> dict[str, Any]:
        past = kv_cache[0]["key"].size(-2) if kv_cache else 0
        x, new_cache = self.tokens(input_ids), []
        positions = torch.arange(input_ids.size(1)) + self.start(past)
        for number, block in enumerate(self.blocks):
            q, k, v = block.project(x)
            q, k = rotated(q, positions), rotated(k, positions)
            if kv_cache:
                k = torch.cat([kv_cache[number]["key"], k], -2)
                v = torch.cat([kv_cache[number]["value"], v], -2)
                if self.defect == "keys-twice":
                    k = rotated(k, torch.arange(k.size(-2)))
            seen = causal(q.size(-2), k.size(-2), self.defect)[None, None]
            if attention_mask is not None:
                seen = seen & attention_mask[:, None, None].bool()
            new_cache.append({"key": k, "value": v})
            x = block.close(x, attend(q, k, v, seen))
        return {"logits": self.head(self.norm(x)), "kv_cache": new_cache if use_cache else None}


class KeyValues:
    """Cache that appends keys and values layer by layer."""

    def __init__(self) -> None:
        self.keys: dict[int, Tensor] = {}
        self.values: dict[int, Tensor] = {}

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        if layer in self.keys:
            k, v = torch.cat([self.keys[layer], k], -2), torch.cat([self.values[layer], v], -2)
        self.keys[layer], self.values[layer] = k, v
        return k, v

    def get_seq_length(self) -> int:
        return self.keys[0].size(-2) if self.keys else 0


class Objects(Base):
    """forward(ids, cache=None) -> (logits, cache) with a cache object that init_cache() makes."""

    def init_cache(self) -> KeyValues:
        return KeyValues()

    def forward(self, ids: Tensor, cache: KeyValues | None = None) -> tuple[Tensor, KeyValues]:
        cache = KeyValues() if cache is None else cache
        x = self.tokens(ids) + self.places(torch.arange(ids.size(1)) + self.start(cache.get_seq_length()))
        for number, block in enumerate(self.blocks):
            q, k, v = block.project(x)
            k, v = cache.update(number, k, v)
            if self.defect == "twice" and k.size(-2) > q.size(-2):
                k, v = cache.update(number, k[:, :, -1:], v[:, :, -1:])
            x = block.close(x, attend(q, k, v, causal(q.size(-2), k.size(-2), self.defect)))
        return self.head(self.norm(x)), cache

    def reorder_cache(self, cache: KeyValues, order: Tensor) -> KeyValues:
        moved = KeyValues()
        layers = {"rows": [], "rows-first": [0]}.get(self.defect, [*cache.keys])
        for number in cache.keys:
            rows = order if number in layers else torch.arange(len(order))
            moved.keys[number], moved.values[number] = cache.keys[number][rows], cache.values[number][rows]
        return moved


class Inside(Base):
    """Llama of 2023: forward(tokens, start_pos) with buffers of keys and values in the model, fused attention."""

    def __init__(self, defect: str = "") -> None:
        super().__init__(defect)
        for name in ("cache_k", "cache_v"):
            self.register_buffer(name, torch.zeros(LAYERS, 8, H, LONGEST, E), persistent=False)

    def forward(self, tokens: Tensor, start_pos: int = 0) -> Tensor:
        rows, new = tokens.shape
        x, positions = self.tokens(tokens), torch.arange(new) + self.start(start_pos)
        slot = max(start_pos - 1, 0) if self.defect == "values-slot" else start_pos
        for number, block in enumerate(self.blocks):
            q, k, v = block.project(x)
            q, k = rotated(q, positions), rotated(k, positions)
            self.cache_k[number, :rows, :, slot : slot + new] = k
            self.cache_v[number, :rows, :, slot : slot + new] = v
            k, v = (cache[number, :rows, :, : start_pos + new] for cache in (self.cache_k, self.cache_v))
            if self.defect == "mask-corner":
                mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                mixed = functional.scaled_dot_product_attention(
                    q, k, v, attn_mask=causal(new, start_pos + new, self.defect)
                )
            x = block.close(x, mixed)
        return self.head(self.norm(x))


class States(Base):
    """Linear attention: forward(ids, state=None) -> (logits, state), sums of outer products (B, H, E, E)."""

    def forward(self, ids: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        past = 0 if state is None else state[-1]
        x = self.tokens(ids) + self.places(torch.arange(ids.size(1)) + self.start(past))
        states = []
        for number, block in enumerate(self.blocks):
            q, k, v = block.project(x)
            k = k.softmax(-1)
            sums = (k[..., None] * v[..., None, :]).cumsum(2)
            if state is not None and not (self.defect == "forgets" and ids.size(1) > 1):
                before = state[0 if self.defect == "values-layer" else number][:, :, None]
                sums = sums + (before.roll(1, 0) if self.defect == "rows-mixed" else before)
            states.append(sums[:, :, -1])
            x = block.close(x, (q[..., None, :] @ sums).squeeze(-2))
        return self.head(self.norm(x)), [*states, past + ids.size(1)]


class Seq2Seq(Base):
    """forward(src, tgt, cache=None) -> (logits, cache); the cache holds the keys and values of the source too."""

    def __init__(self, defect: str = "") -> None:
        super().__init__(defect)
        self.blocks = nn.ModuleList(Block(cross=True) for _ in range(LAYERS))
        self.encoder = Block()
        self.kept: dict[int, Any] = {}
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.3)

    def forward(self, src: Tensor, tgt: Tensor, cache: Any = None) -> tuple[Tensor, Any]:
        memory = self.tokens(src) + self.places(torch.arange(src.size(1)))
        real = (src != PAD)[:, None, None]
        memory = self.encoder.close(memory, attend(*self.encoder.project(memory), real))
        past = 0 if cache is None else cache[0]["self"][0].size(-2)
        x = self.tokens(tgt) + self.places(torch.arange(tgt.size(1)) + self.start(past))
        layers = []
        for number, block in enumerate(self.blocks):
            q, k, v = block.project(x)
            if cache is not None:
                k, v = (torch.cat([old, new], -2) for old, new in zip(cache[number]["self"], (k, v), strict=True))
            x = x + block.out(
                attend(q, k, v, causal(q.size(-2), k.size(-2), self.defect)).transpose(1, 2).flatten(2)
            )
            of_source = self.keys_of_source(number, block, memory, cache)
            query = heads(block.cross_q(block.norms[2](x)))
            hidden = None if self.defect == "cross-mask" and past else real
            x = x + block.cross_out(attend(query, *of_source, hidden).transpose(1, 2).flatten(2))
            x = x + block.feed_forward(block.norms[1](x))
            layers.append({"self": (k, v), "cross": of_source})
        return self.head(self.norm(x)), layers

    def reorder_cache(self, cache: Any, order: Tensor) -> Any:
        """Select rows of the keys and values of the targets; hypotheses of a beam share their source."""
        layers = cache[:1] if self.defect == "rows" else cache
        moved = [{**layer, "self": tuple(part[order] for part in layer["self"])} for layer in layers]
        return moved + cache[len(moved) :]

    def keys_of_source(self, number: int, block: nn.Module, memory: Tensor, cache: Any) -> Any:
        """Return keys and values of the source (B, H, S, E), from the cache after the first step."""
        if cache is not None:
            return cache[0 if self.defect == "cross-layer" else number]["cross"]
        if self.defect == "cross-kept" and number in self.kept:
            return self.kept[number]
        self.kept[number] = tuple(heads(part) for part in block.cross_kv(memory).chunk(2, -1))
        return self.kept[number]


# The case that names each defect of a model; empty where the finding itself fits.
DEFECTS: dict[tuple[type[Base], str], str] = {
    (Tuples, "position-zero"): "cache-position",
    (Tuples, "position-late"): "cache-position",
    (Tuples, "lost"): "",
    (Tuples, "values-layer"): "",
    (Tuples, "values-order"): "",
    (Tuples, "mask-open"): "cache-mask",
    (Tuples, "mask-corner"): "cache-mask",
    (Window, "window-short"): "",
    (Whole, "lost"): "",
    (Dicts, "position-zero"): "cache-position",
    (Dicts, "position-late"): "cache-position",
    (Dicts, "keys-twice"): "cache-keys",
    (Objects, "twice"): "",
    (Objects, "rows"): "cache-rows",
    (Objects, "rows-first"): "cache-rows",
    (Objects, "position-zero"): "cache-position",
    (Inside, "position-zero"): "cache-position",
    (Inside, "values-slot"): "",
    (Inside, "mask-corner"): "cache-mask",
    (Inside, "mask-open"): "cache-mask",
    (States, "values-layer"): "",
    (States, "rows-mixed"): "",
    (States, "position-zero"): "",
    (States, "forgets"): "",
    (Seq2Seq, "position-zero"): "cache-position",
    (Seq2Seq, "rows"): "cache-rows",
    (Seq2Seq, "cross-layer"): "cache-cross",
    (Seq2Seq, "cross-mask"): "cache-mask",
    (Seq2Seq, "cross-kept"): "cache-kept",
}
SOUND = (Tuples, Window, Whole, Dicts, Objects, Inside, States, Seq2Seq)


def examined(model: Base) -> Report:
    """Examine a model with a cache."""
    kind: Kind = "encoder-decoder" if isinstance(model, Seq2Seq) else "decoder"
    return examine(model, vocab_size=VOCABULARY, pad=PAD, kind=kind, longest=16, quick=True)
