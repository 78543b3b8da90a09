"""Models in the styles of public projects, and texts with a pattern that can be learned."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

PAD, BOS, EOS, MASK, FIRST, V = 0, 1, 2, 3, 4, 40
Rows = list[list[int]]


def fill(rows: Rows, value: int = PAD) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[value] * (longest - len(row))] for row in rows])


def seeded(number: int) -> torch.Generator:
    return torch.Generator().manual_seed(number)


def chain(number: int, count: int, length: int) -> Tensor:
    """Return rows of words: each is a fixed function of the one before, or one time in five another."""
    draw = seeded(number)
    words = [torch.randint(0, V - FIRST, (count,), generator=draw)]
    for _ in range(length - 1):
        other = torch.randint(0, V - FIRST, (count,), generator=draw)
        follows = torch.rand(count, generator=draw) < 0.8
        words.append(torch.where(follows, (words[-1] * 5 + 7) % (V - FIRST), other))
    return torch.stack(words, 1) + FIRST


def texts(number: int, count: int = 8, longest: int = 14) -> Tensor:
    """Return texts with both marks, padded; each number has other ones."""
    words = chain(number, count, longest)
    lengths = torch.randint(4, longest + 1, (count,), generator=seeded(number + 1_000_000))
    lengths[0] = longest
    rows = [[BOS, *row[:length], EOS] for row, length in zip(words.tolist(), lengths.tolist(), strict=True)]
    return fill(rows)


def pairs(number: int, count: int = 8, longest: int = 10) -> tuple[Tensor, Tensor]:
    """Return sources, and targets that hold a fixed translation of each word."""
    words = chain(number, count, longest)
    lengths = torch.randint(3, longest + 1, (count,), generator=seeded(number + 2_000_000))
    lengths[0] = longest
    rows = [row[:length] for row, length in zip(words.tolist(), lengths.tolist(), strict=True)]
    translated = [[(word - FIRST + 11) % (V - FIRST) + FIRST for word in row] for row in rows]
    return fill([[*row, EOS] for row in rows]), fill([[BOS, *row, EOS] for row in translated])


class CausalSelfAttention(nn.Module):
    """One matrix for queries, keys and values, as in nanoGPT."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.n_head, self.dropout = heads, dropout

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.n_head, -1).transpose(1, 2) for part in self.c_attn(x).split(c, dim=2))
        y = functional.scaled_dot_product_attention(
            q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=True
        )
        return self.c_proj(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = CausalSelfAttention(width, heads, dropout)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.Dropout(dropout)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class TinyGPT(nn.Module):
    """A language model in nanoGPT's style, tied to a default embedding (scaled as in T5) or to a small one."""

    def __init__(self, layers: int = 2, dropout: float = 0.1, scale: float | None = None, std: float | None = None):
        super().__init__()
        width = 32
        self.wte, self.wpe = nn.Embedding(V, width), nn.Embedding(64, width)
        self.drop = nn.Dropout(dropout)
        self.h = nn.ModuleList(Block(width, 4, dropout) for _ in range(layers))
        self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, V, bias=False)
        self.lm_head.weight = self.wte.weight
        self.scale = width**-0.5 if scale is None else scale
        if std is not None:
            self.scale = 1.0
            nn.init.normal_(self.wte.weight, std=std)
            nn.init.normal_(self.wpe.weight, std=std)

    def hidden(self, idx: Tensor) -> Tensor:
        x = self.drop(self.wte(idx) + self.wpe(torch.arange(idx.size(1))))
        for block in self.h:
            x = block(x)
        return self.ln_f(x)

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        logits = self.lm_head(self.hidden(idx) * self.scale)
        if targets is None:
            return logits, None
        return logits, functional.cross_entropy(logits.view(-1, V), targets.reshape(-1), ignore_index=-1)


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def rotate_half(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class LlamaLayer(nn.Module):
    """Rotary positions, two query heads for each key head, and a gated feed-forward layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.head_dim = width // 4
        self.q_proj, self.o_proj = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(width, width // 2, bias=False) for _ in range(2))
        self.gate_proj, self.up_proj = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(2 * width, width, bias=False)
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(width), RMSNorm(width)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, seen: Tensor) -> Tensor:
        y = self.input_layernorm(x)
        q, k, v = (
            part(y).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for part in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = (part * cos + rotate_half(part) * sin for part in (q, k))
        k, v = (part.repeat_interleave(2, dim=1) for part in (k, v))
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        x = x + self.o_proj(mixed.transpose(1, 2).flatten(2))
        y = self.post_attention_layernorm(x)
        return x + self.down_proj(functional.silu(self.gate_proj(y)) * self.up_proj(y))


@dataclass
class CausalLMOutput:
    loss: Tensor | None
    logits: Tensor


class TinyLlama(nn.Module):
    """A language model in the style of transformers, which shifts labels; tied logits are divided as in muP."""

    def __init__(self, width: int = 32, layers: int = 2, tied: bool = True) -> None:
        super().__init__()
        self.config = SimpleNamespace(vocab_size=V, hidden_size=width, pad_token_id=PAD, tie_word_embeddings=tied)
        self.embed_tokens = nn.Embedding(V, width)
        self.layers = nn.ModuleList(LlamaLayer(width) for _ in range(layers))
        self.norm, self.lm_head = RMSNorm(width), nn.Linear(width, V, bias=False)
        self.logit_scale = 1.0
        if tied:
            self.lm_head.weight = self.embed_tokens.weight
            self.logit_scale = 1 / width

    def decode(self, embedded: Tensor, seen: Tensor | None = None) -> Tensor:
        length, size = embedded.size(1), self.layers[0].head_dim  # type: ignore[union-attr]
        angles = torch.arange(length)[:, None] / 10_000 ** (torch.arange(0, size, 2) / size)
        angles = torch.cat([angles, angles], -1).to(embedded.dtype)
        causal = torch.ones(length, length, dtype=torch.bool).tril()
        causal = causal if seen is None else causal & seen
        for layer in self.layers:
            embedded = layer(embedded, angles.cos(), angles.sin(), causal)
        return self.norm(embedded)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
    ) -> CausalLMOutput:
        embedded = self.embed_tokens(input_ids) if inputs_embeds is None else inputs_embeds
        seen = None
        if attention_mask is not None:
            eye = torch.eye(input_ids.size(1), dtype=torch.bool)
            seen = attention_mask[:, None, None, :].bool() | eye
        logits = self.lm_head(self.decode(embedded, seen)) * self.logit_scale
        loss = None
        if labels is not None:
            shift_logits, shift_labels = logits[:, :-1], labels[:, 1:]
            loss = functional.cross_entropy(
                shift_logits.reshape(-1, V).float(), shift_labels.reshape(-1), ignore_index=-100
            )
        return CausalLMOutput(loss, logits)


def sinusoids(length: int, width: int) -> Tensor:
    angles = torch.arange(length)[:, None] / 10_000 ** (torch.arange(0, width, 2) / width)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


class Sublayer(nn.Module):
    """A norm, a function, dropout and a residual connection, as in The Annotated Transformer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(0.1)

    def forward(self, x: Tensor, function: Any) -> Tensor:
        return x + self.dropout(function(self.norm(x)))


class Heads(nn.Module):
    """Attention by einsum with a mask that is True where a key is seen."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (
            part(y).unflatten(-1, (self.heads, -1))
            for part, y in ((self.query, x), (self.key, memory), (self.value, memory))
        )
        energy = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.size(-1))
        energy = energy.masked_fill(~mask[:, None], torch.finfo(energy.dtype).min)
        return self.out(torch.einsum("bhqk,bkhd->bqhd", energy.softmax(-1), v).flatten(2))


class Layer(nn.Module):
    def __init__(self, width: int, cross: bool) -> None:
        super().__init__()
        self.self_attn, self.cross_attn = Heads(width), Heads(width) if cross else None
        self.feed_forward = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        self.sublayers = nn.ModuleList(Sublayer(width) for _ in range(3 if cross else 2))

    def forward(self, x: Tensor, mask: Tensor, memory: Tensor | None = None, seen: Tensor | None = None) -> Tensor:
        x = self.sublayers[0](x, lambda y: self.self_attn(y, y, mask))
        if self.cross_attn is not None:
            x = self.sublayers[1](x, lambda y: self.cross_attn(y, memory, seen))  # type: ignore[misc]
        return self.sublayers[-1](x, self.feed_forward)


class EncoderDecoder(nn.Module):
    """A translator with encode, decode and a generator that is tied to a default embedding, scaled as in T5."""

    def __init__(self, width: int = 32, layers: int = 1, scale: float | None = None) -> None:
        super().__init__()
        self.shared = nn.Embedding(V, width)
        self.encoder = nn.ModuleList(Layer(width, cross=False) for _ in range(layers))
        self.decoder = nn.ModuleList(Layer(width, cross=True) for _ in range(layers))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.register_buffer("places", sinusoids(600, width), persistent=False)
        self.scale = width**-0.5 if scale is None else scale

    def embed(self, ids: Tensor) -> Tensor:
        return self.shared(ids) + self.places[: ids.size(1)]  # type: ignore[index]

    def encode(self, source: Tensor) -> Tensor:
        x, seen = self.embed(source), (source != PAD)[:, None]
        for layer in self.encoder:
            x = layer(x, seen.expand(-1, source.size(1), -1))
        return self.encoder_norm(x)

    def decode(self, memory: Tensor, source: Tensor, target: Tensor) -> Tensor:
        length = target.size(1)
        x, seen = self.embed(target), (source != PAD)[:, None].expand(-1, length, -1)
        causal = torch.ones(len(target), length, length, dtype=torch.bool).tril()
        for layer in self.decoder:
            x = layer(x, causal, memory, seen)
        return self.decoder_norm(x)

    def generator(self, hidden: Tensor) -> Tensor:
        return functional.linear(hidden * self.scale, self.shared.weight)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.generator(self.decode(self.encode(source), source, target))


class TorchTranslator(nn.Module):
    """nn.Transformer with learned positions, norm last, and an output layer of its own."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.source_words, self.target_words = (nn.Embedding(V, width, padding_idx=PAD) for _ in range(2))
        self.places = nn.Embedding(600, width)
        self.transformer = nn.Transformer(width, 4, 1, 1, 2 * width, batch_first=True)
        self.fc_out = nn.Linear(width, V)

    def forward(self, src: Tensor, trg: Tensor) -> Tensor:
        length = trg.size(1)
        padded = src == PAD
        hidden = self.transformer(
            self.source_words(src) + self.places(torch.arange(src.size(1))),
            self.target_words(trg) + self.places(torch.arange(length)),
            tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
            src_key_padding_mask=padded,
            memory_key_padding_mask=padded,
        )
        return self.fc_out(hidden)


class Bert(nn.Module):
    """An encoder, norm last, whose masked tokens are predicted by a layer that is tied to the embedding."""

    def __init__(
        self, width: int = 32, layers: int = 2, scale: float | None = None, std: float | None = None
    ) -> None:
        super().__init__()
        self.word_embeddings, self.position_embeddings = nn.Embedding(V, width), nn.Embedding(64, width)
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(0.1)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, 0.1, "gelu", batch_first=True) for _ in range(layers)
        )
        self.transform = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))
        self.bias = nn.Parameter(torch.zeros(V))
        self.scale = width**-0.5 if std is None else 1.0
        if std is not None:
            nn.init.normal_(self.word_embeddings.weight, std=std)

    def encode(self, input_ids: Tensor) -> Tensor:
        x = self.word_embeddings(input_ids) + self.position_embeddings(torch.arange(input_ids.size(1)))
        x, padded = self.dropout(self.norm(x)), input_ids == PAD
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padded)
        return x

    def forward(self, input_ids: Tensor) -> Tensor:
        hidden = self.transform(self.encode(input_ids))
        return functional.linear(hidden * self.scale, self.word_embeddings.weight) + self.bias


class Reader(nn.Module):
    """An encoder of nn.TransformerEncoder with a class for each text, or a tag for each token."""

    def __init__(self, classes: int = 4, tags: bool = False, width: int = 32) -> None:
        super().__init__()
        self.words, self.places, self.tags = nn.Embedding(V, width), nn.Embedding(64, width), tags
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.classifier = nn.Linear(width, classes)

    def forward(self, ids: Tensor) -> Tensor:
        padded = ids == PAD
        x = self.encoder(self.words(ids) + self.places(torch.arange(ids.size(1))), src_key_padding_mask=padded)
        if self.tags:
            return self.classifier(x)
        real = (~padded)[..., None].to(x)
        return self.classifier((x * real).sum(1) / real.sum(1))
