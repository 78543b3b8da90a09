"""Encoder-decoders: post-norm with heads in front of the batch, and relative biases in the style of T5."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

PAD, BOS, EOS, V, D = 0, 1, 2, 37, 32


class MultiHeadAttention(nn.Module):
    """Attention in three dimensions: heads and rows share one axis, heads first."""

    def __init__(self, n_head: int = 4) -> None:
        super().__init__()
        self.n_head = n_head
        self.w_qs, self.w_ks, self.w_vs = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, D)
        self.fc = nn.Linear(D, D)

    def heads(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        return x.view(b, t, self.n_head, -1).permute(2, 0, 1, 3).reshape(self.n_head * b, t, -1)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        b, t, _ = q.shape
        mask = mask.expand(b, t, k.size(1))
        q, k, v = self.heads(self.w_qs(q)), self.heads(self.w_ks(k)), self.heads(self.w_vs(v))
        attn = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.size(-1))
        attn = attn.masked_fill(mask.repeat(self.n_head, 1, 1) == 0, -1e9)
        output = torch.bmm(attn.softmax(2), v)
        return self.fc(output.view(self.n_head, b, t, -1).permute(1, 2, 0, 3).reshape(b, t, -1))


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w_1, self.w_2 = nn.Linear(D, 2 * D), nn.Linear(2 * D, D)

    def forward(self, x: Tensor) -> Tensor:
        return self.w_2(torch.relu(self.w_1(x)))


class EncoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.feed = MultiHeadAttention(), FeedForward()
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(2))

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        x = self.norms[0](inputs + self.attention(inputs, inputs, inputs, mask))
        return self.norms[1](x + self.feed(x))


class DecoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.cross, self.feed = MultiHeadAttention(), MultiHeadAttention(), FeedForward()
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(3))

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor, memory_mask: Tensor) -> Tensor:
        y = self.attention(x, x, x, mask)
        x = self.norms[0](x + y)
        y = self.cross(x, memory, memory, memory_mask)
        x = self.norms[1](x + y)
        return self.norms[2](x + self.feed(x))


def sinusoids(length: int) -> Tensor:
    angles = torch.arange(length)[:, None] / 10_000 ** (torch.arange(0, D, 2) / D)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


class Transformer(nn.Module):
    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        self.src_word_emb = nn.Embedding(V, D, padding_idx=PAD)
        self.trg_word_emb = nn.Embedding(V, D, padding_idx=PAD)
        self.encoder = nn.ModuleList(EncoderLayer() for _ in range(layers))
        self.decoder = nn.ModuleList(DecoderLayer() for _ in range(layers))
        self.trg_word_prj = nn.Linear(D, V, bias=False)
        self.max_length = 256
        self.register_buffer("pos_table", sinusoids(self.max_length), persistent=False)

    def forward(self, src_seq: Tensor, trg_seq: Tensor) -> Tensor:
        src_mask = (src_seq != PAD).unsqueeze(-2)
        length = trg_seq.size(1)
        trg_mask = torch.ones(length, length, dtype=torch.bool, device=trg_seq.device).tril()[None]
        memory = self.src_word_emb(src_seq) * D**0.5 + self.pos_table[: src_seq.size(1)].to(
            self.trg_word_prj.weight
        )
        for layer in self.encoder:
            memory = layer(memory, src_mask)
        x = self.trg_word_emb(trg_seq) * D**0.5 + self.pos_table[:length].to(self.trg_word_prj.weight)
        for layer in self.decoder:
            x = layer(x, memory, trg_mask, src_mask)
        return self.trg_word_prj(x)


class RelativeAttention(nn.Module):
    """Unscaled attention, with a learned bias by buckets of distance if it is given one."""

    def __init__(self, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(D, D, bias=False) for _ in range(4))
        nn.init.normal_(self.q.weight, std=(D * D / heads) ** -0.5)

    def forward(self, x: Tensor, memory: Tensor, bias: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (self.heads, -1)) for part in (self.q(x), self.k(memory), self.v(memory)))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) + bias
        return self.o(torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).flatten(2))


def bucket(distance: Tensor, *, bidirectional: bool, buckets: int = 16, longest: int = 64) -> Tensor:
    """Return the bucket of a distance, the position of the key less that of the query."""
    found = torch.zeros_like(distance)
    if bidirectional:
        buckets //= 2
        found = found + (distance > 0) * buckets
        distance = distance.abs()
    else:
        distance = (-distance).clamp(min=0)
    exact = buckets // 2
    far = exact + (distance.clamp(min=1) / exact).log() / math.log(longest / exact) * (buckets - exact)
    return found + torch.where(distance < exact, distance, far.long().clamp(max=buckets - 1))


class T5(nn.Module):
    """Pre-norm with RMS norms, a shared embedding, and a bias that all layers of a stack share."""

    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        self.shared = nn.Embedding(V, D)
        nn.init.normal_(self.shared.weight, std=1.0)
        self.encoder_bias, self.decoder_bias = nn.Embedding(16, 4), nn.Embedding(16, 4)
        parts = {"self": RelativeAttention, "cross": RelativeAttention, "feed": FeedForward}
        self.encoder = nn.ModuleList(self.block(parts, ("self", "feed")) for _ in range(layers))
        self.decoder = nn.ModuleList(self.block(parts, ("self", "cross", "feed")) for _ in range(layers))
        self.encoder_norm, self.decoder_norm = nn.RMSNorm(D), nn.RMSNorm(D)

    def block(self, parts: dict[str, Any], names: tuple[str, ...]) -> nn.ModuleDict:
        made = {name: parts[name]() for name in names}
        return nn.ModuleDict({**made, **{f"{name}_norm": nn.RMSNorm(D) for name in names}})

    def bias(self, table: nn.Embedding, length: int, *, bidirectional: bool) -> Tensor:
        time = torch.arange(length, device=table.weight.device)
        buckets = bucket(time[None] - time[:, None], bidirectional=bidirectional)
        return table(buckets).permute(2, 0, 1)[None]

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        source, target = batch["input_ids"], batch["decoder_input_ids"]
        low = torch.finfo(self.shared.weight.dtype).min
        padded = (source == PAD)[:, None, None] * low
        memory, bias = self.shared(source), self.bias(self.encoder_bias, source.size(1), bidirectional=True)
        for layer in self.encoder:
            normed = layer["self_norm"](memory)
            memory = memory + layer["self"](normed, normed, bias + padded)
            memory = memory + layer["feed"](layer["feed_norm"](memory))
        memory = self.encoder_norm(memory)
        length = target.size(1)
        later = torch.ones(length, length, device=target.device).triu(1).to(memory) * low
        x, bias = self.shared(target), self.bias(self.decoder_bias, length, bidirectional=False)
        for layer in self.decoder:
            normed = layer["self_norm"](x)
            x = x + layer["self"](normed, normed, bias + later)
            x = x + layer["cross"](layer["cross_norm"](x), memory, padded)
            x = x + layer["feed"](layer["feed_norm"](x))
        return {"logits": self.decoder_norm(x) @ self.shared.weight.mT * D**-0.5}


def translator(model: nn.Module) -> dict[str, Any]:
    return {"model": model, "vocab_size": V, "pad": PAD, "bos": BOS, "eos": EOS}
