"""Decoders that keep a state of fixed size: convolutions, selective states, retention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY, WIDTH, INNER, KERNEL, STATE, HEADS = 31, 24, 32, 4, 6, 4


@dataclass
class MambaCache:
    """For each layer the last inputs of its convolution (B, C, kernel - 1), and its state (B, C, N)."""

    conv_states: list[Tensor]
    ssm_states: list[Tensor]


class MambaMixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.in_proj, self.out_proj = nn.Linear(WIDTH, 2 * INNER, bias=False), nn.Linear(INNER, WIDTH, bias=False)
        self.conv1d = nn.Conv1d(INNER, INNER, KERNEL, groups=INNER)
        self.x_proj, self.dt_proj = nn.Linear(INNER, 4 + 2 * STATE, bias=False), nn.Linear(4, INNER)
        nn.init.normal_(self.x_proj.weight, std=0.5)
        self.A_log = nn.Parameter(torch.arange(1.0, STATE + 1).log().repeat(INNER, 1))
        self.D = nn.Parameter(torch.ones(INNER))
        with torch.no_grad():  # steps from 0.001 to 0.1, through the inverse of softplus
            steps = torch.logspace(-3, -1, INNER)
            self.dt_proj.bias.copy_(steps + torch.log(-torch.expm1(-steps)))

    def forward(self, x: Tensor, conv_state: Tensor, ssm_state: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, gate = self.in_proj(x).mT.chunk(2, 1)
        padded = torch.cat([conv_state, x], -1)
        conv_state = padded[..., -(KERNEL - 1) :]
        x = functional.silu(self.conv1d(padded))
        dt, B, C = self.x_proj(x.mT).split([4, STATE, STATE], -1)
        dt = functional.softplus(self.dt_proj(dt))
        decay = torch.exp(dt[..., None] * -self.A_log.exp())
        drive = dt[..., None] * B[:, :, None] * x.mT[..., None]
        outputs = []
        for step in range(x.size(-1)):
            ssm_state = decay[:, step] * ssm_state + drive[:, step]
            outputs.append((ssm_state * C[:, step, None]).sum(-1))
        y = torch.stack(outputs, 1) + self.D * x.mT
        return self.out_proj(y * functional.silu(gate.mT)), conv_state, ssm_state


class Mamba(nn.Module):
    """forward(input_ids, cache_params=None, use_cache=False) -> dictionary of logits and cache_params."""

    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(VOCABULARY, WIDTH)
        self.mixers = nn.ModuleList(MambaMixer() for _ in range(layers))
        self.norms = nn.ModuleList(nn.RMSNorm(WIDTH) for _ in range(layers + 1))
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(
        self, input_ids: Tensor, cache_params: MambaCache | None = None, use_cache: bool = False
    ) -> dict[str, Any]:
        x, rows = self.embeddings(input_ids), input_ids.size(0)
        after = MambaCache([], [])
        for number, mixer in enumerate(self.mixers):
            if cache_params is None:
                states = x.new_zeros(rows, INNER, KERNEL - 1), x.new_zeros(rows, INNER, STATE)
            else:
                states = cache_params.conv_states[number], cache_params.ssm_states[number]
            mixed, conv_state, ssm_state = mixer(self.norms[number](x), *states)
            after.conv_states.append(conv_state)
            after.ssm_states.append(ssm_state)
            x = x + mixed
        return {"logits": self.lm_head(self.norms[-1](x)), "cache_params": after if use_cache else None}

    def reorder_cache(self, cache_params: MambaCache, beam_idx: Tensor) -> MambaCache:
        return MambaCache(
            [state.index_select(0, beam_idx) for state in cache_params.conv_states],
            [state.index_select(0, beam_idx) for state in cache_params.ssm_states],
        )


class Retention(nn.Module):
    """RetNet: all positions at once from weights that decay with the distance, and a state for what was before."""

    def __init__(self) -> None:
        super().__init__()
        self.qkvg, self.out = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.norm = nn.LayerNorm(WIDTH // HEADS)
        self.register_buffer("gamma", 1 - 2.0 ** -torch.arange(2, HEADS + 2), persistent=False)

    def forward(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        length = x.size(1)
        q, k, v, gate = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkvg(x).chunk(4, -1))
        k = k / k.size(-1) ** 0.5
        age = torch.arange(length)[:, None] - torch.arange(length)
        weights = torch.where(age >= 0, self.gamma[:, None, None] ** age.clamp(min=0), 0.0)
        since = self.gamma[:, None] ** torch.arange(1, length + 1)
        y = (q @ k.mT * weights) @ v + (q @ state) * since[..., None]
        left = self.gamma[:, None] ** torch.arange(length - 1, -1, -1)
        state = state * since[:, -1, None, None] + (k * left[..., None]).mT @ v
        y = (self.norm(y) * functional.silu(gate)).transpose(1, 2).flatten(2)
        return self.out(y), state


class RetNet(nn.Module):
    """forward(tokens, state=None) -> (logits, state), a tensor (B, H, E, E) a layer."""

    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Retention() for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2 * layers))
        self.mlps = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 48), nn.GELU(), nn.Linear(48, WIDTH)) for _ in range(layers)
        )
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Tensor, state: list[Tensor] | None = None) -> tuple[Tensor, list[Tensor]]:
        x, size = self.embed(tokens), WIDTH // HEADS
        after = []
        for number, layer in enumerate(self.layers):
            before = x.new_zeros(len(tokens), HEADS, size, size) if state is None else state[number]
            mixed, now = layer(self.norms[2 * number](x), before)
            after.append(now)
            x = x + mixed
            x = x + self.mlps[number](self.norms[2 * number + 1](x))
        return self.head(x), after


class ShortConvolution(nn.Module):
    """Gated convolutions of unlike lengths; the cache has the inputs that each still needs."""

    def __init__(self, kernels: tuple[int, ...] = (3, 7)) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.project = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in kernels)
        self.convolutions = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, size, groups=WIDTH) for size in kernels)
        self.out = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in kernels)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in kernels)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids: Tensor, cache: dict[str, Tensor] | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        x, kept = self.embed(ids), {}
        for number, convolution in enumerate(self.convolutions):
            a, b, c = self.project[number](self.norms[number](x)).mT.chunk(3, 1)
            need = convolution.kernel_size[0] - 1
            before = a.new_zeros(len(ids), WIDTH, need) if cache is None else cache[f"layer_{number}"]
            inputs = torch.cat([before, a * b], -1)
            kept[f"layer_{number}"] = inputs[..., inputs.size(-1) - need :]
            x = x + self.out[number]((convolution(inputs) * c).mT)
        return self.head(x), kept


def decoder(model: nn.Module, **options: Any) -> dict[str, Any]:
    return {"model": model, "vocab_size": VOCABULARY, "kind": "decoder", **options}
