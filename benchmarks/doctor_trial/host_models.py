"""Further models into which defects can be planted, in styles of code other than those of `planted`.

`Annotated` has encode, decode and a generator, masks as arguments, and heads that are modules; `Small` is a
decoder with its loss inside; `Marian` is a model of transformers that is patched. `HOSTS` holds all of them, with
the defects of the model itself that each can have.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from specimens import peers
from specimens.planted import (
    PAD,
    VOCABULARY,
    Defects,
    TorchTransformer,
    Trainer,
    Transformer,
    as_defects,
    changed_memory,
    look_ahead_mask,
    read_source,
    scores,
    start_large,
    variant_of,
)

WIDTH, HEADS, LAYERS, LONGEST = 24, 3, 2, 200


class Head(nn.Module):
    """One head with projections of its own."""

    def __init__(self, defects: Defects, ahead: bool) -> None:
        super().__init__()
        width = WIDTH // HEADS
        self.query, self.key, self.value = (nn.Linear(WIDTH, width) for _ in range(3))
        self.defects, self.ahead = defects, ahead
        self.scale = {None: width**-0.5, "missing": 1.0, "inverted": width**0.5}[
            variant_of(defects, "unusual-scale")
        ]
        if 7 in defects:
            self.scale = WIDTH**-0.5

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        energy = torch.matmul(self.query(query), self.key(key).transpose(-2, -1)) * self.scale
        way = variant_of(self.defects, "sees-the-future") if self.ahead else None
        if mask is not None and way == "bool-added":
            energy = energy + mask
        elif mask is not None and way == "multiplied":
            energy = energy * mask
        elif mask is not None and way != "late":
            energy = energy.masked_fill(mask == 0, -1e-12 if 17 in self.defects else -1e9)
        weights = functional.softmax(energy, dim=1 if "softmax-axis" in self.defects else 2)
        if mask is not None and way == "late":
            weights = weights * mask
        return torch.matmul(weights, self.value(value))


class Heads(nn.Module):
    def __init__(self, defects: Defects, ahead: bool = False) -> None:
        super().__init__()
        self.heads = nn.ModuleList(Head(defects, ahead) for _ in range(HEADS))
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        return self.out(torch.cat([head(query, key, value, mask) for head in self.heads], -1))


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gain, self.shift = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return self.gain * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + self.shift


class Residual(nn.Module):
    def __init__(self, defects: Defects) -> None:
        super().__init__()
        self.norm, self.dropout, self.defects = Norm(), nn.Dropout(0.1), defects

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if 10 in self.defects:
            return self.dropout(x + sublayer(self.norm(x)))
        return x + self.dropout(sublayer(self.norm(x)))


class Layer(nn.Module):
    """Layer of the encoder, or of the decoder with an attention on the memory."""

    def __init__(self, defects: Defects, decodes: bool) -> None:
        super().__init__()
        self.own, self.cross = Heads(defects, decodes), Heads(defects) if decodes else None
        self.feed = nn.Sequential(nn.Linear(WIDTH, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, WIDTH))
        self.residuals = nn.ModuleList(Residual(defects) for _ in range(3 if decodes else 2))

    def forward(self, x: Tensor, mask: Tensor, memory: Tensor | None = None, seen: Tensor | None = None) -> Tensor:
        x = self.residuals[0](x, lambda x: self.own(x, x, x, mask))
        if self.cross is not None and memory is not None:
            x = self.residuals[1](x, lambda x: self.cross(x, memory, memory, seen))
        return self.residuals[-1](x, self.feed)


class Positions(nn.Module):
    """Table of sinusoids in a buffer, or learned positions."""

    def __init__(self, defects: Defects) -> None:
        super().__init__()
        position, half = torch.arange(LONGEST)[:, None], torch.arange(0, WIDTH, 2)
        twice = 2 if "wrong-sinusoids" in defects else 1
        rates = torch.exp(half * twice * -(math.log(10_000.0) / WIDTH))
        table = torch.zeros(LONGEST, WIDTH)
        table[:, 0::2], table[:, 1::2] = torch.sin(position * rates), torch.cos(position * rates)
        self.register_buffer("table", torch.zeros_like(table) if "no-positions" in defects else table)
        self.learned = nn.Embedding(50, WIDTH) if 16 in defects else None
        self.first = 0

    def forward(self, x: Tensor) -> Tensor:
        if self.learned is not None:
            return x + self.learned(torch.arange(x.size(1)))
        return x + self.table[self.first : self.first + x.size(1)]


class Annotated(nn.Module):
    """Encoder-decoder with encode, decode and a generator; masks are arguments of forward."""

    def __init__(self, *defects: int | str) -> None:
        super().__init__()
        self.defects = as_defects(defects)
        self.source_embedding, self.target_embedding = (nn.Embedding(VOCABULARY, WIDTH) for _ in range(2))
        self.source_positions, self.target_positions = Positions(self.defects), Positions(self.defects)
        self.encoder = nn.ModuleList(Layer(self.defects, decodes=False) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(Layer(self.defects, decodes=True) for _ in range(LAYERS))
        self.norms = nn.ModuleList(Norm() for _ in range(2))
        self.generator = nn.Linear(WIDTH, VOCABULARY)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        start_large(self.generator, self.defects)

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor, target_mask: Tensor) -> Tensor:
        return self.decode(self.encode(source, source_mask), source_mask, target, target_mask)

    def encode(self, source: Tensor, mask: Tensor) -> Tensor:
        if variant_of(self.defects, "no-source-padding-mask") == "encoder":
            mask = torch.ones_like(mask)
        x = self.source_positions(self.source_embedding(read_source(source, self.defects)) * math.sqrt(WIDTH))
        for layer in self.encoder:
            x = layer(x, mask)
        return changed_memory(self.norms[0](x), self.defects)

    def decode(self, memory: Tensor, seen: Tensor, target: Tensor, mask: Tensor) -> Tensor:
        if variant_of(self.defects, "no-source-padding-mask") == "cross":
            seen = torch.ones_like(seen)
        x = self.target_positions(self.target_embedding(target) * math.sqrt(WIDTH))
        for layer in self.decoder:
            x = layer(x, mask, memory, seen)
        return scores(self.norms[1](x), self.generator, self.target_embedding.weight, self.defects)

    def masks(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return masks of the source (B, 1, S) and of the target (B, T, T), True where a key is seen."""
        real = (source != PAD)[:, None, :]
        allowed = look_ahead_mask(target.size(1), variant_of(self.defects, "sees-the-future"))
        if 3 in self.defects:
            return real, (target != PAD)[:, :, None] & allowed
        return torch.ones_like(real) if 9 in self.defects else real, (target != PAD)[:, None, :] & allowed


class AnnotatedTrainer(Trainer):
    def logits(self, source: Tensor, inputs: Tensor) -> Tensor:
        return self.model(source, inputs, *self.model.masks(source, inputs))


class Block(nn.Module):
    """Block of a decoder-only model: one linear layer for queries, keys and values."""

    def __init__(self, defects: Defects) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.dropout, self.defects = nn.Dropout(0.1), defects
        self.register_buffer("mask", torch.tril(torch.ones(LONGEST, LONGEST)).view(1, 1, LONGEST, LONGEST))

    def attend(self, x: Tensor) -> Tensor:
        b, t, _ = x.size()
        q, k, v = (
            part.view(b, t, HEADS, WIDTH // HEADS).transpose(1, 2) for part in self.qkv(x).split(WIDTH, dim=2)
        )
        way = variant_of(self.defects, "sees-the-future")
        wide = 7 in self.defects
        scale = {None: 1 / math.sqrt(WIDTH if wide else k.size(-1)), "missing": 1.0, "inverted": k.size(-1) ** 0.5}
        energy = (q @ k.transpose(-2, -1)) * scale[variant_of(self.defects, "unusual-scale")]
        mask = self.mask[:, :, :t, :t]
        if way in ("inverted", "axis", "wide", "absent"):
            mask = look_ahead_mask(t, way).float()[None, None]
        if way == "bool-added":
            energy = energy + mask
        elif way == "multiplied":
            energy = energy * mask
        elif way != "late":
            energy = energy.masked_fill(mask == 0, -1e-12 if 17 in self.defects else float("-inf"))
        weights = functional.softmax(energy, dim=-2 if "softmax-axis" in self.defects else -1)
        weights = weights * mask if way == "late" else weights
        if "depends-on-the-batch" in self.defects:
            return self.out((weights @ v).transpose(0, 2).reshape(b, t, WIDTH))
        return self.out((weights @ v).transpose(1, 2).contiguous().view(b, t, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        if 10 in self.defects:
            x = self.dropout(x + self.attend(self.norms[0](x)))
            return self.dropout(x + self.feed(self.norms[1](x)))
        x = x + self.dropout(self.attend(self.norms[0](x)))
        return x + self.dropout(self.feed(self.norms[1](x)))


class Small(nn.Module):
    """Decoder-only model with learned positions, tied embeddings and its loss inside."""

    def __init__(self, *defects: int | str) -> None:
        super().__init__()
        self.defects = as_defects(defects)
        self.block_size = LONGEST
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(50 if 16 in self.defects else LONGEST, WIDTH)
        if 16 in self.defects:
            del self.block_size
        self.blocks = nn.ModuleList(Block(self.defects) for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.apply(self.initialise)
        if not {"first-loss-too-high", "tied-logits-scaled"} & self.defects:
            self.head.weight = self.tokens.weight
        if variant_of(self.defects, "target-not-shifted") == "tied":
            nn.init.normal_(self.tokens.weight, std=3.0)  # as sure of each token as 1 makes a wide model
        start_large(self.head, self.defects)

    @staticmethod
    def initialise(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        t = ids.size(1)
        if 16 not in self.defects and t > self.block_size:
            raise ValueError(f"{t} tokens are more than block_size = {self.block_size}")
        x = self.tokens(ids)
        if "no-positions" not in self.defects:
            x = x + self.positions(torch.arange(t, device=ids.device))
        for index, block in enumerate(self.blocks):
            x = block(x)
            if index == 0 and "parameters-without-gradient" in self.defects:
                x = x.detach()
        logits = scores(self.norm(x), self.head, self.tokens.weight, self.defects)
        if targets is None:
            return logits, None
        return logits, functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)


class SmallTrainer(Trainer):
    """Training of `Small`: one row holds the target between its marks."""

    def collate(self, sources: list[list[int]], targets: list[list[int]]) -> tuple[Tensor]:
        return (super().collate(sources, targets)[1],)

    def step(self, target: Tensor) -> float:
        return super().step(target, target)

    def logits(self, source: Tensor, inputs: Tensor) -> Tensor:
        return self.model(inputs)[0]


class Marian(nn.Module):
    """Model of transformers, patched as people patch it."""

    def __init__(self, *defects: int | str) -> None:
        super().__init__()
        self.defects = as_defects(defects)
        self.inner = patched(peers.make("marian-scaled"), self.defects)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        real, everything = (source != PAD).long(), torch.ones_like(source)
        lacking = "both" if 9 in self.defects else variant_of(self.defects, "no-source-padding-mask")
        memory = self.inner.model.encoder(
            input_ids=read_source(source, self.defects),
            attention_mask=everything if lacking in ("both", "encoder") else real,
        ).last_hidden_state
        memory = changed_memory(memory, self.defects)
        seen = everything if lacking in ("both", "cross") else real
        hidden = self.inner.model.decoder(
            input_ids=target, encoder_hidden_states=memory, encoder_attention_mask=seen, use_cache=False
        ).last_hidden_state
        return scores(hidden, self.inner.lm_head, self.inner.model.shared.weight, self.defects)


@torch.no_grad()
def patched(model: Any, defects: Defects) -> Any:
    """Plant the defects inside a Marian model, and return it."""
    wide = 7 in defects
    way = variant_of(defects, "unusual-scale")
    for module in model.modules():
        if hasattr(module, "scaling"):
            width = module.head_dim
            module.scaling = width**-0.5 if not wide else (width * module.num_heads) ** -0.5
            module.scaling = {None: module.scaling, "missing": 1.0, "inverted": width**0.5}[way]
    for side in (model.model.encoder, model.model.decoder):
        table = side.embed_positions.weight
        if "no-positions" in defects:
            table.zero_()
        if "wrong-sinusoids" in defects:
            rates = 10_000 ** (-2 * torch.arange(0, table.size(1), 2) / table.size(1))
            angles = torch.arange(len(table))[:, None] * rates
            table.copy_(torch.cat([angles.sin(), angles.cos()], 1))
    if variant_of(defects, "sees-the-future") is not None:
        for layer in model.model.decoder.layers:
            layer.self_attn.forward = without_mask(layer.self_attn, variant_of(defects, "sees-the-future") or "")
    if "first-loss-too-high" in defects:
        model.lm_head.weight = nn.Parameter(torch.randn_like(model.lm_head.weight) * 5)
    return model


def without_mask(attention: Any, way: str) -> Callable[..., Any]:
    """Return the forward of a self-attention with another look-ahead mask."""
    forward = attention.forward

    def changed(hidden_states: Tensor, **options: Any) -> Any:
        length = hidden_states.size(1)
        hidden = torch.zeros(length, length, dtype=hidden_states.dtype)
        hidden = hidden.masked_fill(~look_ahead_mask(length, way), torch.finfo(hidden_states.dtype).min)
        attention.is_causal = False
        return forward(hidden_states=hidden_states, **{**options, "attention_mask": hidden[None, None]})

    return changed


# of this package, not beside the file: held-out defects import an edited copy of it from another folder
TABLES = tomllib.loads(files("benchmarks.doctor_trial").joinpath("host_defects.toml").read_text(encoding="utf-8"))
TRAINING: tuple[str, ...] = tuple(TABLES["training"])


def defects_of(host: str) -> tuple[str, ...]:
    """Return the defects of the model itself that can be planted in a host."""
    groups = [name for group in TABLES["hosts"][host]["groups"] for name in TABLES[group]]
    own = TABLES["hosts"][host]
    return tuple(name for name in groups if not name.startswith(tuple(own["without"]))) + tuple(own["own"])


# By host: the model, its trainer, and the defects that can be planted in the model.
HOSTS: Mapping[str, tuple[Callable[..., nn.Module], type[Trainer], tuple[str, ...]]] = {
    "einsum": (Transformer, Trainer, defects_of("einsum")),
    "annotated": (Annotated, AnnotatedTrainer, defects_of("annotated")),
    "nn.Transformer": (TorchTransformer, Trainer, defects_of("nn.Transformer")),
    "decoder": (Small, SmallTrainer, defects_of("decoder")),
    "marian": (Marian, Trainer, defects_of("marian")),
}
