"""Models in styles of public code: nanoGPT and muP initialization, caches on self, fixed sizes, fixed precision."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from specimens.planted import PAD, VOCABULARY, Transformer

D, H, LONGEST = 16, 2, 64


class Block(nn.Module):
    """Pre-norm causal block with one projection of queries, keys and values."""

    def __init__(self, *, causal: bool) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.c_attn, self.c_proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.mlp = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))
        self.causal = causal

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (H, D // H)).transpose(1, 2) for part in self.c_attn(self.ln_1(x)).chunk(3, -1)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(D // H)
        if self.causal:
            later = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -torch.inf)
        x = x + self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.ln_2(x))


class NanoGPT(nn.Module):
    """A decoder with learned positions; `zero` names the parts that are initialized with zeros."""

    def __init__(self, *zero: str, causal: bool = True, positions: bool = True, layers: int = 2) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, D), nn.Embedding(LONGEST, D)
        self.blocks = nn.ModuleList(Block(causal=causal) for _ in range(layers))
        self.ln_f, self.lm_head = nn.LayerNorm(D), nn.Linear(D, VOCABULARY, bias=False)
        self.block_size, self.positions = LONGEST, positions
        for weight in self.parameters():
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.02)
        if "head" in zero:
            nn.init.zeros_(self.lm_head.weight)
        for block in self.blocks:
            if "projections" in zero:
                nn.init.zeros_(block.c_proj.weight)
                nn.init.zeros_(block.mlp[2].weight)
        if "tied" in zero:
            self.lm_head.weight = self.wte.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.wte(ids)
        if self.positions:
            x = x + self.wpe(torch.arange(ids.size(1)))
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class ReZero(NanoGPT):
    """Residual branches with gates that are initialized with zeros."""

    def __init__(self, *, causal: bool = True) -> None:
        super().__init__(causal=causal)
        self.gates = nn.ParameterList(nn.Parameter(torch.zeros(())) for _ in self.blocks)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.wte(ids) + self.wpe(torch.arange(ids.size(1)))
        for block, gate in zip(self.blocks, self.gates, strict=True):
            x = x + gate * (block(x) - x)
        return self.lm_head(self.ln_f(x))


class Stateful(NanoGPT):
    """Keeps state of its calls in a dict or an attribute, and changes its next scores by it."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where, self.cache = where, None
        self.table: dict[str, int] = {}

    def forward(self, ids: Tensor) -> Tensor:
        scores = super().forward(ids)
        if self.where == "dict":
            self.table["calls"] = self.table.get("calls", 0) + 1
            return scores * self.table["calls"]
        # raises an error for another shape at the next call
        self.cache = scores.detach() if self.cache is None else self.cache + scores.detach()
        return self.cache


class FixedPrecision(nn.Module):
    """Runs only in the precision of its weights, because its code names the dtype."""

    def __init__(self, dtype: torch.dtype, **options: Any) -> None:
        super().__init__()
        self.model, self.dtype = NanoGPT(**options).to(dtype), dtype

    def forward(self, ids: Tensor) -> Tensor:
        gain = torch.ones(D, VOCABULARY, dtype=self.dtype)
        scores = self.model(ids)
        return scores + 0 * (self.model.wte(ids) @ gain)


class FixedLength(NanoGPT):
    """Accepts only texts of 16 tokens: the whole table of positions is added."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.table = nn.Parameter(torch.randn(16, D) * 0.02)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.wte(ids) + self.table
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class ShortLimit(Transformer):
    """Accepts at most eight tokens without stating this limit."""

    def __init__(self, *defects: int) -> None:
        super().__init__(*defects)
        self.table = nn.Parameter(torch.randn(8, D))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        self.table[torch.arange(max(source.size(1), target.size(1)))]
        return super().forward(source, target)


class SqueezesBatch(NanoGPT):
    """Fails for a batch of one row, because it squeezes the batch axis."""

    def forward(self, ids: Tensor) -> Tensor:
        return torch.stack(list(super().forward(ids).squeeze(0)))[:, : ids.size(1), :]


class OneRow(NanoGPT):
    """Accepts batches of one row only."""

    def forward(self, ids: Tensor) -> Tensor:
        if len(ids) != 1:
            raise RuntimeError("one row, please")
        return super().forward(ids)


class ShiftsInput(NanoGPT):
    """Shifts its input by one position: the score at t does not depend on the token at t."""

    def forward(self, ids: Tensor) -> Tensor:
        x = functional.pad(self.wte(ids), (0, 0, 1, 0))[:, :-1] + self.wpe(torch.arange(ids.size(1)))
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class NeverPadding(NanoGPT):
    """Never predicts padding: its score is -inf, or very low."""

    def __init__(self, fill: float, **options: Any) -> None:
        super().__init__(**options)
        self.fill = fill

    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids).index_fill(-1, torch.tensor([PAD]), self.fill)


class Probabilities(NanoGPT):
    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids).softmax(-1)


class ConstantScores(NanoGPT):
    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids * 0)
