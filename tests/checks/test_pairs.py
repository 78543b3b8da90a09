"""Lines that do not belong together are found by their lengths, wherever they begin."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from manyheads.checks.pairs import _Alignment, _measure_alignment

PAIRS = 3_000


def lengths(seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lengths of texts and translations whose logarithms have a correlation of about 0.8."""
    rng = np.random.default_rng(seed)
    source = np.exp(rng.normal(4, 0.5, PAIRS))
    return source, source * np.exp(rng.normal(0, 0.35, PAIRS))


def measured(source: NDArray[np.float64], target: NDArray[np.float64]) -> _Alignment:
    found = _measure_alignment(source, target)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(5))
def test_true_pairs_are_correlated_in_any_order(seed: int) -> None:
    source, target = lengths(seed)
    assert measured(source, target).whole > 0.7
    assert not measured(source, target).apart
    order = np.argsort(source)  # a sorted corpus: in each block all are of one length
    assert measured(source[order], target[order]).apart == ()


def test_too_few_pairs_are_not_measured() -> None:
    assert _measure_alignment([3] * 99, [4] * 99) is None
    assert measured(np.full(200, 3.0), np.arange(200.0)).whole == 0
