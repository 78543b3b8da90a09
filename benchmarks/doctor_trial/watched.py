"""Measure what watching costs: updates of a language model with and without `watch`, in turn in one process."""

from __future__ import annotations

import statistics
import time
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from transformer_doctor import watch


class LanguageModel(nn.Module):
    """Causal Transformer in torch's own layers."""

    def __init__(self, vocabulary: int, width: int, layers: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(512, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 4 * width, 0.1, batch_first=True) for _ in range(layers)
        )
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the scores of ids (B, T) as (B, T, V)."""
        hidden = self.words(ids) + self.places(torch.arange(ids.size(1)))
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1))
        for layer in self.layers:
            hidden = layer(hidden, src_mask=mask, is_causal=True)
        scores: Tensor = self.head(hidden)
        return scores


def watching_cost(updates: int, *, width: int = 256, vocabulary: int = 8_000, rows: int = 32) -> dict[str, Any]:
    """Return the processor time of updates of rows of 64 tokens, without and with a watch."""
    trainings = []
    for watches in (False, True):
        torch.manual_seed(1)
        model = LanguageModel(vocabulary, width, 4)
        optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
        trainings.append((model, optimizer, watch(model, optimizer) if watches else nullcontext()))
    seconds: list[list[float]] = [[], []]
    with trainings[0][2], trainings[1][2]:
        for update in range(updates):
            ids = torch.randint(3, vocabulary, (rows, 65))
            for side in (0, 1) if update % 2 else (1, 0):
                model, optimizer, _ = trainings[side]
                start = time.process_time()
                optimizer.zero_grad()
                functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).backward()
                optimizer.step()
                seconds[side].append(time.process_time() - start)
    plain, watched = seconds
    differences = [one - other for one, other in zip(watched, plain, strict=True)]
    return {
        "updates": updates,
        "tokens": rows * 64,
        "median seconds": statistics.median(plain),
        "cost": sum(watched) / sum(plain) - 1,
        "median cost": statistics.median(differences) / statistics.median(plain),
    }
