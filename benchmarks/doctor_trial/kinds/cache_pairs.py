"""Encoder-decoders with caches of both attentions, and decoding by an object of its own."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

PAD, BOS, EOS, VOCABULARY, WIDTH, HEADS = 0, 1, 2, 33, 32, 4


def split(x: Tensor) -> Tensor:
    return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)


class T5Attention(nn.Module):
    """Without scale; the bias of relative positions is that of the first layer."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        nn.init.normal_(self.q.weight, std=(WIDTH * WIDTH // HEADS) ** -0.5)

    def forward(self, x: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
        scores = split(self.q(x)) @ k.mT + bias
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return split(self.k(x)), split(self.v(x))


class T5Layer(nn.Module):
    def __init__(self, cross: bool) -> None:
        super().__init__()
        self.attention, self.norms = T5Attention(), nn.ModuleList(nn.RMSNorm(WIDTH) for _ in range(3))
        self.wi, self.wo = nn.Linear(WIDTH, 64, bias=False), nn.Linear(64, WIDTH, bias=False)
        self.cross = T5Attention() if cross else None

    def feed_forward(self, x: Tensor) -> Tensor:
        return x + self.wo(functional.relu(self.wi(self.norms[2](x))))


class SmallT5(nn.Module):
    """forward(input_ids, decoder_input_ids, past_key_values=None, use_cache=False) -> dictionary.

    The cache has (keys, values, keys of the source, values of the source) for each layer.
    """

    def __init__(self, layers: int = 2, buckets: int = 16) -> None:
        super().__init__()
        self.shared, self.buckets = nn.Embedding(VOCABULARY, WIDTH, padding_idx=PAD), buckets
        self.encoder_bias, self.decoder_bias = nn.Embedding(2 * buckets, HEADS), nn.Embedding(buckets, HEADS)
        self.encoder = nn.ModuleList(T5Layer(cross=False) for _ in range(layers))
        self.decoder = nn.ModuleList(T5Layer(cross=True) for _ in range(layers))
        self.norm, self.lm_head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def relative(self, queries: Tensor, keys: Tensor, table: nn.Embedding) -> Tensor:
        """Return (H, T, S): near distances have a bias each, those beyond the buckets the last one."""
        distance = queries[:, None] - keys
        bucket = distance.abs().clamp(max=self.buckets - 1)
        if table.num_embeddings > self.buckets:
            bucket = bucket + (distance < 0) * self.buckets
        return table(bucket).permute(2, 0, 1)

    def encode(self, input_ids: Tensor, hidden: Tensor) -> Tensor:
        x, places = self.shared(input_ids), torch.arange(input_ids.size(1))
        bias = self.relative(places, places, self.encoder_bias) + hidden
        for layer in self.encoder:
            h = layer.norms[0](x)
            x = layer.feed_forward(x + layer.attention(h, *layer.attention.keys_values(h), bias))
        return x

    def forward(
        self, input_ids: Tensor, decoder_input_ids: Tensor, past_key_values: Any = None, use_cache: bool = False
    ) -> dict[str, Any]:
        hidden = torch.where(input_ids == PAD, -1e9, 0.0)[:, None, None]
        past = 0 if past_key_values is None else past_key_values[0][0].size(2)
        memory = self.encode(input_ids, hidden) if past_key_values is None else None
        keys = torch.arange(past + decoder_input_ids.size(1))
        queries = keys[past:]
        bias = self.relative(queries, keys, self.decoder_bias)
        bias = bias.masked_fill(keys > queries[:, None], -1e9)
        x, present = self.shared(decoder_input_ids), []
        for number, layer in enumerate(self.decoder):
            h = layer.norms[0](x)
            k, v = layer.attention.keys_values(h)
            if past_key_values is None:
                of_source = layer.cross.keys_values(memory)
            else:
                k, v = torch.cat([past_key_values[number][0], k], 2), torch.cat([past_key_values[number][1], v], 2)
                of_source = past_key_values[number][2:]
            x = x + layer.attention(h, k, v, bias)
            x = x + layer.cross(layer.norms[1](x), *of_source, hidden)
            x = layer.feed_forward(x)
            present.append((k, v, *of_source))
        logits = self.lm_head(self.norm(x))
        return {"logits": logits, "past_key_values": tuple(present) if use_cache else None}


def sinusoids(length: int, start: int = 0) -> Tensor:
    angles = torch.arange(start, start + length)[:, None] * torch.exp(
        torch.arange(0, WIDTH, 2) * (-math.log(10000.0) / WIDTH)
    )
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)


class Translator(nn.Module):
    """nn.Transformer after the paper; it is trained on whole targets, and `Decoding` goes step by step."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH, padding_idx=PAD)
        self.transformer = nn.Transformer(
            WIDTH, HEADS, 2, 2, dim_feedforward=64, dropout=0.1, activation="gelu", batch_first=True
        )
        self.generator = nn.Linear(WIDTH, VOCABULARY)

    def embed(self, ids: Tensor, start: int = 0) -> Tensor:
        return self.tokens(ids) * WIDTH**0.5 + sinusoids(ids.size(1), start)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        ahead = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool).triu(1)
        x = self.transformer(
            self.embed(src),
            self.embed(tgt),
            tgt_mask=ahead,
            src_key_padding_mask=src == PAD,
            memory_key_padding_mask=src == PAD,
        )
        return self.generator(x)


class Decoding:
    """Decodes one token of each row a step; layer by layer it keeps the keys and values of both attentions."""

    def __init__(self, model: Translator, src: Tensor) -> None:
        self.model, self.offset = model, 0
        self.layers = model.transformer.decoder.layers
        self.hidden = (src == PAD)[:, None, None]
        memory = model.transformer.encoder(model.embed(src), src_key_padding_mask=src == PAD)
        self.cross = [self.projected(layer.multihead_attn, memory)[1:] for layer in self.layers]
        self.keys: list[Tensor] = [memory.new_zeros(len(src), HEADS, 0, WIDTH // HEADS) for _ in self.layers]
        self.values: list[Tensor] = [*self.keys]

    @staticmethod
    def projected(attention: nn.MultiheadAttention, x: Tensor) -> tuple[Tensor, ...]:
        q, k, v = functional.linear(x, attention.in_proj_weight, attention.in_proj_bias).chunk(3, -1)
        return split(q), split(k), split(v)

    def attend(
        self, attention: nn.MultiheadAttention, q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None = None
    ) -> Tensor:
        scores = q @ k.mT / (WIDTH // HEADS) ** 0.5
        if hidden is not None:
            scores = scores.masked_fill(hidden, -torch.inf)
        return attention.out_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    def step(self, tokens: Tensor) -> Tensor:
        x = self.model.embed(tokens[:, None], self.offset)
        self.offset += 1
        for number, layer in enumerate(self.layers):
            q, k, v = self.projected(layer.self_attn, x)
            self.keys[number] = torch.cat([self.keys[number], k], 2)
            self.values[number] = torch.cat([self.values[number], v], 2)
            x = layer.norm1(x + self.attend(layer.self_attn, q, self.keys[number], self.values[number]))
            q = self.projected(layer.multihead_attn, x)[0]
            x = layer.norm2(x + self.attend(layer.multihead_attn, q, *self.cross[number], self.hidden))
            x = layer.norm3(x + layer.linear2(functional.gelu(layer.linear1(x))))
        x = self.model.transformer.decoder.norm(x)
        return self.model.generator(x)[:, 0]

    def reorder(self, rows: Tensor) -> None:
        self.keys = [k[rows] for k in self.keys]
        self.values = [v[rows] for v in self.values]
        self.cross = [(k[rows], v[rows]) for k, v in self.cross]
        self.hidden = self.hidden[rows]


def pair(model: nn.Module, **options: Any) -> dict[str, Any]:
    return {"model": model, "vocab_size": VOCABULARY, "pad": PAD, "bos": BOS, "eos": EOS, **options}


def stepped() -> dict[str, Any]:
    model = Translator()
    return pair(model, stepper=lambda src: Decoding(model, src))
