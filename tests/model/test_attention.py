"""Attention against a plain loop, torch's own kernel and torch's own module."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from manyheads.model import attention
from manyheads.model.attention import MultiHeadAttention, attend, attention_weights
from manyheads.model.masks import causal_mask

B, H, T, S, E = 2, 3, 7, 11, 5
D = H * E


def inputs(queries: int = T, keys: int = S) -> tuple[Tensor, Tensor, Tensor]:
    """A query, key and value whose gradients are wanted: (B, H, T, E), twice (B, H, S, E), float64."""
    sizes = (queries, keys, keys)
    return tuple(2 * torch.randn(B, H, size, E, dtype=torch.float64) for size in sizes)  # type: ignore[return-value]


def padding(keys: int = S) -> Tensor:
    """A mask that hides two places of the first row, one of them in the middle: (B, 1, 1, S)."""
    mask = torch.ones(B, 1, 1, keys, dtype=torch.bool)
    mask[0, 0, 0, [2, keys - 1]] = False
    return mask


def loop(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Equation 1, one head and one query at a time, over the visible keys alone."""
    heads, queries, keys = query.size(1), query.size(2), key.size(2)
    shown = torch.ones(B, heads, queries, keys, dtype=torch.bool)
    if mask is not None:
        shown = mask.expand_as(shown)
    output = []
    for b in range(B):
        for h in range(heads):
            for t in range(queries):
                seen = [s for s in range(keys) if bool(shown[b, h, t, s])]
                powers = [torch.exp(torch.dot(query[b, h, t], key[b, h, s]) / math.sqrt(E)) for s in seen]
                values = [value[b, h, s] * power for s, power in zip(seen, powers, strict=True)]
                output.append(torch.stack(values).sum(0) / torch.stack(powers).sum())
    return torch.stack(output).view(B, heads, queries, E)


MASKS = {
    "none": (T, S, None),
    "padding": (T, S, padding()),
    "causal": (S, S, causal_mask(S)),
    "causal and padding": (S, S, causal_mask(S) & padding()),
    "one query": (1, S, padding()),
    "a mask a head": (T, S, torch.rand(B, H, T, S, generator=torch.Generator().manual_seed(1)) < 0.7),
    "beyond the short ones": (2, attention.FEW_KEYS + 3, padding(attention.FEW_KEYS + 3)),
}


@pytest.fixture(params=MASKS.values(), ids=MASKS.keys())
def case(request: pytest.FixtureRequest) -> tuple[int, int, Tensor | None]:
    """Number of queries, number of keys, mask."""
    return request.param


def test_attention_without_gradients_is_the_loop(case) -> None:
    queries, keys, mask = case
    query, key, value = inputs(queries, keys)
    torch.testing.assert_close(attend(query, key, value, mask), loop(query, key, value, mask))


@pytest.mark.usefixtures("path")
def test_attention_and_its_gradients_are_those_of_the_loop(case) -> None:
    queries, keys, mask = case
    parts = [part.requires_grad_() for part in inputs(queries, keys)]
    found, right = attend(*parts, mask), loop(*parts, mask)
    torch.testing.assert_close(found, right)
    weight = torch.randn_like(right)
    gradients = [torch.autograd.grad((output * weight).sum(), parts) for output in (found, right)]
    torch.testing.assert_close(*gradients)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("wanted", [True, False])
def test_attention_is_that_of_torch(case, wanted) -> None:
    queries, keys, mask = case
    parts = [part.float().requires_grad_(wanted) for part in inputs(queries, keys)]
    right = functional.scaled_dot_product_attention(*parts, attn_mask=mask)
    torch.testing.assert_close(attend(*parts, mask), right, rtol=0, atol=1e-5)


def test_short_keys_are_attended_to_as_long_ones_are(monkeypatch) -> None:
    """At the border between formula and kernel nothing but rounding changes."""
    parts = [part.requires_grad_() for part in inputs(3, 13)]
    outputs = []
    for border in (12, 13):
        monkeypatch.setattr(attention, "FEW_KEYS", border)
        outputs.append(attend(*parts, padding(13)))
    torch.testing.assert_close(*outputs)


def test_the_weights_are_what_attention_weighs_the_values_with(case) -> None:
    queries, keys, mask = case
    query, key, value = inputs(queries, keys)
    weights = attention_weights(query, key, mask)
    assert weights.shape == (B, H, queries, keys)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, queries, dtype=torch.float64))
    torch.testing.assert_close(weights @ value, attend(query, key, value, mask))
    if mask is not None:
        assert int(weights.masked_select(~mask).count_nonzero()) == 0


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_query_without_any_key_gives_numbers_and_leaves_its_neighbours_alone(dtype) -> None:
    mask = padding()
    mask[1] = False
    parts = [part.to(dtype).requires_grad_() for part in inputs()]
    output = attend(*parts, mask)
    assert bool(output.isfinite().all())
    with torch.no_grad():
        assert bool(attend(*parts, mask).isfinite().all())
    for gradient in torch.autograd.grad(output.float().square().sum(), parts):
        assert bool(gradient.isfinite().all())
    alone = attend(*(part[:1] for part in parts), mask[:1])
    torch.testing.assert_close(output[:1], alone)


@pytest.mark.usefixtures("path")
def test_hidden_keys_get_no_gradient() -> None:
    query, key, value = (part.requires_grad_() for part in inputs())
    mask = padding()
    for gradient in torch.autograd.grad(attend(query, key, value, mask).square().sum(), (key, value)):
        hidden = ~mask[:, 0, 0]
        by_place = gradient.abs().sum((1, 3))  # (B, S)
        assert int(by_place[hidden].count_nonzero()) == 0
        assert bool((by_place[~hidden] > 0).all())


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["self", "cross"])
def test_multi_head_attention_is_that_of_torch(kind, bias) -> None:
    ours = MultiHeadAttention(D, H, bias=bias).double()
    theirs = nn.MultiheadAttention(D, H, bias=bias, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        for one, other in zip(module_weights(ours), module_weights(theirs), strict=True):
            one.copy_(torch.randn_like(one) / 2)
            other.copy_(one)
    x = torch.randn(B, S, D, dtype=torch.float64, requires_grad=True)
    memory = x if kind == "self" else torch.randn(B, S, D, dtype=torch.float64, requires_grad=True)
    mask = padding()
    right, weights = theirs(x, memory, memory, key_padding_mask=~mask[:, 0, 0], average_attn_weights=False)
    found = ours(x, memory, mask)
    torch.testing.assert_close(found, right)
    torch.testing.assert_close(attention_weights(ours.queries(x), ours.keys_values(memory)[0], mask), weights)
    gradients = [
        torch.autograd.grad(output.square().sum(), [x, memory, *module_weights(module)])
        for output, module in ((found, ours), (right, theirs))
    ]
    torch.testing.assert_close(*gradients)


def module_weights(module: MultiHeadAttention | nn.MultiheadAttention) -> list[Tensor]:
    """Input and output matrices, then the biases that there are, in one order for both."""
    if isinstance(module, MultiHeadAttention):
        parts = [
            module.project_in.weight,
            module.project_out.weight,
            module.project_in.bias,
            module.project_out.bias,
        ]
    else:
        parts = [module.in_proj_weight, module.out_proj.weight, module.in_proj_bias, module.out_proj.bias]
    return [part for part in parts if part is not None]


@pytest.mark.parametrize("bias", [True, False])
def test_the_three_projections_are_the_same_together_and_apart(bias) -> None:
    module, x = MultiHeadAttention(D, H, bias=bias).double(), torch.randn(B, T, D, dtype=torch.float64)
    if bias:
        nn.init.normal_(module.project_in.bias)
    together = module.queries_keys_values(x)
    apart = (module.queries(x), *module.keys_values(x))
    assert together[0].shape == (B, H, T, E)
    torch.testing.assert_close(together, apart)


def test_a_head_sees_its_own_share_of_the_width() -> None:
    """Head h holds columns hE..(h+1)E, and merging undoes splitting."""
    module, x = MultiHeadAttention(D, H), torch.randn(B, S, D)
    heads = module.split_heads(x)
    for h in range(H):
        assert torch.equal(heads[:, h], x[..., h * E : (h + 1) * E])
    assert torch.equal(module.merge_heads(heads), x)


def test_attention_weights_are_dropped_in_training_alone() -> None:
    module, x = MultiHeadAttention(D, H, dropout=0.5), torch.randn(B, S, D)
    evaluated = module.eval()(x, x)
    assert torch.equal(evaluated, module(x, x))
    outputs = module.train()(*[x[:1].expand(3_000, S, D)] * 2)
    assert not torch.equal(outputs[0], outputs[1])
    torch.testing.assert_close(outputs.mean(0), evaluated[0], rtol=0, atol=0.1)


def test_an_observer_is_told_of_every_attention_and_changes_none() -> None:
    module, mask = MultiHeadAttention(D, H), padding()
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    unseen = module(x, memory, mask)
    seen: list[tuple[MultiHeadAttention, Tensor, Tensor]] = []
    module.observer = lambda who, q, k, v, shown: seen.append((who, attention_weights(q, k, shown), v))
    assert torch.equal(module(x, memory, mask), unseen)
    ((who, weights, values),) = seen
    assert who is module
    assert torch.equal(values, module.keys_values(memory)[1])
    torch.testing.assert_close(module.project_out(module.merge_heads(weights @ values)), unseen)


def test_each_projection_starts_with_the_spread_of_a_matrix_of_its_own() -> None:
    """Xavier for a square matrix: uniform within sqrt(6 / 2D), although three stand in one."""
    module = MultiHeadAttention(64, 4)
    bound = math.sqrt(6 / (2 * 64))
    for matrix in (*module.project_in.weight.detach().split(64), module.project_out.weight.detach()):
        assert 0.98 * bound < float(matrix.abs().max()) <= bound
        assert abs(float(matrix.std()) * math.sqrt(3) / bound - 1) < 0.05
    assert int(module.project_in.bias.count_nonzero() + module.project_out.bias.count_nonzero()) == 0
