"""Tolerances of tests that compare numbers, from what was computed: magnitude, length of the sums, number format.

A result of floating-point sums depends on the processor: it adds in another order, or rounds once where another
rounds twice. Integers, text, bytes, and what one machine computes twice in the same way are exact. For the rest:

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
    msg: str = "",
) -> None:
    """Compare tensors, arrays, lists of numbers, or lists and dicts of these; infinities are exact, NaN equals NaN.

    Args:
        found: what was computed.
        expected: the right values.
        terms: as in `tolerance`.
        magnitude: as in `tolerance`; None: the largest of the expected values.
        dtype: as in `tolerance`; None: the coarser format of both, float32 for Python's floats.
        msg: what was compared.
    """
    ours, theirs = tensors(found, dtype), tensors(expected, dtype)
    assert ours.keys() == theirs.keys(), msg
    dtype = dtype or coarsest([*ours.values(), *theirs.values()])
    magnitude = max(map(largest, theirs.values()), default=0.0) if magnitude is None else magnitude
    for name, tensor in ours.items():
        torch.testing.assert_close(
            tensor.double(),
            theirs[name].double(),
            rtol=0,
            atol=tolerance(magnitude, terms, dtype),
            equal_nan=True,
            msg=f"{msg} {name} (magnitude {magnitude:.3g}, {terms:g} terms, {dtype}): {{}}".format,
        )


class NearArray(type(pytest.approx(np.zeros(1)))):  # type: ignore[misc]
    """`pytest.approx` of an array, which compares one number after the other: here all at once."""

    def __eq__(self, actual: Any) -> bool:
        same_shape = np.shape(actual) == self.expected.shape
        values = [np.asarray(numbers, np.float64) for numbers in (actual, self.expected)] if same_shape else []
        return (same_shape and np.allclose(*values, rtol=0, atol=self.abs, equal_nan=self.nan_ok)) or bool(
            super().__eq__(actual)
        )

    __hash__ = None  # type: ignore[assignment]


def near(expected: Any, limit: float, *, nan_ok: bool = False) -> Any:
    """Return what equals `expected` up to a limit."""
    kind = NearArray if isinstance(expected, np.ndarray) else pytest.approx
    return kind(expected, rel=0, abs=limit, nan_ok=nan_ok)


def approx(
    expected: Any, *, terms: float = SUMS, magnitude: float | None = None, dtype: torch.dtype = torch.float32
) -> Any:
    """Return what equals `expected` up to `tolerance`: a number, a list, an array or a dict of numbers, or None."""
    if expected is None:
        return None
    if magnitude is None:
        magnitude = largest(as_tensor([*expected.values()] if isinstance(expected, Mapping) else expected))
    expected = expected.detach().numpy() if isinstance(expected, Tensor) else expected
    return near(expected, tolerance(magnitude, terms, dtype), nan_ok=True)


def printed(expected: Any, digits: int) -> Any:
    """Return what equals the number in a text that gives it with some digits after the point."""
    expected = expected.detach().numpy() if isinstance(expected, Tensor) else expected
    return pytest.approx(expected, rel=1e-9, abs=0.6 * 10.0**-digits)


def sampled(probability: float, draws: float) -> Any:
    """Return what equals the share of independent draws that have this probability."""
    deviation = math.sqrt(probability * max(0.0, 1 - probability) / draws)
    return pytest.approx(probability, rel=0, abs=DEVIATIONS * deviation + 1e-9)


def tensors(value: Any, dtype: torch.dtype | None) -> dict[str, Tensor]:
    """Return the tensors of a value by their keys or indices; Python's floats are of a format, float32 for None."""
    if isinstance(value, Mapping):
        return {str(name): as_tensor(entry, dtype) for name, entry in value.items()}
    if isinstance(value, (list, tuple)) and any(isinstance(entry, (Tensor, np.ndarray)) for entry in value):
        return {str(number): as_tensor(entry, dtype) for number, entry in enumerate(value)}
    return {"": as_tensor(value, dtype)}


def coarsest(values: Iterable[Tensor]) -> torch.dtype:
    """Return the format with the largest unit."""
    formats = (tensor.dtype for tensor in values if tensor.is_floating_point())
    return max(formats, key=lambda dtype: torch.finfo(dtype).eps, default=torch.float32)


def largest(x: Tensor) -> float:
    """Return the largest finite absolute value; 0 where there is none."""
    finite = x[x.isfinite()].abs()
    return float(finite.max()) if finite.numel() else 0.0


def as_tensor(value: Any, dtype: torch.dtype | None = None) -> Tensor:
    """Return a tensor without gradient; numbers of Python become `dtype`, float32 for None."""
    if isinstance(value, Tensor):
        return value.detach()
    return (
        torch.from_numpy(np.array(value, order="C"))
        if hasattr(value, "dtype")
        else torch.tensor(value, dtype=dtype)
    )


def within(expected: Any, limit: float) -> Any:
    """Return what differs by `limit` at most, for another reason than rounding: an estimate, pixels, quantization.

    The limit must be above the error of rounding, which `approx` knows better.
    """
    expected = expected.detach().numpy() if isinstance(expected, Tensor) else expected
    smallest = tolerance(largest(as_tensor([*expected.values()] if isinstance(expected, Mapping) else expected)), 1)
    assert limit > smallest, f"rounding alone is up to {smallest:.2g}: use approx"
    return near(expected, limit)


def in_int8(expected: Any) -> Any:
    """Return what differs from `expected`, results of a tiny model in int8, by a few roundings of its activations.

    Implementations whose floats differ in the last bit round one of 10,000 activations to different integers.
    """
    return within(expected, 0.1 * max(1.0, largest(as_tensor(expected))))
