"""Check from lengths alone whether line i of one side is the translation of line i of the other.

A long sentence has a long translation: the lengths of true pairs correlate (Gale and Church 1993). The lengths of
lines that were shuffled, or shifted because one is missing, do not.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

_BLOCK = 200  # pairs whose correlation is computed together, and then known to about 0.07
_LEAST_PAIRS = 100  # fewer say nothing
# A stretch is misaligned where its lengths hardly correlate, and lie further from the regression line than
# elsewhere: in a corpus that is sorted by length the first is true everywhere, and the second nowhere.
_APART, _WIDER = 0.2, 1.3
_MIN_DEVIATION = 1e-9  # standard deviation up to which lengths are constant


@dataclass(frozen=True)
class Stretch:
    """Neighbouring blocks: first and last pair, counted from 0, and mean correlation of the blocks."""

    first: int
    last: int
    correlation: float


@dataclass(frozen=True)
class Alignment:
    """Correlation of the lengths of the two sides.

    Attributes:
        whole: correlation of the logarithms of all lengths.
        shifted: the same with the target moved by one line back or forth, whichever is higher.
        blocks: median correlation of the blocks.
        apart: stretches without correlation where the rest of the text has it.
    """

    whole: float
    shifted: float
    blocks: float
    apart: tuple[Stretch, ...]


def measure_alignment(source: ArrayLike, target: ArrayLike) -> Alignment | None:
    """Compute the correlation of lengths in characters, (N,) a side; None where there are too few pairs."""
    x, y = (np.log1p(np.asarray(lengths, np.float64)) for lengths in (source, target))
    if len(x) < _LEAST_PAIRS:
        return None
    whole = _correlation(x, y)
    residuals = y - whole * y.std() / max(x.std(), _MIN_DEVIATION) * x  # residuals of the regression line
    edges = [*range(0, max(1, len(x) - _BLOCK // 2), _BLOCK), len(x)]
    windows = list(itertools.pairwise(edges))
    correlations = np.array([_correlation(x[a:b], y[a:b]) for a, b in windows])
    width = np.array([residuals[a:b].std() for a, b in windows])
    # the width of aligned stretches: a low quantile, as less than half of the text may be aligned
    usual = np.quantile(width, 0.25)
    bad = (correlations < _APART) & (width > _WIDER * usual)
    return Alignment(
        whole=whole,
        shifted=max(_correlation(x[1:], y[:-1]), _correlation(x[:-1], y[1:])),
        blocks=float(np.median(correlations)),
        apart=tuple(_stretches(bad, correlations, windows)),
    )


def _correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Return Pearson's correlation, 0 where one side is constant."""
    if min(x.std(), y.std()) < _MIN_DEVIATION:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def _stretches(
    bad: NDArray[np.bool_], correlations: NDArray[np.float64], windows: list[tuple[int, int]]
) -> list[Stretch]:
    numbers = np.flatnonzero(bad)
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1) if numbers.size else []
    return [Stretch(windows[run[0]][0], windows[run[-1]][1] - 1, float(correlations[run].mean())) for run in runs]
