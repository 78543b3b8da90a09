"""The threshold is chosen without knowing which pairs are good."""

from __future__ import annotations

import numpy as np
import pytest

from bitext.cleaning.calibration import choose_threshold

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


@pytest.mark.parametrize("loss", [0.01, 0.03, 0.1])
def test_the_share_of_good_pairs_that_is_lost_is_the_configured_loss(loss: float) -> None:
    rng = np.random.default_rng(3)
    good, bad, known = (rng.normal(mean, 1, 40_000).astype(np.float32) for mean in (3, 0, 0))
    threshold = choose_threshold(np.concatenate([good, bad[:10_000]]), known, loss)
    assert 0.6 * loss < (good < threshold).mean() < 1.4 * loss
