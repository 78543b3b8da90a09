"""The threshold is found without knowing which pairs are good."""

from __future__ import annotations

import numpy as np
import pytest

from manyheads.data.cleaning.calibration import choose_threshold

RNG = np.random.default_rng(7)


def normal(mean: float, size: int) -> np.ndarray:
    return RNG.normal(mean, 1, size).astype(np.float32)


@pytest.mark.parametrize("noise", [0, 200, 2_000, 6_000])
def test_few_good_pairs_are_lost_and_most_noise_is_found(noise: int) -> None:
    good = normal(4, 8_000)
    bad = normal(0, noise)
    threshold = choose_threshold(np.concatenate([good, bad]), normal(0, 3_000), 0.02)
    assert (good < threshold).mean() < 0.05
    assert noise == 0 or (bad < threshold).mean() > 0.7


def test_too_few_scores_remove_nothing() -> None:
    assert choose_threshold(normal(0, 20), normal(0, 3_000), 0.02) == -np.inf
    assert choose_threshold(normal(0, 3_000), normal(0, 20), 0.02) == -np.inf
    assert choose_threshold(normal(0, 3_000), normal(0, 3_000), 0) == -np.inf
