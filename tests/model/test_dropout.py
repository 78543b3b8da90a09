"""Dropout: what is zeroed, what is scaled, and when."""

from __future__ import annotations

import math

import pytest
import torch

from manyheads.model.dropout import Dropout, SharedDropout

COUNT = 2**20


def trained_on_ones(probability: float, count: int = COUNT, seed: int = 1) -> torch.Tensor:
    torch.manual_seed(seed)
    return Dropout(probability)(torch.ones(count))


@pytest.mark.parametrize(("probability", "rounded"), [(0.1, 26 / 256), (0.3, 77 / 256), (0.5, 0.5)])
def test_the_share_of_zeros_is_the_probability_rounded_to_a_256th(probability, rounded) -> None:
    share = float((trained_on_ones(probability) == 0).double().mean())
    deviation = math.sqrt(rounded * (1 - rounded) / COUNT)
    assert abs(share - rounded) < 4 * deviation


@pytest.mark.parametrize("probability", [0.1, 0.3])
def test_no_place_is_favoured(probability) -> None:
    """Eight elements share one random word: each of the eight must be as likely, and they must be independent."""
    zeroed = (trained_on_ones(probability) == 0).view(-1, 8).double()
    share = round(probability * 256) / 256
    deviation = math.sqrt(share * (1 - share) / len(zeroed))
    assert float((zeroed.mean(0) - share).abs().max()) < 5 * deviation
    together = (zeroed[:, :-1] * zeroed[:, 1:]).mean(0) - share**2
    assert float(together.abs().max()) < 5 * share / math.sqrt(len(zeroed))


@pytest.mark.parametrize("probability", [0.003, 0.1, 0.3, 0.9])
def test_the_rest_is_scaled_so_that_the_mean_stays(probability) -> None:
    output = trained_on_ones(probability)
    rounded = round(probability * 256) / 256
    assert set(output.unique().tolist()) == {0.0, float(torch.tensor(1 / (1 - rounded)))}
    assert abs(float(output.double().mean()) - 1) < 4 * math.sqrt(rounded / (1 - rounded) / COUNT)


def test_a_probability_next_to_one_still_leaves_something() -> None:
    output = trained_on_ones(0.999)
    assert 0 < int((output != 0).sum()) < COUNT / 100
    assert bool(output.isfinite().all())


@pytest.mark.parametrize("probability", [0.0, 0.001])
def test_a_probability_that_rounds_to_zero_changes_nothing(probability) -> None:
    x = torch.randn(7, 11)
    assert torch.equal(Dropout(probability)(x), x)


def test_nothing_is_dropped_but_in_training() -> None:
    x = torch.randn(7, 11)
    assert torch.equal(Dropout(0.5).eval()(x), x)


def test_the_gradient_passes_where_the_signal_passed() -> None:
    x = torch.randn(13, 11, 7, requires_grad=True)
    output = Dropout(0.3)(x)
    (gradient,) = torch.autograd.grad(output.sum(), x)
    assert torch.equal(output, x * gradient)
    assert 0 < int((gradient == 0).sum()) < x.numel()


def test_the_seed_decides_what_is_dropped() -> None:
    first, again, other = (trained_on_ones(0.3, 101, seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    torch.manual_seed(1)
    dropout = Dropout(0.3)
    assert torch.equal(dropout(torch.ones(101)), first)
    assert not torch.equal(dropout(torch.ones(101)), first)


@pytest.mark.parametrize("shape", [(1,), (3, 5, 7), (8, 16), (2, 0, 3), ()])
def test_any_shape_comes_back(shape) -> None:
    assert Dropout(0.5)(torch.ones(shape)).shape == shape


def test_a_transposed_tensor_is_dropped_in_place_order_and_not_in_memory_order() -> None:
    torch.manual_seed(1)
    straight = Dropout(0.5)(torch.ones(11, 7))
    torch.manual_seed(1)
    assert torch.equal(Dropout(0.5)(torch.ones(7, 11).t()), straight)


def test_bfloat16_stays_bfloat16_and_near_its_mean() -> None:
    torch.manual_seed(1)
    x = torch.ones(COUNT, dtype=torch.bfloat16)
    output = Dropout(0.1)(x)
    assert output.dtype == torch.bfloat16
    assert len(output.unique()) == 2
    assert abs(float(output.double().mean()) - 1) < 2**-8  # one rounding of the factor


@pytest.mark.parametrize(("axes", "decisions"), [((2,), (5, 7, 1)), ((1, 2), (5, 1, 1))])
def test_what_shares_a_decision_is_dropped_or_kept_together(axes, decisions) -> None:
    torch.manual_seed(3)
    drop, x = SharedDropout(0.25, axes), torch.randn(5, 7, 11)
    seen = torch.zeros(decisions, dtype=torch.int64)
    for _ in range(200):
        factors = drop(x) / x
        assert all(bool((factors - factors.select(axis, 0).unsqueeze(axis)).abs().max() < 1e-5) for axis in axes)
        kept = factors[tuple(slice(0, size) for size in decisions)] > 0.5
        torch.testing.assert_close(factors.max(), torch.tensor(4 / 3))
        seen += kept
    assert int(seen.min()) > 120, "each is kept three times of four"
    assert int(seen.max()) < 180
    assert torch.equal(drop.eval()(x), x)
