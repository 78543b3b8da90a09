"""The tolerances of tests follow from what was computed, and stand in one module."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest
import torch

from tests.rounding import rounding
from tests.tolerances import approx, assert_close, tolerance

TESTS = Path(__file__).parent
HELPER = TESTS / "tolerances.py"
COMPARISONS = {"approx", "assert_close", "allclose", "isclose", "assert_allclose", "assert_almost_equal"}
SMALLEST = 1e-4  # of the bounds of absolute differences
LIMITS = {"atol", "rtol", "abs", "rel", "abs_tol", "rel_tol", "delta"}


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("terms", [7, 331, 4_099])
def test_a_sum_in_another_order_is_close_and_a_wrong_one_is_not(terms: int, dtype: torch.dtype) -> None:
    x = numbers(13, terms, dtype=dtype)
    order = torch.randperm(terms, generator=torch.Generator().manual_seed(1))
    biggest = float(x.cumsum(1).abs().max())
    with rounding():
        found = x[:, order].sum(1)
    assert_close(found, x.double().sum(1), terms=terms, magnitude=biggest)
    with pytest.raises(AssertionError, match=f"{terms} terms"):
        assert_close(
            found + 2 * tolerance(biggest, terms, dtype), x.double().sum(1), terms=terms, magnitude=biggest
        )


def test_the_coarser_format_of_both_decides() -> None:
    exact = numbers(17, dtype=torch.float64)
    assert_close(exact.bfloat16(), exact)
    assert_close(exact.float().numpy(), exact.tolist())
    with pytest.raises(AssertionError, match="float64"):
        assert_close(exact + 1e-9, exact)


def test_infinities_are_exact_and_nan_is_nan() -> None:
    values = [1.5, -math.inf, math.nan]
    assert_close(values, values)
    assert [1.5, -math.inf] == approx([1.5, -math.inf])
    with pytest.raises(AssertionError):
        assert_close([1.5, 0.0, math.nan], values)
    assert approx([1.5, -math.inf]) != [1.5, 0.0]


def limits_of(source: str) -> list[int]:
    """Return the lines of comparisons with a tolerance of their own."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in COMPARISONS and LIMITS & {keyword.arg for keyword in node.keywords}:
                found.append(node.lineno)
        elif (
            isinstance(node, ast.Compare)
            and isinstance(node.ops[0], (ast.Lt, ast.LtE))
            and "abs(" in ast.unparse(node.left)
        ):
            bounds = [comparator.value for comparator in node.comparators if isinstance(comparator, ast.Constant)]
            if any(isinstance(bound, float) and 0 < bound < SMALLEST for bound in bounds):
                found.append(node.lineno)
        elif isinstance(node, ast.Dict) and {"atol", "rtol"} & {getattr(key, "value", None) for key in node.keys}:
            found.append(node.lineno)
    return sorted(found)


def test_no_comparison_of_the_tests_has_a_tolerance_of_its_own() -> None:
    found = [
        f"{path.relative_to(TESTS.parent).as_posix()}:{line}"
        for path in sorted([*TESTS.rglob("*.py"), *TESTS.parent.glob("packages/*/tests/**/*.py")])
        if path != HELPER
        for line in limits_of(path.read_text(encoding="utf-8"))
    ]
    assert not found, (
        "atol, rtol, abs and rel judge the last bits of one processor. Use assert_close or approx of "
        "tests/tolerances.py, which know how much results are rounded; printed for numbers in a text; sampled for "
        "random draws; within for what is no rounding; torch.equal for what must have the same bits."
    )
