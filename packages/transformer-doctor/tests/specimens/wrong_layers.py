"""A decoder with rotary positions, grouped heads and residual connections, with faults inside of its layers."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn import functional

from specimens.planted import PAD, VOCABULARY

D, H, GROUPS, LAYERS = 32, 4, 2, 3
E = D // H


class Layer(nn.Module):
    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.norm, self.second_norm = nn.LayerNorm(D), nn.LayerNorm(D)
        self.q, self.o = nn.Linear(D, D), nn.Linear(D, D)
        self.k, self.v = (nn.Linear(D, D * GROUPS // H) for _ in range(2))
        self.up, self.down = nn.Linear(D, 2 * D), nn.Linear(2 * D, D)
        if way != "without positions":
            sign = 1 if way == "inverted frequencies" else -1
            self.register_buffer("inv_freq", 1e4 ** (sign * torch.arange(0, E, 2) / E))

    def rotate(self, x: Tensor) -> Tensor:
        """Turn x (B, H, T, E) by its positions."""
        axis = 1 if self.way == "rotary over heads" else 2
        angles = torch.arange(x.size(axis))[:, None] * self.inv_freq
        angles = angles if axis == 2 else angles[:, None]
        even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
        cos, sin = angles.cos(), angles.sin()
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)

    def attend(self, x: Tensor, real: Tensor) -> Tensor:
        heads = 2 if self.way == "other number of heads" else H
        q = self.q(x).unflatten(-1, (heads, -1)).transpose(1, 2)
        k, v = (layer(x).unflatten(-1, (-1, q.size(-1))).transpose(1, 2) for layer in (self.k, self.v))
        if self.way == "one head for all":
            q, k = q[:, :1].expand_as(q), k[:, :1].expand_as(k)
        if self.way not in ("without positions", "other number of heads"):
            q, k = self.rotate(q), self.rotate(k)
        times = heads // k.size(1)
        tile_keys, tile_values = self.way == "tiled", self.way in ("tiled", "values tiled")
        k, v = (
            part.repeat(1, times, 1, 1) if tiled else part.repeat_interleave(times, 1)
            for part, tiled in ((k, tile_keys), (v, tile_values))
        )
        time = torch.arange(x.size(1))
        distance = time[:, None] - time
        visible = {"own token hidden": distance > 0, "window": (distance >= 0) & (distance < 3)}.get(
            self.way, distance >= 0
        )
        if self.way == "last real key hidden":
            real = functional.pad(real[:, 1:], (0, 1))
        visible = visible & real[:, None, None]
        visible = visible | (~visible.any(-1, keepdim=True) & (time == 0))
        scores = (q @ k.mT * q.size(-1) ** -0.5).masked_fill(~visible, torch.finfo(x.dtype).min)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    def feed_forward(self, x: Tensor) -> Tensor:
        return self.down(functional.relu(self.up(x)) if self.way == "other activation" else gelu(self.up(x)))

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        if self.way == "after the sum":
            x = self.norm(x + self.attend(x, real))
            return self.second_norm(x + self.feed_forward(x))
        if self.way == "parallel":
            return x + self.attend(self.norm(x), real) + self.feed_forward(self.second_norm(x))
        attended = self.attend(self.norm(x), real)
        x = attended if self.way == "no residual around attention" else x + attended
        out = self.feed_forward((self.norm if self.way == "norm used twice" else self.second_norm)(x))
        return out if self.way == "no residual around feed-forward" else x + out


def gelu(x: Tensor) -> Tensor:
    return x * 0.5 * (1 + torch.erf(x / 2**0.5))


class WrongLayers(nn.Module):
    """Layers in one of the ways that `Layer` and `forward` name; sound in any other."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.config = SimpleNamespace(
            num_heads=H, num_kv_heads=GROUPS, activation="gelu", norm_eps=1e-6 if way == "other epsilon" else 1e-5
        )
        self.embedding = nn.Embedding(VOCABULARY, D, padding_idx=PAD)
        self.layers = nn.ModuleList(Layer(way) for _ in range(LAYERS))
        self.output = nn.Linear(D, VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        layers = {"a layer less": self.layers[:-1], "first layer each time": [self.layers[0]] * LAYERS}
        for layer in layers.get(self.way, self.layers):
            x = layer(x, ids != PAD)
        return self.output(x)
