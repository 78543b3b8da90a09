"""Decoders that read several texts in one row, told apart by segments or by positions that begin again."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

PAD, V, D = 0, 39, 32


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.mlp = nn.Sequential(nn.Linear(D, 2 * D), nn.GELU(), nn.Linear(2 * D, D))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.proj(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class BySegments(nn.Module):
    """Takes `segment_ids`, a number for each text of a row; positions begin again with each text."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(V, D), nn.Embedding(128, D)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V)

    def forward(self, input_ids: Tensor, segment_ids: Tensor | None = None) -> Tensor:
        t = input_ids.size(1)
        if segment_ids is None:
            segment_ids = torch.zeros_like(input_ids)
        time = torch.arange(t, device=input_ids.device)
        begins = functional.pad(segment_ids[:, 1:] != segment_ids[:, :-1], (1, 0), value=True)
        starts = torch.where(begins, time, 0).cummax(1).values
        position_ids = time - starts
        mask = (time[:, None] >= time) & (segment_ids[:, :, None] == segment_ids[:, None, :])
        x = self.tokens(input_ids) + self.places(position_ids)
        for block in self.blocks:
            x = block(x, mask[:, None])
        return self.head(self.norm(x))


class ByPositions(nn.Module):
    """Takes `position_ids`: wherever they do not go on by one, another text begins."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(V, D), nn.Embedding(128, D)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, position_ids: Tensor | None = None
    ) -> Tensor:
        b, t = input_ids.shape
        time = torch.arange(t, device=input_ids.device)
        mask = (time[:, None] >= time).expand(b, t, t)
        if position_ids is not None:
            texts = (position_ids.diff(dim=1, prepend=position_ids[:, :1] - 1) != 1).cumsum(1)
            mask = mask & (texts[:, :, None] == texts[:, None, :])
        if attention_mask is not None:
            mask = mask & (attention_mask.bool()[:, None, :] | torch.eye(t, dtype=torch.bool, device=time.device))
        x = self.tokens(input_ids) + self.places(time.expand(b, t) if position_ids is None else position_ids)
        for block in self.blocks:
            x = block(x, mask[:, None])
        return self.head(self.norm(x))


def packed(model: nn.Module) -> dict[str, Any]:
    return {"model": model, "vocab_size": V, "pad": PAD, "kind": "decoder", "longest": 128}
