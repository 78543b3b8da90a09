"""A decoder with a KV cache is compared with teacher forcing, and its wrong positions are named."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from specimens import unusual_models
from specimens.planted import VOCABULARY
from transformer_doctor import examine


class Cached:
    """Decoder with a KV cache that reads one token a step; `position` gives the position of step t."""

    def __init__(self, model: unusual_models.NanoGPT, position: Callable[[int], int], table: Tensor | None) -> None:
        self.model, self.position, self.table = model, position, table
        self.cache: list[list[tuple[Tensor, Tensor]]] = [[] for _ in model.blocks]
        self.steps = 0

    @torch.no_grad()
    def step(self, tokens: Tensor) -> Tensor:
        index = self.position(self.steps)
        row = self.model.wpe.weight[index] if self.table is None else self.table[index]
        x = self.model.wte(tokens) + row
        self.steps += 1
        for block, layer_cache in zip(self.model.blocks, self.cache, strict=True):
            parts = block.c_attn(block.ln_1(x)).chunk(3, -1)
            query, key, value = (part.unflatten(-1, (unusual_models.H, -1)) for part in parts)
            layer_cache.append((key, value))
            keys, values = (torch.stack([pair[side] for pair in layer_cache], 2) for side in (0, 1))
            weights = (query[:, :, None] @ keys.transpose(-1, -2) / keys.size(-1) ** 0.5).softmax(-1)
            x = x + block.c_proj((weights @ values).flatten(1))
            x = x + block.mlp(block.ln_2(x))
        return self.model.lm_head(self.model.ln_f(x))


class PositionTable(unusual_models.NanoGPT):
    """Model whose positions are a fixed table instead of an embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.randn(unusual_models.LONGEST, unusual_models.D))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.wte(ids) + self.table[: ids.size(1)]
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def with_large_weights(model: unusual_models.NanoGPT) -> unusual_models.NanoGPT:
    """Initialize the weights large enough for positions to change the scores."""
    for weight in model.parameters():
        if weight.dim() > 1:
            nn.init.normal_(weight, std=0.3)
    return model


@pytest.mark.parametrize("make", [unusual_models.NanoGPT, PositionTable])
@pytest.mark.parametrize(
    ("position", "fault"),
    [
        (lambda step: step, None),
        (lambda step: step + 1, "one too high"),
        (lambda step: step + (step > 0), "one too high from the second step on"),
        (lambda step: max(step - 1, 0), "one too low"),
        (lambda step: 0, "that of the first token at every step"),
        (lambda step: 3 * step, ""),
    ],
)
def test_wrong_positions_of_a_cache_are_named(
    make: type[unusual_models.NanoGPT], position: Callable[[int], int], fault: str | None
) -> None:
    torch.manual_seed(3)
    model = with_large_weights(make())
    table = model.table if isinstance(model, PositionTable) else None
    report = examine(
        model, vocab_size=VOCABULARY, kind="decoder", longest=64,
        stepper=lambda ids: Cached(model, position, table),
    )  # fmt: skip
    assert report.names == ([] if fault is None else ["cache-differs"])
    if fault is not None:
        evidence = report.findings[0].evidence
        named = evidence.endswith(f"teacher forcing with wrong positions: {fault}")
        assert named if fault else evidence.startswith("at step 2 ") and "wrong positions" not in evidence
