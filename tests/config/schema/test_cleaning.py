"""The section [clean] refuses invalid settings."""

from __future__ import annotations

import pytest

from manyheads.config.schema import CleanConfig
from manyheads.config.schema.base import SettingsError


def test_a_forward_run_without_a_backward_run_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"clean\.backward is missing"):
        CleanConfig(forward="runs/de-en")
    assert CleanConfig(forward="a", backward="b").backward == "b"


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(SettingsError):
        CleanConfig.model_validate({"off": ["colour"]})
