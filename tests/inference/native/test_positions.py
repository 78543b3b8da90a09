"""The positions that the C code reads are those of the model's modules."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.model.samples import make_config
from tests.tolerances import assert_close

from manyheads.errors import UsageError
from manyheads.inference.native.build import library
from manyheads.inference.native.positions import Positions
from manyheads.model.positions import _FIRST_ROWS, RotaryPositions, SinusoidalPositions

LIBRARY = library()
pytestmark = pytest.mark.skipif(LIBRARY is None, reason="no C compiler here")


@pytest.mark.parametrize("width", [2, 6, 30, 64, 256, 512])
def test_sinusoidal_positions_are_those_of_the_model(width) -> None:
    config = make_config(d_model=width, num_heads=1, positions="sinusoidal")
    found = Positions(LIBRARY, config, None, None).first(300)
    assert found.count >= 300 > _FIRST_ROWS
    right = SinusoidalPositions(width)(torch.arange(300), 300).numpy()
    assert_close(found.signals[:300], right)
    assert (found.signals[:300] == right).mean() > 0.999
    assert found.rotary_cos_sin is None


@pytest.mark.parametrize("width", [2, 10, 64, 128])
def test_rotary_positions_are_those_of_the_model(width) -> None:
    config = make_config(d_model=2 * width, num_heads=2, positions="rotary")
    found = Positions(LIBRARY, config, None, None).first(200)
    right = RotaryPositions(width)(torch.arange(200)[None])[0, 0].numpy()
    # The last bit of a frequency depends on the processor; at position 199 that is an angle of 2e-5.
    assert_close(found.rotary_cos_sin[:200], right)
    assert found.signals is None


def test_learned_positions_end_at_max_positions_and_include_the_token_type() -> None:
    config = make_config(positions="learned", max_positions=70)
    learned, token_type = np.random.default_rng(1).normal(size=(2, 70, config.d_model)).astype(np.float32)
    positions = Positions(LIBRARY, config, learned, token_type[0])
    assert positions.first(64).count == 64
    assert np.array_equal(positions.first(70).signals, learned + token_type[0])
    with pytest.raises(UsageError, match=r"71 tokens is longer than model\.max_positions = 70"):
        positions.first(71)


def test_the_token_type_is_added_with_rotary_positions() -> None:
    config = make_config(positions="rotary")
    token_type = np.arange(config.d_model, dtype=np.float32)
    table = Positions(LIBRARY, config, None, token_type).first(5)
    assert np.array_equal(table.signals[3], token_type)
    assert table.rotary_cos_sin is not None
