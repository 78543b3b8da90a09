"""Attentions written in different ways leave the same record."""

from __future__ import annotations

import math

import pytest
import torch

from manyheads.doctor.attention_tracer import AttentionTracer

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 7, 11


@pytest.mark.parametrize("style", ["masked_fill", "where", "where on weights"])
def test_an_attention_is_recorded_with_its_sizes_scale_and_mask(style: str) -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(BATCH, HEADS, length, WIDTH) for length in (QUERIES, KEYS, KEYS))
    hidden = torch.zeros(QUERIES, KEYS, dtype=torch.bool)
    hidden[:, -2:] = True
    with AttentionTracer() as tracer:
        scores = query @ key.transpose(-1, -2) * WIDTH**-0.5
        if style == "where":
            scores = torch.where(hidden, -math.inf, scores)
        else:
            scores = scores.masked_fill(hidden, -math.inf)
        weights = scores.softmax(-1)
        if style == "where on weights":  # changes nothing: these weights are zero
            weights = torch.where(hidden, 0.0, weights)
        weights @ value
    (attention,) = tracer.attentions
    assert (attention.queries, attention.keys, attention.width, attention.heads) == (QUERIES, KEYS, WIDTH, HEADS)
    assert attention.factor == pytest.approx(WIDTH**-0.5)
    assert attention.fills == [-math.inf]
    assert attention.hidden is not None
    assert torch.equal(attention.hidden, hidden)
    assert attention.value is value
