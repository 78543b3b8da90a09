"""Attentions written in different ways leave the same record."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
import torch

from transformer_doctor.attention_tracer import AttentionTracer, StreamsKnown
from transformer_doctor.checks.masks import _hidden_scores

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 5, 7, 11


@pytest.mark.parametrize("style", ["masked_fill", "where", "where on weights"])
def test_an_attention_is_recorded_with_its_sizes_scale_and_mask(style: str) -> None:
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
    assert torch.equal(_hidden_scores(attention), hidden.expand(BATCH, HEADS, QUERIES, KEYS))
    assert attention.value is not None
    assert torch.equal(attention.value, value)


def odd_calls(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor of x's shape from calls that are hard to trace."""
    y = torch.einsum("btd->btd", x) + torch.einsum("btd->bt", [x]).unsqueeze(-1)
    y = torch.einsum("btd,de,e->btd", y, torch.eye(WIDTH), torch.ones(WIDTH))
    out = torch.empty(BATCH, QUERIES, QUERIES)
    torch.bmm(y, y.mT, out=out)
    torch.softmax(out, -1, out=out)
    y = torch.add(y, x, alpha=2).index_add_(0, torch.tensor([0]), x[:1]).clamp_(-9, 9)
    y = y + torch.func.vmap(lambda row: (row @ row.mT).softmax(-1) @ row)(y)
    y = y + torch.jit.script(scripted)(y)
    y = y.as_subclass(Subclass) @ torch.eye(WIDTH)
    y = torch.nn.functional.embedding(input=torch.zeros(BATCH, QUERIES, dtype=torch.int64), weight=y[0]) + y
    return torch.stack([(row @ row.mT).softmax(dim=-1) @ row for row in y]).as_subclass(torch.Tensor)


class Subclass(torch.Tensor):
    """A subclass of tensors that changes no operation."""


def scripted(x: torch.Tensor) -> torch.Tensor:
    return torch.matmul(torch.softmax(torch.matmul(x, x.transpose(1, 2)), -1), x)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("leaves", [True, False])
def test_tracing_changes_no_result_and_raises_no_error(leaves: bool) -> None:
    x = torch.randn(BATCH, QUERIES, WIDTH)
    expected = odd_calls(x)
    with AttentionTracer({"source": torch.ones(BATCH, QUERIES, dtype=torch.int64)}, leaves=leaves):
        assert torch.equal(odd_calls(x), expected)


@pytest.mark.parametrize("order", ["heads first", "einsum with dots", "rotated", "added"])
def test_attentions_written_in_other_orders_leave_the_same_record(order: str) -> None:
    query, key, value = (torch.randn(BATCH, HEADS, length, WIDTH) for length in (QUERIES, KEYS, KEYS))
    rows = torch.zeros(BATCH, 1, dtype=torch.int64)
    plain = (query @ key.mT * WIDTH**-0.5).softmax(-1)
    with AttentionTracer({"source": rows}) as tracer:
        if order == "heads first":
            scores = torch.einsum("bhqe,bhke->hbqk", query, key) * WIDTH**-0.5
            torch.einsum("hbqk,bhke->bqhe", scores.softmax(-1), value)
        elif order == "einsum with dots":
            scores = torch.einsum("...qe,...ke->...qk", query * WIDTH**-0.25, key * WIDTH**-0.25)
            torch.einsum("...qk,...ke->...qe", scores.float().softmax(-1).to(value), value)
        elif order == "rotated":
            scores = (query @ key.mT).permute(2, 3, 0, 1).mul(WIDTH**-0.5).softmax(1).permute(2, 3, 0, 1)
            scores @ value
        else:
            scores = torch.baddbmm(torch.zeros(()), query.flatten(0, 1), key.flatten(0, 1).mT, alpha=WIDTH**-0.5)
            scores.sub(scores.amax(-1, keepdim=True)).exp().div(scores.exp().sum(-1, keepdim=True))
            weights = (scores - scores.amax(-1, keepdim=True)).exp()
            (weights / weights.sum(-1, keepdim=True)) @ value.flatten(0, 1)
    (attention,) = tracer.attentions
    assert (attention.queries, attention.keys, attention.width, attention.heads) == (QUERIES, KEYS, WIDTH, HEADS)
    assert attention.softmax_axis == "keys"
    assert attention.factor == pytest.approx(WIDTH**-0.5)
    assert attention.used is not None
    used = attention.used.transpose(0, 1) if order == "heads first" else attention.used
    torch.testing.assert_close(used.reshape(plain.shape).float(), plain)


@pytest.mark.parametrize("part", ["streams_only", "leaves"])
def test_a_partial_trace_equals_that_part_of_a_full_trace_and_records_no_attention(part: str) -> None:
    ids, embedding = torch.randint(9, (BATCH, QUERIES)), torch.nn.Embedding(9, WIDTH)
    project = torch.nn.Linear(WIDTH, WIDTH)
    ends: list[dict[str, bool]] = []

    def run(**options: bool) -> AttentionTracer:
        with AttentionTracer({"source": ids}, **options) as tracer, suppress(StreamsKnown):
            x = project(embedding(ids) + 1)
            ((x @ x.mT).softmax(-1) @ x).sum()
            ends.append(options)
        return tracer

    full, traced = run(), run(**{part: True})
    assert len(full.attentions) == 1
    assert not traced.attentions
    assert ({part: True} in ends) == (part == "leaves")  # nothing is computed once the streams are known
    if part == "streams_only":
        assert torch.equal(traced.streams["source"], full.streams["source"])
    else:
        assert traced.leaf("source") is not None
