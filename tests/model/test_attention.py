"""Attention, compared with a plain loop, and with the kernel and the module of torch."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from manyheads.model import attention
from manyheads.model.attention import MultiHeadAttention, attend, attention_weights
from manyheads.model.masks import causal_mask

B, H, T, S, E = 2, 3, 7, 11, 5
D = H * E


def inputs(queries: int = T, keys: int = S) -> tuple[Tensor, Tensor, Tensor]:
    """Return a query (B, H, T, E), a key and a value (B, H, S, E) in float64."""
    sizes = (queries, keys, keys)
    return tuple(2 * torch.randn(B, H, size, E, dtype=torch.float64) for size in sizes)  # type: ignore[return-value]


def padding(keys: int = S) -> Tensor:
    """Return a mask that hides two positions of the first row, one of them in the middle: (B, 1, 1, S)."""
    mask = torch.ones(B, 1, 1, keys, dtype=torch.bool)
    mask[0, 0, 0, [2, keys - 1]] = False
    return mask


def reference_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Compute equation 1 for one head and one query at a time, over the visible keys alone."""
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
    "beyond the short ones": (2, attention._FEW_KEYS + 3, padding(attention._FEW_KEYS + 3)),
}


@pytest.fixture(params=MASKS.values(), ids=MASKS.keys())
def case(request: pytest.FixtureRequest) -> tuple[int, int, Tensor | None]:
    """Return a number of queries, a number of keys, and a mask."""
    return request.param


def test_attention_without_gradients_equals_the_reference(case) -> None:
    queries, keys, mask = case
    query, key, value = inputs(queries, keys)
    torch.testing.assert_close(attend(query, key, value, mask), reference_attention(query, key, value, mask))


@pytest.mark.usefixtures("path")
def test_attention_and_its_gradients_equal_those_of_the_reference(case) -> None:
    queries, keys, mask = case
    parts = [part.requires_grad_() for part in inputs(queries, keys)]
    found, right = attend(*parts, mask), reference_attention(*parts, mask)
    torch.testing.assert_close(found, right)
    weight = torch.randn_like(right)
    gradients = [torch.autograd.grad((output * weight).sum(), parts) for output in (found, right)]
    torch.testing.assert_close(*gradients)


def test_the_weights_are_those_that_attention_multiplies_the_values_by(case) -> None:
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
def test_a_query_without_any_key_gives_finite_numbers_and_changes_no_other_row(dtype) -> None:
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
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["self", "cross"])
def test_multi_head_attention_equals_that_of_torch(kind, bias) -> None:
    ours = MultiHeadAttention(D, H, bias=bias).double()
    theirs = nn.MultiheadAttention(D, H, bias=bias, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        for weight, their_weight in zip(module_weights(ours), module_weights(theirs), strict=True):
            weight.copy_(torch.randn_like(weight) / 2)
            their_weight.copy_(weight)
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
    """Return input and output matrices, then the biases if any, in one order for both modules."""
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
def test_the_joint_projection_equals_the_three_separate_projections(bias) -> None:
    module, x = MultiHeadAttention(D, H, bias=bias).double(), torch.randn(B, T, D, dtype=torch.float64)
    if bias:
        nn.init.normal_(module.project_in.bias)
    together = module.queries_keys_values(x)
    separate = (module.queries(x), *module.keys_values(x))
    assert together[0].shape == (B, H, T, E)
    torch.testing.assert_close(together, separate)


def test_attention_weights_are_dropped_in_training_alone() -> None:
    module, x = MultiHeadAttention(D, H, dropout=0.5), torch.randn(B, S, D)
    evaluated = module.eval()(x, x)
    assert torch.equal(evaluated, module(x, x))
    outputs = module.train()(*[x[:1].expand(3_000, S, D)] * 2)
    assert not torch.equal(outputs[0], outputs[1])
    assert float((outputs.mean(0) - evaluated[0]).detach().abs().max()) < 0.1


def test_an_observer_receives_every_attention_and_changes_none() -> None:
    module, mask = MultiHeadAttention(D, H), padding()
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    unseen = module(x, memory, mask)
    seen: list[tuple[MultiHeadAttention, Tensor, Tensor]] = []
    module.observer = lambda observed, q, k, v, shown: seen.append((observed, attention_weights(q, k, shown), v))
    assert torch.equal(module(x, memory, mask), unseen)
    ((observed, weights, values),) = seen
    assert observed is module
    assert torch.equal(values, module.keys_values(memory)[1])
    torch.testing.assert_close(module.project_out(module.merge_heads(weights @ values)), unseen)


def test_each_projection_is_initialized_like_a_separate_matrix() -> None:
    """Expect Xavier for a square matrix, uniform within sqrt(6 / 2D), although three are stored in one."""
    module = MultiHeadAttention(64, 4)
    bound = math.sqrt(6 / (2 * 64))
    for matrix in (*module.project_in.weight.detach().split(64), module.project_out.weight.detach()):
        assert 0.98 * bound < float(matrix.abs().max()) <= bound
        assert abs(float(matrix.std()) * math.sqrt(3) / bound - 1) < 0.05
    assert int(module.project_in.bias.count_nonzero() + module.project_out.bias.count_nonzero()) == 0
