"""Decoders whose caches have a fixed size: buffers in the module, slots by position, slots by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

PAD, VOCABULARY = 0, 41


@dataclass
class ModelArgs:
    dim: int = 32
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: int = 2
    vocab_size: int = VOCABULARY
    max_batch_size: int = 64
    max_seq_len: int = 512

    @property
    def head_dim(self) -> int:
        return self.dim // self.n_heads


class RMSNorm(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


def precompute_freqs_cis(dim: int, end: int, theta: float = 10000.0) -> Tensor:
    freqs = 1.0 / theta ** (torch.arange(0, dim, 2).float() / dim)
    angles = torch.outer(torch.arange(end).float(), freqs)
    return torch.polar(torch.ones_like(angles), angles)


def apply_rotary_emb(x: Tensor, freqs_cis: Tensor) -> Tensor:
    """Rotate pairs of neighbouring features: (B, T, H, E) with (T, E / 2)."""
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * freqs_cis[None, :, None]).flatten(3).type_as(x)


class FeedForward(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.w1, self.w2, self.w3 = nn.Linear(dim, 48, False), nn.Linear(48, dim, False), nn.Linear(dim, 48, False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


class Attention(nn.Module):
    """Grouped heads; keys and values of earlier calls lie in buffers of the layer."""

    def __init__(self, args: ModelArgs) -> None:
        super().__init__()
        self.n_rep, self.head_dim = args.n_heads // args.n_kv_heads, args.head_dim
        self.wq, self.wo = nn.Linear(args.dim, args.dim, False), nn.Linear(args.dim, args.dim, False)
        self.wk = nn.Linear(args.dim, args.n_kv_heads * self.head_dim, False)
        self.wv = nn.Linear(args.dim, args.n_kv_heads * self.head_dim, False)
        size = (args.max_batch_size, args.max_seq_len, args.n_kv_heads, self.head_dim)
        self.register_buffer("cache_k", torch.zeros(size), persistent=False)
        self.register_buffer("cache_v", torch.zeros(size), persistent=False)

    def forward(self, x: Tensor, start_pos: int, freqs_cis: Tensor, mask: Tensor | None) -> Tensor:
        bsz, seqlen, _ = x.shape
        xq, xk, xv = (w(x).unflatten(-1, (-1, self.head_dim)) for w in (self.wq, self.wk, self.wv))
        xq, xk = apply_rotary_emb(xq, freqs_cis), apply_rotary_emb(xk, freqs_cis)
        self.cache_k[:bsz, start_pos : start_pos + seqlen] = xk.detach()
        self.cache_v[:bsz, start_pos : start_pos + seqlen] = xv.detach()
        keys = torch.cat([self.cache_k[:bsz, :start_pos], xk], 1).repeat_interleave(self.n_rep, 2)
        values = torch.cat([self.cache_v[:bsz, :start_pos], xv], 1).repeat_interleave(self.n_rep, 2)
        scores = torch.einsum("bqhd,bkhd->bhqk", xq, keys) / self.head_dim**0.5
        if mask is not None:
            scores = scores + mask
        mixed = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), values)
        return self.wo(mixed.flatten(2))


class LlamaBlock(nn.Module):
    def __init__(self, args: ModelArgs) -> None:
        super().__init__()
        self.attention, self.feed_forward = Attention(args), FeedForward(args.dim)
        self.attention_norm, self.ffn_norm = RMSNorm(args.dim), RMSNorm(args.dim)

    def forward(self, x: Tensor, start_pos: int, freqs_cis: Tensor, mask: Tensor | None) -> Tensor:
        h = x + self.attention(self.attention_norm(x), start_pos, freqs_cis, mask)
        return h + self.feed_forward(self.ffn_norm(h))


class Llama(nn.Module):
    """forward(tokens, start_pos): a call at position 0 begins a new text, and later calls go on with it."""

    def __init__(self, args: ModelArgs | None = None) -> None:
        super().__init__()
        self.params = args = args or ModelArgs()
        self.max_length = args.max_seq_len
        self.tok_embeddings = nn.Embedding(args.vocab_size, args.dim)
        self.layers = nn.ModuleList(LlamaBlock(args) for _ in range(args.n_layers))
        self.norm, self.output = RMSNorm(args.dim), nn.Linear(args.dim, args.vocab_size, False)
        self.freqs_cis = precompute_freqs_cis(args.head_dim, args.max_seq_len)

    def forward(self, tokens: Tensor, start_pos: int = 0) -> Tensor:
        seqlen = tokens.size(1)
        end = start_pos + seqlen
        if end > self.max_length:
            raise ValueError(f"a text of {end} tokens is longer than max_seq_len = {self.max_length}")
        h = self.tok_embeddings(tokens)
        freqs_cis = self.freqs_cis[start_pos:end]
        mask = None
        if seqlen > 1:
            mask = torch.full((seqlen, seqlen), float("-inf")).triu(1)
            mask = torch.hstack([torch.zeros(seqlen, start_pos), mask])
        for layer in self.layers:
            h = layer(h, start_pos, freqs_cis, mask)
        return self.output(self.norm(h))


class KVCache(nn.Module):
    """A slot for every position; the mask hides those that are not written yet."""

    def __init__(self, rows: int, heads: int, length: int, size: int) -> None:
        super().__init__()
        self.register_buffer("k_cache", torch.zeros(rows, heads, length, size), persistent=False)
        self.register_buffer("v_cache", torch.zeros(rows, heads, length, size), persistent=False)

    def update(self, input_pos: Tensor, k_val: Tensor, v_val: Tensor) -> tuple[Tensor, Tensor]:
        rows = k_val.size(0)
        self.k_cache[:rows, :, input_pos] = k_val.detach().to(self.k_cache.dtype)
        self.v_cache[:rows, :, input_pos] = v_val.detach().to(self.v_cache.dtype)
        return self.k_cache[:rows].to(k_val.dtype), self.v_cache[:rows].to(v_val.dtype)


class FastBlock(nn.Module):
    def __init__(self, args: ModelArgs) -> None:
        super().__init__()
        self.head_dim, self.n_heads, self.n_kv = args.head_dim, args.n_heads, args.n_kv_heads
        self.wqkv = nn.Linear(args.dim, (args.n_heads + 2 * args.n_kv_heads) * self.head_dim, False)
        self.wo, self.feed_forward = nn.Linear(args.dim, args.dim, False), FeedForward(args.dim)
        self.attention_norm, self.ffn_norm = RMSNorm(args.dim), RMSNorm(args.dim)
        self.kv_cache = KVCache(args.max_batch_size, args.n_kv_heads, args.max_seq_len, self.head_dim)

    def forward(self, x: Tensor, freqs_cis: Tensor, mask: Tensor | None, input_pos: Tensor | None) -> Tensor:
        joined = self.wqkv(self.attention_norm(x)).unflatten(-1, (-1, self.head_dim))
        q, k, v = joined.split([self.n_heads, self.n_kv, self.n_kv], dim=2)
        q, k, v = (
            part.transpose(1, 2) for part in (apply_rotary_emb(q, freqs_cis), apply_rotary_emb(k, freqs_cis), v)
        )
        if input_pos is not None:
            k, v = self.kv_cache.update(input_pos, k, v)
        k, v = (part.repeat_interleave(self.n_heads // self.n_kv, 1) for part in (k, v))
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.wo(y.transpose(1, 2).flatten(2))
        return x + self.feed_forward(self.ffn_norm(x))


class FastTransformer(nn.Module):
    """forward(idx, input_pos): with positions the buffers are written and read, without them nothing is kept."""

    def __init__(self, args: ModelArgs | None = None) -> None:
        super().__init__()
        self.config = args = args or ModelArgs()
        self.max_length = args.max_seq_len
        self.tok_embeddings = nn.Embedding(args.vocab_size, args.dim)
        self.layers = nn.ModuleList(FastBlock(args) for _ in range(args.n_layers))
        self.norm, self.output = RMSNorm(args.dim), nn.Linear(args.dim, args.vocab_size, False)
        self.freqs_cis = precompute_freqs_cis(args.head_dim, args.max_seq_len)
        self.causal_mask = torch.ones(args.max_seq_len, args.max_seq_len, dtype=torch.bool).tril()

    def forward(self, idx: Tensor, input_pos: Tensor | None = None) -> Tensor:
        length = idx.size(1)
        if length > self.max_length or (input_pos is not None and int(input_pos[-1]) >= self.max_length):
            raise ValueError(f"texts are longer than max_seq_len = {self.max_length}")
        if input_pos is None:
            mask, freqs_cis = self.causal_mask[:length, :length], self.freqs_cis[:length]
        else:
            mask, freqs_cis = self.causal_mask[input_pos], self.freqs_cis[input_pos]
        x = self.tok_embeddings(idx)
        for layer in self.layers:
            x = layer(x, freqs_cis, mask, input_pos)
        return self.output(self.norm(x))


@dataclass
class RowCache:
    """Buffers (B, slots, H, E) of each layer; row b has written its first `lengths[b]` slots."""

    keys: list[Tensor]
    values: list[Tensor]
    lengths: Tensor


def attend(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
    """Attend to the keys that are seen (B, T, S); a query that may see no key at all gives zeros."""
    scores = torch.einsum("bthe,bshe->bhts", q, k) / q.size(-1) ** 0.5
    scores = scores.masked_fill(~seen[:, None], torch.finfo(scores.dtype).min)
    weights = scores.softmax(-1) * seen.any(-1)[:, None, :, None]
    return torch.einsum("bhts,bshe->bthe", weights, v)


class CompactRows(nn.Module):
    """Padding takes no slot and no position, wherever it stands: rows of unlike lengths go on at their own ends."""

    def __init__(self, width: int = 32, heads: int = 4, layers: int = 2, slots: int = 512) -> None:
        super().__init__()
        self.heads, self.max_length = heads, slots
        self.embed, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(slots, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers + 1))
        self.projections = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.outputs = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.mlps = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width)) for _ in range(layers)
        )
        self.head = nn.Linear(width, VOCABULARY)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: RowCache | None = None,
        use_cache: bool = False,
    ) -> dict[str, Any]:
        rows, new = input_ids.shape
        real = torch.ones_like(input_ids) if attention_mask is None else attention_mask[:, -new:].long()
        before = torch.zeros(rows, dtype=torch.long) if past_key_values is None else past_key_values.lengths
        block = real.cumsum(1) - 1
        places = before[:, None] + block
        if int(places.max()) >= self.max_length:
            raise ValueError(f"texts are longer than {self.max_length} tokens")
        slots = self.max_length if use_cache or past_key_values is not None else new
        written = torch.where(real.bool(), places, slots)
        seen = torch.arange(slots + 1) <= places[:, :, None]
        x = self.embed(input_ids) + self.places(places.clamp(min=0))
        present = RowCache([], [], before + real.sum(1))
        for layer, project in enumerate(self.projections):
            q, k, v = (
                part.unflatten(-1, (self.heads, -1)) for part in project(self.norms[2 * layer](x)).chunk(3, -1)
            )
            if past_key_values is None:
                keys, values = (k.new_zeros(rows, slots + 1, *k.shape[2:]) for _ in range(2))
            else:
                keys, values = past_key_values.keys[layer].clone(), past_key_values.values[layer].clone()
            keys[torch.arange(rows)[:, None], written] = k
            values[torch.arange(rows)[:, None], written] = v
            present.keys.append(keys)
            present.values.append(values)
            x = x + self.outputs[layer](attend(q, keys, values, seen).flatten(2))
            x = x + self.mlps[layer](self.norms[2 * layer + 1](x))
        return {"logits": self.head(self.norms[-1](x)), "past_key_values": present if use_cache else None}

    def reorder_cache(self, cache: RowCache, rows: Tensor) -> RowCache:
        return RowCache([k[rows] for k in cache.keys], [v[rows] for v in cache.values], cache.lengths[rows])


def decoder(model: nn.Module, **options: Any) -> dict[str, Any]:
    return {"model": model, "vocab_size": VOCABULARY, "kind": "decoder", **options}
