"""Tolerances of tests that compare numbers, from what was computed: magnitude, length of the sums, number format.

A result of floating-point sums depends on the processor: it adds in another order, or rounds once where another
rounds twice. Exact are integers, text, bytes, and what is computed twice on one machine in the same way. For the rest:

    assert_close(found, expected)                   # tensors, arrays, lists of one format
    assert score == approx(expected, magnitude=5)   # a float of float32 sums, of values up to 5
    assert float(cell) == printed(weight, 3)        # a number that was printed with three digits after the point
    assert share == sampled(0.2, draws=5_000)       # a share of random draws

`tests/test_tolerances.py` refuses `atol`, `rtol`, `abs` and `rel` elsewhere in the tests.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

SUMS = 256  # terms of the sums of a tiny model, one after another: width, keys, hidden layer, vocabulary
UNITS = 8  # roundings of each term: of a product, of the functions that follow, and on both sides of a comparison
DEVIATIONS = 5  # standard deviations of a share of random draws: one test in a million is red


def tolerance(magnitude: float, terms: float = SUMS, dtype: torch.dtype = torch.float32) -> float:
    """Return the largest difference of two results that differ in rounding alone.

    The error of a sum grows with the square root of its length, as roundings go up and down.

    Args:
        magnitude: largest absolute value that is added or returned.
        terms: number of terms of the sums, of one after another together.
        dtype: the coarsest format of the computation.
    """
    return UNITS * torch.finfo(dtype).eps * math.sqrt(terms) * magnitude


def assert_close(
    found: Any,
    expected: Any,
    *,
    terms: float = SUMS,
    magnitude: float | None = None,
    dtype: torch.dtype | None = None,
    msg: str | None = None,
) -> None:
    """Compare tensors, arrays or nested lists of the same shape; NaN equals NaN, and infinities are exact.

    Args:
        found: what was computed.
        expected: the right values.
        terms: as in `tolerance`.
        magnitude: as in `tolerance`; None: the largest of the expected values.
        dtype: as in `tolerance`; None: the coarser format of both, float32 for Python's floats.
        msg: what was compared.
    """
    tensors = [as_tensor(found), as_tensor(expected)]
    dtype = dtype or coarsest(found, expected)
    magnitude = largest(tensors[1]) if magnitude is None else magnitude
    limit = tolerance(magnitude, terms, dtype)
    torch.testing.assert_close(
        *tensors, rtol=0, atol=limit, equal_nan=True, check_dtype=False,
        msg=lambda text: f"{msg or 'not close'} (magnitude {magnitude:.3g}, {terms:g} terms, {dtype}): {text}",
    )  # fmt: skip


def approx(
    expected: Any, *, terms: float = SUMS, magnitude: float | None = None, dtype: torch.dtype = torch.float32
) -> Any:
    """Return what equals `expected` up to `tolerance`: a number, or a list, an array or a dict of numbers."""
    if magnitude is None:
        magnitude = largest(as_tensor([*expected.values()] if isinstance(expected, Mapping) else expected))
    expected = expected.tolist() if isinstance(expected, Tensor) else expected
    return pytest.approx(expected, rel=0, abs=tolerance(magnitude, terms, dtype), nan_ok=True)


def printed(expected: Any, digits: int) -> Any:
    """Return what equals the number in a text that gives it with some digits after the point."""
    expected = expected.tolist() if isinstance(expected, Tensor) else expected
    return pytest.approx(expected, rel=1e-6, abs=0.51 * 10.0**-digits)


def sampled(probability: float, draws: float) -> Any:
    """Return what equals the share of independent draws that have this probability."""
    return pytest.approx(probability, rel=0, abs=DEVIATIONS * math.sqrt(probability * (1 - probability) / draws))


def coarsest(*values: Any) -> torch.dtype:
    """Return the format with the largest unit of those given; float32 for numbers of Python."""
    formats = [
        as_tensor(value).dtype if isinstance(value, (Tensor, np.ndarray)) else torch.float32 for value in values
    ]
    return max((one for one in formats if one.is_floating_point), key=lambda one: torch.finfo(one).eps)


def largest(x: Tensor) -> float:
    """Return the largest finite absolute value; 0 where there is none."""
    finite = x[x.isfinite()].abs()
    return float(finite.max()) if finite.numel() else 0.0


def as_tensor(value: Any) -> Tensor:
    """Return a tensor without gradient; numbers of lists become float64."""
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, Iterable) and not isinstance(value, (np.ndarray, list, tuple)):
        value = [*value]
    return torch.from_numpy(np.array(value, dtype=getattr(value, "dtype", np.float64)))
