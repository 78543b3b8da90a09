"""The parameters of a search are checked on construction."""

from __future__ import annotations

import pytest
from tests.search.tables import parameters


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_best": 0}, "n_best = 0 must be between 1 and beam_size = 1"),
        ({"n_best": 4, "beam_size": 3}, "n_best = 4 must be between 1 and beam_size = 3"),
        ({"beam_size": 0}, "beam_size = 0"),
        ({"length_penalty": -0.5}, "length_penalty = -0.5 must not be negative"),
        ({"limits": [3, -4]}, "max_lengths must not be negative, but one is -4"),
    ],
)
def test_a_value_outside_of_its_range_is_refused_by_name(changes, message) -> None:
    with pytest.raises(ValueError, match=message):
        parameters(**({"limits": [5, 0]} | changes))


def test_limits_are_on_the_cpu_and_may_be_empty() -> None:
    assert parameters([5, 0]).limits().tolist() == [5, 0]
    assert parameters([]).limits().tolist() == []
