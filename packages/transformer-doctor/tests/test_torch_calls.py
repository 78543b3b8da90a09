"""Readings of calls of torch functions agree with the results of torch."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from transformer_doctor.torch_calls import (
    additive_mask,
    is_parameter,
    mask_and_fill,
    product_of,
    scalar_factor,
)

SIZES = {"b": 2, "h": 3, "t": 4, "s": 5, "e": 6}


@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("bhte,bhse->bhts", "bhte", "bhse"),
        ("bthe,bshe->bhts", "bthe", "bshe"),
        (" ...te , ...se -> ...ts", "bhte", "bhse"),
        ("...te,se->...ts", "bhte", "se"),
        ("te,btse->bts", "te", "btse"),
        (None, "bhte", "bhes"),
        (None, "te", "bhes"),
        (None, "bhte", "es"),
    ],
)
def test_a_product_is_the_einsum_of_its_labels(equation: str | None, left: str, right: str) -> None:
    first, second = (torch.randn([SIZES[axis] for axis in axes]) for axes in (left, right))
    product = product_of(equation, first, second)
    assert product is not None
    expected = first @ second if equation is None else torch.einsum(equation, first, second)
    found = torch.einsum(f"{product.left},{product.right}->{product.out}", first, second)
    torch.testing.assert_close(found, expected)
    assert [product.sizes[axis] for axis in product.out] == list(expected.shape)


@pytest.mark.parametrize(
    ("name", "args", "factor"),
    [
        ("div", [torch.ones(2), 8], 1 / 8),
        ("__truediv__", [torch.ones(2), torch.tensor(8.0)], 1 / 8),
        ("mul", [torch.ones(2), 0.5], 0.5),
        ("__rmul__", [0.5, torch.ones(2)], 0.5),
        ("div", [torch.ones(2), 0], 0.0),
        ("mul", [torch.ones(2), torch.ones(2)], None),
        ("add", [torch.ones(2), 3], None),
        ("mul", [torch.ones(2), True], None),
    ],
)
def test_a_factor_is_a_number_that_a_tensor_is_multiplied_with(
    name: str, args: list[Any], factor: float | None
) -> None:
    assert scalar_factor(name, args) == factor


HIDDEN = torch.tensor([[False, True, True], [False, False, True]])
SCORES = torch.arange(6.0).view(2, 3)


@pytest.mark.parametrize(
    ("name", "inputs", "fill"),
    [
        ("masked_fill", [SCORES, HIDDEN, -9.0], -9.0),
        ("__setitem__", [SCORES, HIDDEN, torch.tensor(-9.0)], -9.0),
        ("where", [HIDDEN, -9.0, SCORES], -9.0),
        ("where", [~HIDDEN, SCORES, -9.0], -9.0),
        ("add", [SCORES, HIDDEN * -1e9], -1e9),
        ("sub", [SCORES, HIDDEN * 1e9], -1e9),
        ("__radd__", [torch.zeros(2, 3).masked_fill(HIDDEN, -math.inf), SCORES], -math.inf),
    ],
)
def test_a_mask_is_read_in_every_way_it_is_applied(name: str, inputs: list[Any], fill: float) -> None:
    found, hidden = mask_and_fill(name, inputs, SCORES)
    assert found == pytest.approx(fill)
    assert hidden is not None
    assert torch.equal(hidden, HIDDEN)


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("add", [SCORES, torch.randn(2, 3)]),  # a bias of positions
        ("add", [SCORES, 3.0]),
        ("masked_fill", [SCORES, HIDDEN.long(), -9.0]),
        ("relu", [SCORES]),
    ],
)
def test_a_tensor_that_hides_nothing_is_no_mask(name: str, inputs: list[Any]) -> None:
    assert mask_and_fill(name, inputs, SCORES)[1] is None


def test_an_additive_mask_needs_two_numbers_or_a_very_low_one() -> None:
    assert additive_mask(torch.tensor([0.0, -5.0]))[0] == -5
    assert additive_mask(torch.tensor([0.5, -2e4]))[0] == -2e4
    # 0 and -1 are a boolean mask that was not converted
    for mask in (torch.tensor([0.0, -1.0]), torch.tensor([0.5, -5.0]), torch.tensor([0, -5]), torch.empty(0)):
        assert additive_mask(mask) == (None, None)


def test_a_learned_factor_is_nan() -> None:
    factor = scalar_factor("mul", [torch.ones(2), nn.Parameter(torch.ones(1))])
    assert factor is not None
    assert math.isnan(factor)


def test_weights_are_parameters_or_leaves_with_a_gradient() -> None:
    weight: Tensor = torch.ones(2, requires_grad=True)
    assert is_parameter(nn.Parameter(torch.ones(2), requires_grad=False))
    assert is_parameter(weight)
    assert not is_parameter(weight * 2)
    assert not is_parameter(torch.ones(2))
