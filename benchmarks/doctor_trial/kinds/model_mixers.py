"""Causal mixers without softmax: linear attention in chunks, a selective scan, gated convolutions, time mixing."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

PAD, V, D = 0, 45, 32


class ChunkedLinear(nn.Module):
    """Linear attention, in parallel inside of chunks and recurrent between them."""

    def __init__(self, heads: int = 4, chunk: int = 16) -> None:
        super().__init__()
        self.heads, self.chunk = heads, chunk
        self.qkv, self.out = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        q, k = functional.elu(q) + 1, functional.elu(k) + 1
        state = x.new_zeros(b, self.heads, q.size(-1), v.size(-1))
        norm = x.new_zeros(b, self.heads, q.size(-1))
        outputs = []
        for start in range(0, t, self.chunk):
            qc, kc, vc = (part[:, :, start : start + self.chunk] for part in (q, k, v))
            inside = (qc @ kc.mT).tril()
            total = norm[:, :, None] + kc.cumsum(2)
            mixed = inside @ vc + qc @ state
            outputs.append(mixed / (qc * total).sum(-1, keepdim=True).clamp(min=1e-6))
            state = state + kc.mT @ vc
            norm = norm + kc.sum(2)
        return self.out(torch.cat(outputs, 2).transpose(1, 2).flatten(2))


class SelectiveScan(nn.Module):
    """A state-space mixer in the style of Mamba: a short causal convolution, then a gated scan."""

    def __init__(self, states: int = 8, kernel: int = 4, segment: int = 16) -> None:
        super().__init__()
        self.states, self.segment = states, segment
        self.in_proj = nn.Linear(D, 2 * D, bias=False)
        self.conv1d = nn.Conv1d(D, D, kernel, groups=D, padding=kernel - 1)
        self.x_proj = nn.Linear(D, 2 * states + 1, bias=False)
        self.dt = nn.Parameter(torch.linspace(-4.0, -1.0, D))
        self.a_log = nn.Parameter(torch.arange(1, states + 1).float().log().repeat(D, 1))
        self.skip = nn.Parameter(torch.ones(D))
        self.out_proj = nn.Linear(D, D, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        t = x.size(1)
        x, gate = self.in_proj(x).chunk(2, -1)
        x = self.conv1d(x.mT)[..., :t].mT
        x = functional.silu(x)
        b, c, step = self.x_proj(x).split([self.states, self.states, 1], -1)
        step = functional.softplus(step + self.dt)
        state = x.new_zeros(len(x), D, self.states)
        parts = []
        for start in range(0, t, self.segment):
            stop = start + self.segment
            part, state = self.scan(state, *(tensor[:, start:stop] for tensor in (x, b, c, step)))
            parts.append(part)
        return self.out_proj((torch.cat(parts, 1) + x * self.skip) * functional.silu(gate))

    def scan(self, state: Tensor, x: Tensor, b: Tensor, c: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        decay = (step[..., None] * -self.a_log.exp()).exp()
        added = (step * x)[..., None] * b[:, :, None]
        outputs = []
        for i in range(x.size(1)):
            state = decay[:, i] * state + added[:, i]
            outputs.append((state * c[:, i, None]).sum(-1))
        return torch.stack(outputs, 1), state


class GatedConv(nn.Module):
    """Two causal convolutions, the second dilated, whose product is normalised for each token."""

    def __init__(self, kernel: int = 3) -> None:
        super().__init__()
        self.kernel = kernel
        self.value, self.gate = nn.Conv1d(D, D, kernel), nn.Conv1d(D, D, kernel, dilation=2)
        self.norm = nn.LayerNorm(D)
        self.out = nn.Linear(D, D)

    def forward(self, x: Tensor) -> Tensor:
        x = x.mT
        value = self.value(functional.pad(x, (self.kernel - 1, 0)))
        gate = self.gate(functional.pad(x, (2 * (self.kernel - 1), 0)))
        mixed = value * gate.sigmoid()
        return self.out(self.norm(mixed.mT))


class TimeMix(nn.Module):
    """Mixing in the style of RWKV: the token before is mixed in, and a running average weighs keys."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Parameter(torch.rand(3, D))
        self.decay, self.first = nn.Parameter(torch.rand(D)), nn.Parameter(torch.rand(D))
        self.key, self.value, self.receptance, self.output = (nn.Linear(D, D, bias=False) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        before = functional.pad(x, (0, 0, 1, -1))
        k, v, r = (x * m + before * (1 - m) for m in self.mix)
        k, v, r = self.key(k).clamp(max=20).exp(), self.value(v), self.receptance(r).sigmoid()
        decay, first = (-self.decay.exp()).exp(), self.first.exp()
        top = bottom = torch.zeros_like(x[:, 0])
        outputs = []
        for i in range(x.size(1)):
            outputs.append((top + first * k[:, i] * v[:, i]) / (bottom + first * k[:, i] + 1e-9))
            top, bottom = decay * top + k[:, i] * v[:, i], decay * bottom + k[:, i]
        return self.output(r * torch.stack(outputs, 1))


class Retention(nn.Module):
    """Retention: products decay with the distance, and each head is normalised for itself."""

    def __init__(self, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.qkvg, self.out = nn.Linear(D, 4 * D, bias=False), nn.Linear(D, D, bias=False)
        self.register_buffer("gamma", 1 - 2.0 ** (-3 - torch.arange(heads)), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v, g = self.qkvg(x).unflatten(-1, (4, self.heads, -1)).permute(2, 0, 3, 1, 4)
        time = torch.arange(x.size(1), device=x.device)
        distance = time[:, None] - time
        decay = self.gamma.to(x)[:, None, None] ** distance.clamp(min=0) * (distance >= 0)
        mixed = functional.layer_norm((q @ k.mT * q.size(-1) ** -0.5 * decay) @ v, (v.size(-1),))
        return self.out((mixed * functional.silu(g)).transpose(1, 2).flatten(2))


class Recurrent(nn.Module):
    """A GRU in the place of attention."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(D, D, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.gru(x)[0]


class Mixer(nn.Module):
    def __init__(self, *kinds: type[nn.Module]) -> None:
        super().__init__()
        self.embed = nn.Embedding(V, D)
        self.mixers = nn.ModuleList(kind() for kind in kinds)
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(2 * len(kinds)))
        self.feeds = nn.ModuleList(
            nn.Sequential(nn.Linear(D, 2 * D), nn.SiLU(), nn.Linear(2 * D, D)) for _ in kinds
        )
        self.head = nn.Linear(D, V)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        for number, (mixer, feed) in enumerate(zip(self.mixers, self.feeds, strict=True)):
            x = x + mixer(self.norms[2 * number](x))
            x = x + feed(self.norms[2 * number + 1](x))
        return self.head(x)


def language_model(*kinds: type[nn.Module], longest: int = 96) -> dict[str, Any]:
    """Return the arguments of a language model with a layer of each kind."""
    return {"model": Mixer(*kinds), "vocab_size": V, "pad": PAD, "kind": "decoder", "longest": longest}
