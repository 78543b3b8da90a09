"""Sound designs that look unusual: shared layers, gates of zero, experts, sinks, latents, prefixes."""

from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

PAD, V, D, H = 0, 33, 32, 4
Prediction = namedtuple("Prediction", ["scores", "aux_loss"])


class SelfAttention(nn.Module):
    """Causal attention with options that models use singly."""

    def __init__(
        self, *, sinks: bool = False, qk_norm: bool = False, temperature: bool = False, latent: int = 0, kv: int = H
    ) -> None:
        super().__init__()
        self.kv, self.qk_norm = kv, qk_norm
        self.q = nn.Linear(D, D, bias=False)
        narrow = kv * D // H
        if latent:
            self.k = nn.Sequential(nn.Linear(D, latent, bias=False), nn.Linear(latent, narrow, bias=False))
            self.v = nn.Sequential(nn.Linear(D, latent, bias=False), nn.Linear(latent, narrow, bias=False))
        else:
            self.k, self.v = nn.Linear(D, narrow, bias=False), nn.Linear(D, narrow, bias=False)
        self.sinks = nn.Parameter(torch.zeros(H)) if sinks else None
        self.temperature = nn.Parameter(torch.full((H, 1, 1), math.log(4.0))) if temperature else None
        self.o = nn.Linear(D, D)

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (-1, D // H)).transpose(1, 2) for part in (self.q(x), self.k(x), self.v(x)))
        k, v = (part.repeat_interleave(H // self.kv, 1) for part in (k, v))
        scale = (D // H) ** -0.5
        if self.qk_norm:
            q, k = functional.normalize(q, dim=-1), functional.normalize(k, dim=-1)
            scale = 8.0
        scores = q @ k.mT * (scale if self.temperature is None else self.temperature.exp())
        scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        if self.sinks is not None:
            sink = self.sinks[None, :, None, None].expand(*scores.shape[:3], 1)
            weights = torch.cat([scores, sink], -1).softmax(-1)[..., :-1]
        else:
            weights = scores.softmax(-1)
        return self.o((weights @ v).transpose(1, 2).flatten(2))


def feed_forward() -> nn.Module:
    return nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))


def later(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).triu(1)


class Writer(nn.Module):
    """A decoder; `style` names how residuals and norms are put together."""

    def __init__(self, style: str = "pre", layers: int = 2, **attention: Any) -> None:
        super().__init__()
        self.style = style
        self.words, self.places = nn.Embedding(V, D), nn.Embedding(128, D)
        count = 1 if style == "shared" else layers
        self.attentions = nn.ModuleList(SelfAttention(**attention) for _ in range(count))
        self.feeds = nn.ModuleList(feed_forward() for _ in range(count))
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(2 * count))
        self.last, self.head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)
        self.depth, first = layers, {"rezero": 0.0, "layerscale": 1e-4}.get(style)
        self.gates = None
        if first is not None:
            self.gates = nn.ParameterList(nn.Parameter(torch.full((D,), first)) for _ in range(2 * count))
        self.alpha = (2 * layers) ** 0.25 if style == "deepnorm" else 1.0
        if style == "deepnorm":
            for linear in [m for feed in self.feeds for m in feed if isinstance(m, nn.Linear)]:
                nn.init.xavier_normal_(linear.weight, gain=(8 * layers) ** -0.25)

    def forward(self, ids: Tensor) -> Tensor:
        hidden = later(ids.size(1)).to(ids.device)
        x = self.words(ids) + self.places(torch.arange(ids.size(1), device=ids.device))
        for number in range(self.depth):
            n = number % len(self.attentions)
            attention, feed, (a, b) = self.attentions[n], self.feeds[n], self.norms[2 * n : 2 * n + 2]
            if self.style in ("post", "deepnorm"):
                x = a(self.alpha * x + attention(x, hidden))
                x = b(self.alpha * x + feed(x))
            elif self.style == "parallel":
                normed = a(x)
                x = x + attention(normed, hidden) + feed(normed)
            elif self.style == "sandwich":
                x = x + a(attention(functional.layer_norm(x, (D,)), hidden))
                x = x + b(feed(functional.layer_norm(x, (D,))))
            else:
                first, second = (1.0, 1.0) if self.gates is None else self.gates[2 * n : 2 * n + 2]
                x = x + first * attention(a(x), hidden)
                x = x + second * feed(b(x))
        return self.head(self.last(x))


class Experts(nn.Module):
    """A token goes to the two best of four experts, and an expert that all share."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(D, 4, bias=False)
        self.experts, self.shared = nn.ModuleList(feed_forward() for _ in range(4)), feed_forward()

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = self.router(x).softmax(-1).topk(2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        mixed = self.shared(x)
        for number, expert in enumerate(self.experts):
            share = (weights * (chosen == number)).sum(-1, keepdim=True)
            mixed = mixed + share * expert(x)
        return mixed


class MixtureWriter(Writer):
    """Returns a named tuple: scores, and the loss that balances its experts."""

    def __init__(self) -> None:
        super().__init__()
        self.feeds = nn.ModuleList(Experts() for _ in range(2))

    def forward(self, ids: Tensor) -> Prediction:  # type: ignore[override]
        scores = super().forward(ids)
        return Prediction(scores, sum(feed.router.weight.square().mean() for feed in self.feeds))


class SeveralTokens(Writer):
    """Predicts three tokens ahead in training, and in evaluation the next one."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = nn.ModuleList(nn.Linear(D, D) for _ in range(2))

    def forward(self, ids: Tensor) -> dict[str, Any]:  # type: ignore[override]
        kept: list[Tensor] = []
        handle = self.last.register_forward_hook(lambda *call: kept.append(call[2]))
        scores = super().forward(ids)
        handle.remove()
        return {"logits": scores, "further": [self.head(kept[0] + part(kept[0])) for part in self.ahead]}


class Smeared(Writer):
    """Embeds each token together with the two before it, as hashed n-grams."""

    def __init__(self) -> None:
        super().__init__()
        self.grams = nn.Embedding(64, D)

    def forward(self, ids: Tensor) -> Tensor:
        one, two = functional.pad(ids, (1, -1)), functional.pad(ids, (2, -2)) if ids.size(1) > 1 else ids * 0
        grams = self.grams((ids * 7 + one * 13 + two * 29) % 64)
        handle = self.words.register_forward_hook(lambda module, args, output: output + grams)
        try:
            return super().forward(ids)
        finally:
            handle.remove()


class Capped(Writer):
    """Caps its scores, and says so in its configuration."""

    def __init__(self, cap: float = 15.0) -> None:
        super().__init__()
        self.config = SimpleNamespace(vocab_size=V, final_logit_softcapping=cap, unused_field="kept for old files")

    def forward(self, ids: Tensor) -> Tensor:
        cap = self.config.final_logit_softcapping
        return cap * torch.tanh(super().forward(ids) / cap)


class TimeFirst(nn.Module):
    """Ids of shape (T, B), nn.TransformerEncoder with a causal mask, scores (T, B, V)."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(V, D), nn.Parameter(torch.randn(128, 1, D) * 0.1)
        layer = nn.TransformerEncoderLayer(D, H, 2 * D, dropout=0.2, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.decoder = nn.Linear(D, V)

    def forward(self, src: Tensor) -> Tensor:
        x = self.words(src) * math.sqrt(D) + self.places[: len(src)]
        return self.decoder(self.encoder(x, later(len(src)).to(src.device)))


class Reader(nn.Module):
    """An encoder of texts of any length; `mixing` names how tokens are mixed."""

    def __init__(self, mixing: str, *, classes: int = 0) -> None:
        super().__init__()
        self.mixing, self.classes = mixing, classes
        self.words, self.places = nn.Embedding(V, D, padding_idx=PAD), nn.Embedding(128, D)
        names = {"kernels": ("query", "key", "value", "out"), "averages": ("out",)}
        names["perceiver"] = (*names["kernels"], "back")
        for name in names.get(mixing, ()):
            self.add_module(name, nn.Linear(D, D))
        if mixing == "perceiver":
            self.latents = nn.Parameter(torch.randn(6, D))
        if mixing == "convolution":
            self.conv = nn.Conv1d(D, D, 5, padding=2)
        self.feed, self.norm = feed_forward(), nn.LayerNorm(D)
        self.head = nn.Linear(D, classes or V)

    def forward(self, ids: Tensor) -> Tensor:
        real = (ids != PAD)[..., None]
        x = self.words(ids) + self.places(torch.arange(ids.size(1), device=ids.device))
        x = x + getattr(self, self.mixing)(x, real)
        x = x + self.feed(self.norm(x))
        if self.classes:
            x = (x * real).sum(1) / real.sum(1)
        return self.head(x)

    def kernels(self, x: Tensor, real: Tensor) -> Tensor:
        """Attention with positive features, as in Performers."""
        q, k = functional.softplus(self.query(x)), functional.softplus(self.key(x)) * real
        mixed = q @ (k.mT @ self.value(x))
        return self.out(mixed / (q * k.sum(1, keepdim=True)).sum(-1, keepdim=True))

    def perceiver(self, x: Tensor, real: Tensor) -> Tensor:
        """Latents read the text, and the text reads the latents."""
        hidden = ~real.mT
        scores = (self.latents @ self.key(x).mT * D**-0.5).masked_fill(hidden, -torch.inf)
        read = scores.softmax(-1) @ self.value(x)
        return self.out((self.query(x) @ self.back(read).mT * D**-0.5).softmax(-1) @ read)

    def convolution(self, x: Tensor, real: Tensor) -> Tensor:
        """Characters are mixed by a convolution that sees zeros at padding, as past the ends of a text."""
        return self.conv((x * real).mT).mT.relu()

    def averages(self, x: Tensor, real: Tensor) -> Tensor:
        """Each token gets the mean of the text, and the cumulative mean from the left."""
        x = x * real
        mean = x.sum(1, keepdim=True) / real.sum(1, keepdim=True)
        left = x.cumsum(1) / real.cumsum(1).clamp(min=1)
        return self.out(mean + left)


class WithClassToken(nn.Module):
    """A learned token in front of the text gives the class; positions begin behind it."""

    def __init__(self, classes: int = 5) -> None:
        super().__init__()
        self.cls = nn.Parameter(torch.randn(1, 1, D))
        self.words, self.places = nn.Embedding(V, D), nn.Embedding(129, D)
        layer = nn.TransformerEncoderLayer(D, H, 2 * D, dropout=0.1, batch_first=True, activation="gelu")
        self.encoder, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(D, classes)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids) + self.places(torch.arange(1, ids.size(1) + 1, device=ids.device))
        x = torch.cat([(self.cls + self.places.weight[0]).expand(len(x), -1, -1), x], 1)
        padded = functional.pad(ids == PAD, (1, 0), value=False)
        return self.head(self.encoder(x, src_key_padding_mask=padded)[:, 0])


class FixedLength(nn.Module):
    """A token mixer for texts of exactly 24 tokens, in the style of MLP-Mixer, for classes."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.max_length = 24
        self.words = nn.Embedding(V, D)
        self.across = nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.Linear(48, 24))
        self.feed, self.norm, self.head = feed_forward(), nn.LayerNorm(D), nn.Linear(D, classes)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids)
        x = x + self.across(self.norm(x).mT).mT
        x = x + self.feed(x)
        return self.head(x.mean(1))


class BatchNormed(nn.Module):
    """An encoder whose norms are batch norms, which use their running statistics in evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(V, D), nn.Embedding(128, D)
        self.attention = nn.MultiheadAttention(D, H, batch_first=True)
        self.feed, self.head = feed_forward(), nn.Linear(D, V)
        self.norms = nn.ModuleList(nn.BatchNorm1d(D) for _ in range(2))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.size(1), device=ids.device))
        mixed = self.attention(x, x, x, key_padding_mask=ids == PAD, need_weights=False)[0]
        x = self.norms[0]((x + mixed).mT).mT
        return self.head(self.norms[1]((x + self.feed(x)).mT).mT)


@dataclass
class PrefixBatch:
    input_ids: Tensor
    prefix_length: int = 0


class PrefixWriter(nn.Module):
    """A prefix may be seen from everywhere; without one it is causal. Every second layer has a window."""

    def __init__(self, layers: int = 2, window: int = 6) -> None:
        super().__init__()
        self.window = window
        self.words, self.places = nn.Embedding(V, D), nn.Embedding(128, D)
        self.attentions = nn.ModuleList(nn.MultiheadAttention(D, H, batch_first=True) for _ in range(layers))
        self.feeds, self.norms = (
            nn.ModuleList(feed_forward() for _ in range(layers)),
            nn.ModuleList(nn.LayerNorm(D) for _ in range(layers)),
        )
        self.head = nn.Linear(D, V)

    def forward(self, input_ids: Tensor, prefix_length: int = 0) -> Tensor:
        time = torch.arange(input_ids.size(1), device=input_ids.device)
        hidden = (time[:, None] < time) & (time >= prefix_length)
        far = time[:, None] - time >= self.window
        x = self.words(input_ids) + self.places(time)
        for number, (attention, feed, norm) in enumerate(zip(self.attentions, self.feeds, self.norms, strict=True)):
            normed = norm(x)
            mask = hidden | far if number % 2 else hidden
            x = x + attention(normed, normed, normed, attn_mask=mask, need_weights=False)[0]
            x = x + feed(x)
        return self.head(x)


class Parallel(nn.Module):
    """A translator that is not autoregressive: queries are positions alone, and all targets are said at once."""

    def __init__(self) -> None:
        super().__init__()
        self.max_length = 128
        self.words, self.places = nn.Embedding(V, D, padding_idx=PAD), nn.Embedding(self.max_length, D)
        self.read = nn.MultiheadAttention(D, H, batch_first=True)
        self.cross = nn.MultiheadAttention(D, H, batch_first=True)
        self.feed, self.head = feed_forward(), nn.Linear(D, V)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        padded = source == PAD
        places = self.places(torch.arange(max(source.size(1), target.size(1)), device=source.device))
        memory = self.words(source) + places[: source.size(1)]
        memory = memory + self.read(memory, memory, memory, key_padding_mask=padded, need_weights=False)[0]
        x = places[: target.size(1)].expand(len(target), -1, -1)
        x = x + self.cross(x, memory, memory, key_padding_mask=padded, need_weights=False)[0]
        return self.head(x + self.feed(x))


def writes(model: nn.Module, **more: Any) -> dict[str, Any]:
    return {"model": model, "vocab_size": V, "pad": PAD, "kind": "decoder", "longest": 128, **more}


def reads(model: nn.Module, **more: Any) -> dict[str, Any]:
    return {"model": model, "vocab_size": V, "pad": PAD, "kind": "encoder", "longest": 128, **more}
