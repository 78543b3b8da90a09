"""The section [clean] refuses what makes no sense, and does not change a score."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from manyheads.config.schema import CleanConfig, Config, DataConfig


def test_both_runs_or_none() -> None:
    with pytest.raises(ValidationError, match=r"clean\.backward is missing"):
        CleanConfig(forward="runs/de-en")
    assert CleanConfig(forward="a", backward="b").backward == "b"


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ValidationError):
        CleanConfig.model_validate({"off": ["colour"]})


def test_cleaning_leaves_the_fingerprint_of_a_training_as_it_is() -> None:
    data = DataConfig(source="de", target="en")
    assert Config(data=data).fingerprint == Config(data=data, clean=CleanConfig(max_ratio=3)).fingerprint
