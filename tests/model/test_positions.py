"""Positions, compared with the formulas of the papers in Python floats."""

from __future__ import annotations

import cmath

import pytest
import torch
from tests.model.samples import paper_signal, random_ids
from tests.tolerances import assert_close
from torch import nn

from manyheads.model.positions import (
    _FIRST_ROWS,
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    _multiply_complex,
    _multiply_pairs,
    apply_rotary,
    sinusoids,
)


@pytest.mark.parametrize(("length", "width"), [(7, 2), (31, 10), (1_000, 6)])
def test_the_sinusoids_are_those_of_the_paper(length, width) -> None:
    table = sinusoids(length, width)
    right = [[paper_signal(position, column, width) for column in range(width)] for position in range(length)]
    assert table.dtype == torch.float32
    assert_close(table, torch.tensor(right))


def test_the_table_grows_for_a_longer_text() -> None:
    signal = SinusoidalPositions(6)
    positions = torch.tensor([[0, 3, _FIRST_ROWS - 1], [_FIRST_ROWS, 2 * _FIRST_ROWS + 1, 5 * _FIRST_ROWS]])
    before = signal(positions[:1], _FIRST_ROWS)
    found = signal(positions, 5 * _FIRST_ROWS + 1)
    right = [
        [[paper_signal(position, column, 6) for column in range(6)] for position in row]
        for row in positions.tolist()
    ]
    assert_close(found, torch.tensor(right))
    assert torch.equal(found[:1], before)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_grown_table_keeps_the_dtype_of_the_model(dtype) -> None:
    signal = SinusoidalPositions(6).to(dtype)
    assert signal(torch.tensor([[_FIRST_ROWS]]), _FIRST_ROWS + 1).dtype == dtype


def test_a_table_that_grew_in_inference_mode_can_be_used_in_training() -> None:
    signal, matrix = SinusoidalPositions(6), nn.Linear(6, 6)
    positions = torch.arange(_FIRST_ROWS + 7)[None]
    with torch.inference_mode():
        signal(positions, positions.numel())
    matrix(signal(positions, positions.numel())).sum().backward()
    assert matrix.weight.grad is not None


def test_the_sinusoids_are_not_in_the_state_dict() -> None:
    assert not SinusoidalPositions(6).state_dict()
    assert not RotaryPositions(6).state_dict()


def test_learned_positions_are_rows_of_their_table() -> None:
    learned = LearnedPositions(13, 5, scale=1.0)
    positions = torch.tensor([[0, 12, 3], [1, 1, 0]])
    assert torch.equal(learned(positions, 13), learned.table.weight[positions])


def rotated(vector: list[float], position: int) -> list[float]:
    """Rotate a vector as in Su et al. (2021), section 3.2.2, with complex numbers."""
    width, result = len(vector), []
    for pair in range(width // 2):
        number = complex(vector[2 * pair], vector[2 * pair + 1])
        number *= cmath.exp(1j * position * 10_000 ** (-2 * pair / width))
        result += [number.real, number.imag]
    return result


def test_rotary_positions_rotate_each_pair_by_an_angle_that_grows_with_the_position() -> None:
    rotary, positions = RotaryPositions(10), torch.tensor([[0, 1, 2, 29], [7, 7, 0, 300]])
    x = torch.randn(2, 3, 4, 10)
    right = torch.tensor(
        [
            [[rotated(x[b, h, s].tolist(), int(positions[b, s])) for s in range(4)] for h in range(3)]
            for b in range(2)
        ]
    )
    assert_close(apply_rotary(x, rotary(positions)), right)


def test_one_row_of_positions_is_broadcast_over_the_batch() -> None:
    rotary, x, positions = RotaryPositions(10), torch.randn(5, 3, 7, 10), torch.arange(7)[None]
    assert torch.equal(apply_rotary(x, rotary(positions)), apply_rotary(x, rotary(positions.expand(5, 7))))


def test_rotary_positions_keep_norms_and_dtype() -> None:
    rotary, positions = RotaryPositions(10), random_ids(2, 7, 300)
    x = torch.randn(2, 3, 7, 10)
    torch.testing.assert_close(apply_rotary(x, rotary(positions)).norm(dim=-1), x.norm(dim=-1))
    assert apply_rotary(x.bfloat16(), rotary(positions)).dtype == torch.bfloat16


def test_products_of_complex_numbers_equal_those_of_pairs_of_real_numbers() -> None:
    """Compare the form for compiled code, which has no complex numbers."""
    a, b = torch.randn(2, 3, 7, 5, 2, requires_grad=True), torch.randn(2, 1, 7, 5, 2)
    expected, found = _multiply_complex(a, b), _multiply_pairs(a, b)
    torch.testing.assert_close(found, expected)
    weights = torch.randn_like(found)
    gradients = [torch.autograd.grad((product * weights).sum(), a)[0] for product in (expected, found)]
    torch.testing.assert_close(gradients[1], gradients[0])
