"""Options of a cleaning: numbers out of range are refused, and every rule that can be off exists."""

from __future__ import annotations

from typing import get_args

import pytest

from bitext.cleaning.options import CleanOptions, RuleName
from bitext.cleaning.rules import REASONS
from bitext.errors import UsageError
from bitext.repairs import REPAIRS


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_ratio": 1.0}, "max_ratio = 1.0 must be more than 1"),
        ({"max_ratio": float("nan")}, "max_ratio = nan"),
        ({"loss": 1.0}, "loss = 1.0 is no share"),
        ({"loss": -0.1}, "loss = -0.1 is no share"),
    ],
)
def test_a_number_out_of_its_range_is_named(options: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CleanOptions(**options)  # type: ignore[arg-type]


def test_each_repair_and_each_reason_that_needs_no_model_can_be_off() -> None:
    assert set(get_args(RuleName)) == {*REPAIRS, *REASONS} - {"kept", "empty", "models"}
