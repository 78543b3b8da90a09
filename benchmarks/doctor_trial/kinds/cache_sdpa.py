"""Decoders on torch's fused attention, whose caches are tuples, objects, dictionaries or parts of the layers."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY = 50


def gpt_config(**changes: Any) -> SimpleNamespace:
    sizes = {"block_size": 384, "vocab_size": VOCABULARY, "n_layer": 2, "n_head": 4, "n_embd": 32}
    return SimpleNamespace(**sizes | changes)


class CausalSelfAttention(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd)
        self.n_head = config.n_head

    def forward(self, x: Tensor, kv_cache: Any = None) -> tuple[Tensor, Any]:
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        q, k, v = (part.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for part in (q, k, v))
        if kv_cache is not None:
            k = torch.cat((kv_cache[0], k), dim=2)
            v = torch.cat((kv_cache[1], v), dim=2)
        S = k.size(2)
        if T == S:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        elif T == 1:
            y = functional.scaled_dot_product_attention(q, k, v)
        else:
            mask = torch.ones(T, S, dtype=torch.bool).tril(S - T)
            y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.c_proj(y), (k, v)


class GPTBlock(nn.Module):
    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(config.n_embd), nn.LayerNorm(config.n_embd)
        self.attn = CausalSelfAttention(config)
        self.mlp = nn.Sequential(
            nn.Linear(config.n_embd, 4 * config.n_embd), nn.GELU(), nn.Linear(4 * config.n_embd, config.n_embd)
        )

    def forward(self, x: Tensor, kv_cache: Any) -> tuple[Tensor, Any]:
        mixed, present = self.attn(self.ln_1(x), kv_cache)
        x = x + mixed
        return x + self.mlp(self.ln_2(x)), present


class GPT(nn.Module):
    """nanoGPT with forward(idx, kv_cache=None) -> (logits, kv_cache), a list of one pair a layer."""

    def __init__(self, config: SimpleNamespace) -> None:
        super().__init__()
        self.config = config
        self.wte, self.wpe = (
            nn.Embedding(config.vocab_size, config.n_embd),
            nn.Embedding(config.block_size, config.n_embd),
        )
        self.h = nn.ModuleList(GPTBlock(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.wte.weight = self.lm_head.weight
        self.apply(self._init_weights)

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.1)

    def forward(self, idx: Tensor, kv_cache: Any = None) -> tuple[Tensor, Any]:
        t = idx.size(1)
        past = 0 if kv_cache is None else kv_cache[0][0].size(2)
        if past + t > self.config.block_size:
            raise ValueError(f"cannot read {past + t} tokens, block_size is only {self.config.block_size}")
        pos = torch.arange(past, past + t)
        x = self.wte(idx)
        x = x + self.wpe(pos)
        presents = []
        for number, block in enumerate(self.h):
            x, present = block(x, None if kv_cache is None else kv_cache[number])
            presents.append(present)
        return self.lm_head(self.ln_f(x)), presents


class GenerationCache:
    def __init__(self) -> None:
        self.states: dict[int, tuple[Tensor, Tensor]] = {}

    def update(self, layer_idx: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        if layer_idx in self.states:
            old_key, old_value = self.states[layer_idx]
            key, value = torch.cat([old_key, key], 1), torch.cat([old_value, value], 1)
        self.states[layer_idx] = key, value
        return key, value

    def get_seq_length(self) -> int:
        return self.states[0][0].size(1) if self.states else 0

    def reorder_cache(self, rows: Tensor) -> None:
        self.states = {number: (k[rows], v[rows]) for number, (k, v) in self.states.items()}


@dataclass
class Output:
    logits: Tensor
    cache_params: GenerationCache | None = None


def rope(x: Tensor, start: int) -> Tensor:
    """Rotate (B, T, H, E) by positions from `start`."""
    half = x.size(-1) // 2
    angles = torch.arange(start, start + x.size(1))[:, None] / 1000 ** (torch.arange(half) / half)
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class SoftmaxAttention(nn.Module):
    def __init__(self, width: int, heads: int, layer_idx: int, causal: bool = True) -> None:
        super().__init__()
        self.heads, self.layer_idx, self.causal = heads, layer_idx, causal
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, cache_params: GenerationCache | None, start: int) -> Tensor:
        q, k, v = (part.unflatten(-1, (self.heads, -1)) for part in self.c_attn(x).chunk(3, -1))
        q, k = rope(q, start), rope(k, start)
        if cache_params is not None:
            k, v = cache_params.update(self.layer_idx, k, v)
        attention_mask = None
        if 1 < q.size(1) < k.size(1):
            attention_mask = torch.ones(q.size(1), k.size(1), dtype=torch.bool).tril(k.size(1) - q.size(1))
        x = functional.scaled_dot_product_attention(
            q.transpose(1, 2),
            k.transpose(1, 2),
            v.transpose(1, 2),
            attn_mask=attention_mask,
            is_causal=self.causal and attention_mask is None and q.size(1) == k.size(1),
        )
        return self.c_proj(x.transpose(1, 2).flatten(2))


class Engine(nn.Module):
    """forward(input_ids, cache_params=None, use_cache=False) -> an output with its cache; computed positions."""

    def __init__(self, width: int = 32, heads: int = 2, layers: int = 2) -> None:
        super().__init__()
        self.wte = nn.Embedding(VOCABULARY, width)
        self.mixers = nn.ModuleList(SoftmaxAttention(width, heads, number) for number in range(layers))
        self.mlps = nn.ModuleList(
            nn.Sequential(nn.RMSNorm(width), nn.Linear(width, 64), nn.SiLU(), nn.Linear(64, width))
            for _ in range(layers)
        )
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(layers + 1))
        self.lm_head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(
        self, input_ids: Tensor, cache_params: GenerationCache | None = None, use_cache: bool = False
    ) -> Output:
        if use_cache and cache_params is None:
            cache_params = GenerationCache()
        start = 0 if cache_params is None else cache_params.get_seq_length()
        x = self.wte(input_ids)
        for mixer, mlp, norm in zip(self.mixers, self.mlps, self.norms, strict=False):
            x = x + mixer(norm(x), cache_params, start)
            x = x + mlp(x)
        return Output(self.lm_head(self.norms[-1](x)), cache_params)


class MaskKind(enum.Enum):
    NONE = 0
    CAUSAL = 1
    EXPLICIT = 2


@dataclass
class AttendSpec:
    kind: MaskKind
    mask: Tensor | None = None


class ContiguousCache:
    """Keys and values in the order of the text, and how the new queries attend to them."""

    def __init__(self, layers: int) -> None:
        self.layers: list[tuple[Tensor, Tensor] | None] = [None] * layers

    @property
    def length(self) -> int:
        return 0 if self.layers[0] is None else self.layers[0][0].size(2)

    def update_and_fetch(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, AttendSpec]:
        new = k.size(2)
        if self.layers[layer] is not None:
            k, v = (torch.cat(pair, 2) for pair in zip(self.layers[layer], (k, v), strict=True))
        self.layers[layer] = k, v
        return k, v, self._spec(new, k.size(2))

    def _spec(self, new: int, total: int) -> AttendSpec:
        if new == 1:
            return AttendSpec(MaskKind.NONE)
        if new == total:
            return AttendSpec(MaskKind.CAUSAL)
        queries = torch.arange(total - new, total)
        return AttendSpec(MaskKind.EXPLICIT, torch.arange(total) <= queries[:, None])


def attend(q: Tensor, k: Tensor, v: Tensor, spec: AttendSpec) -> Tensor:
    return functional.scaled_dot_product_attention(
        q, k, v, attn_mask=spec.mask, is_causal=spec.kind is MaskKind.CAUSAL
    )


class Reference(nn.Module):
    """forward(tokens, cache=None) -> (logits, cache); the cache says which mask its reader needs."""

    def __init__(self, width: int = 32, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(VOCABULARY, width)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm": nn.LayerNorm(width),
                    "qkv": nn.Linear(width, 3 * width),
                    "out": nn.Linear(width, width),
                    "ffn": nn.Sequential(
                        nn.LayerNorm(width), nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, width)
                    ),
                }
            )
            for _ in range(layers)
        )
        self.head = nn.Linear(width, VOCABULARY)

    def init_cache(self) -> ContiguousCache:
        return ContiguousCache(len(self.layers))

    def forward(self, tokens: Tensor, cache: ContiguousCache | None = None) -> tuple[Tensor, ContiguousCache]:
        cache = self.init_cache() if cache is None else cache
        start, x = cache.length, self.embed(tokens)
        for number, layer in enumerate(self.layers):
            q, k, v = (part.unflatten(-1, (self.heads, -1)) for part in layer["qkv"](layer["norm"](x)).chunk(3, -1))
            q, k, v = (part.transpose(1, 2) for part in (rope(q, start), rope(k, start), v))
            k, v, spec = cache.update_and_fetch(number, k, v)
            x = x + layer["out"](attend(q, k, v, spec).transpose(1, 2).flatten(2))
            x = x + layer["ffn"](x)
        return self.head(x), cache


class TinyAttention(nn.Module):
    def __init__(self, width: int, heads: int, longest: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        hidden = torch.ones(longest, longest, dtype=torch.bool).triu(1)
        self.register_buffer("causal_mask", hidden, persistent=False)

    def forward(self, x: Tensor, cache: dict[str, Tensor] | None) -> Tensor:
        T_new = x.size(1)
        q, k, v = (layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        if cache is not None:
            if "k" in cache:
                k, v = torch.cat([cache["k"], k], dim=2), torch.cat([cache["v"], v], dim=2)
            cache["k"], cache["v"] = k, v
        T_all = k.size(2)
        scores = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5
        scores = scores.masked_fill(self.causal_mask[T_all - T_new : T_all, :T_all], float("-inf"))
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class TinyLLM(nn.Module):
    """forward(idx, caches=None) -> (logits, caches): a dictionary for each layer, which its attention fills."""

    def __init__(self, width: int = 32, heads: int = 4, layers: int = 3, longest: int = 400) -> None:
        super().__init__()
        self.max_length, self.n_layers = longest, layers
        self.token, self.position = nn.Embedding(VOCABULARY, width), nn.Embedding(longest, width)
        self.attention = nn.ModuleList(TinyAttention(width, heads, longest) for _ in range(layers))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 96), nn.GELU(), nn.Linear(96, width)) for _ in range(layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers))
        self.head = nn.Linear(width, VOCABULARY)

    def init_caches(self) -> list[dict[str, Tensor]]:
        return [{} for _ in range(self.n_layers)]

    def forward(
        self, idx: Tensor, caches: list[dict[str, Tensor]] | None = None
    ) -> tuple[Tensor, list[dict[str, Tensor]] | None]:
        past = caches[0]["k"].size(2) if caches and "k" in caches[0] else 0
        if past + idx.size(1) > self.max_length:
            raise ValueError(f"more than {self.max_length} tokens")
        x = self.token(idx) + self.position(torch.arange(past, past + idx.size(1)))
        for number in range(self.n_layers):
            x = self.norms[2 * number](x + self.attention[number](x, None if caches is None else caches[number]))
            x = self.norms[2 * number + 1](x + self.mlp[number](x))
        return self.head(x), caches


class BookAttention(nn.Module):
    """Keeps the keys and values of its text itself, until reset_cache() is called."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.W_query, self.W_key, self.W_value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.out_proj = nn.Linear(width, width)
        self.cache_k: Tensor | None = None
        self.cache_v: Tensor | None = None

    def reset_cache(self) -> None:
        self.cache_k = self.cache_v = None

    def forward(self, x: Tensor, use_cache: bool) -> Tensor:
        queries, keys, values = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        if use_cache:
            if self.cache_k is not None:
                keys, values = torch.cat([self.cache_k, keys], 2), torch.cat([self.cache_v, values], 2)
            self.cache_k, self.cache_v = keys, values
        new, total = queries.size(2), keys.size(2)
        hidden = torch.arange(total) > torch.arange(total - new, total)[:, None]
        scores = (queries @ keys.mT).masked_fill(hidden, -torch.inf)
        weights = (scores / keys.size(-1) ** 0.5).softmax(-1)
        return self.out_proj((weights @ values).transpose(1, 2).flatten(2))


class BookGPT(nn.Module):
    """forward(in_idx, use_cache=False), with reset_kv_cache() before each text; sinusoids tell positions."""

    def __init__(self, width: int = 48, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.tok_emb = nn.Embedding(VOCABULARY, width)
        self.register_buffer("rates", 1000.0 ** -(torch.arange(width // 2) / (width // 2)), persistent=False)
        self.att = nn.ModuleList(BookAttention(width, heads) for _ in range(layers))
        self.ff = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 96), nn.GELU(), nn.Linear(96, width))
            for _ in range(layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers + 1))
        self.out_head = nn.Linear(width, VOCABULARY, bias=False)
        self.current_pos = 0

    def reset_kv_cache(self) -> None:
        for att in self.att:
            att.reset_cache()
        self.current_pos = 0

    def forward(self, in_idx: Tensor, use_cache: bool = False) -> Tensor:
        start = self.current_pos if use_cache else 0
        end = start + in_idx.size(1)
        angles = torch.arange(start, end)[:, None] * self.rates
        x = self.tok_emb(in_idx) + torch.cat([angles.sin(), angles.cos()], -1)
        if use_cache:
            self.current_pos = end
        for att, ff, norm in zip(self.att, self.ff, self.norms, strict=False):
            x = x + att(norm(x), use_cache)
            x = x + ff(x)
        return self.out_head(self.norms[-1](x))


def decoder(model: nn.Module, **options: Any) -> dict[str, Any]:
    return {"model": model, "vocab_size": VOCABULARY, "kind": "decoder", **options}
