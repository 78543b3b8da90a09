"""Dropout: the share of zeros, the scale of the rest, and the modes of the module."""

from __future__ import annotations

import math

import pytest
import torch
from tests.tolerances import assert_close

from manyheads.model.dropout import Dropout, SharedDropout

COUNT = 2**20


def dropout_of_ones(probability: float, count: int = COUNT, seed: int = 1) -> torch.Tensor:
    torch.manual_seed(seed)
    return Dropout(probability)(torch.ones(count))


@pytest.mark.parametrize(("probability", "rounded"), [(0.1, 26 / 256), (0.3, 77 / 256), (0.5, 0.5)])
def test_the_share_of_zeros_is_the_probability_rounded_to_a_256th(probability, rounded) -> None:
    share = float((dropout_of_ones(probability) == 0).double().mean())
    deviation = math.sqrt(rounded * (1 - rounded) / COUNT)
    assert abs(share - rounded) < 4 * deviation


@pytest.mark.parametrize("probability", [0.1, 0.3])
def test_every_position_is_dropped_with_the_same_probability(probability) -> None:
    """Check that the eight elements of one random word are equally likely to be dropped, and independent."""
    zeroed = (dropout_of_ones(probability) == 0).view(-1, 8).double()
    share = round(probability * 256) / 256
    deviation = math.sqrt(share * (1 - share) / len(zeroed))
    assert float((zeroed.mean(0) - share).abs().max()) < 5 * deviation
    together = (zeroed[:, :-1] * zeroed[:, 1:]).mean(0) - share**2
    assert float(together.abs().max()) < 5 * share / math.sqrt(len(zeroed))


@pytest.mark.parametrize("probability", [0.003, 0.1, 0.3, 0.9])
def test_kept_elements_are_scaled_so_that_the_mean_is_unchanged(probability) -> None:
    output = dropout_of_ones(probability)
    rounded = round(probability * 256) / 256
    assert set(output.unique().tolist()) == {0.0, float(torch.tensor(1 / (1 - rounded)))}
    assert abs(float(output.double().mean()) - 1) < 4 * math.sqrt(rounded / (1 - rounded) / COUNT)


def test_a_probability_next_to_one_keeps_some_elements() -> None:
    output = dropout_of_ones(0.999)
    assert 0 < int((output != 0).sum()) < COUNT / 100
    assert bool(output.isfinite().all())


@pytest.mark.parametrize("dropout", [Dropout(0.0), Dropout(0.001), Dropout(0.5).eval()], ids=repr)
def test_a_probability_that_rounds_to_zero_and_evaluation_mode_change_nothing(dropout) -> None:
    x = torch.randn(7, 11)
    assert torch.equal(dropout(x), x)


def test_the_gradient_is_dropped_at_the_same_elements() -> None:
    x = torch.randn(13, 11, 7, requires_grad=True)
    output = Dropout(0.3)(x)
    (gradient,) = torch.autograd.grad(output.sum(), x)
    assert torch.equal(output, x * gradient)
    assert 0 < int((gradient == 0).sum()) < x.numel()


def test_the_seed_determines_the_dropped_elements() -> None:
    first, again, other = (dropout_of_ones(0.3, 101, seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    torch.manual_seed(1)
    dropout = Dropout(0.3)
    assert torch.equal(dropout(torch.ones(101)), first)
    assert not torch.equal(dropout(torch.ones(101)), first)


@pytest.mark.parametrize("shape", [(1,), (3, 5, 7), (8, 16), (2, 0, 3), ()])
def test_dropout_keeps_any_shape(shape) -> None:
    assert Dropout(0.5)(torch.ones(shape)).shape == shape


def test_a_transposed_tensor_is_dropped_in_index_order_and_not_in_memory_order() -> None:
    expected = Dropout(0.5)(torch.ones(11, 7))
    torch.manual_seed(1)
    assert torch.equal(Dropout(0.5)(torch.ones(7, 11).t()), expected)


def test_bfloat16_stays_bfloat16_and_near_its_mean() -> None:
    x = torch.ones(COUNT, dtype=torch.bfloat16)
    output = Dropout(0.1)(x)
    assert output.dtype == torch.bfloat16
    assert len(output.unique()) == 2
    assert abs(float(output.double().mean()) - 1) < 2**-8  # one rounding of the factor


@pytest.mark.parametrize(("axes", "decisions"), [((2,), (5, 7, 1)), ((1, 2), (5, 1, 1))])
def test_elements_along_the_shared_axes_are_dropped_together(axes, decisions) -> None:
    torch.manual_seed(3)
    drop, x = SharedDropout(0.25, axes), torch.randn(5, 7, 11)
    seen = torch.zeros(decisions, dtype=torch.int64)
    for _ in range(200):
        factors = drop(x) / x
        for axis in axes:
            assert_close(factors, factors.select(axis, 0).unsqueeze(axis).expand_as(factors))
        kept = factors[tuple(slice(0, size) for size in decisions)] > 0.5
        torch.testing.assert_close(factors.max(), torch.tensor(4 / 3))
        seen += kept
    assert int(seen.min()) > 120, "each is kept three times of four"
    assert int(seen.max()) < 180
    assert torch.equal(drop.eval()(x), x)
