"""The section [clean] refuses invalid settings."""

from __future__ import annotations

import pytest

from manyheads.config.schema import CleanConfig
from manyheads.config.schema.base import SettingsError


def test_one_model_alone_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"models: wrong value"):
        CleanConfig(models=["runs/de-en"])


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(SettingsError):
        CleanConfig.model_validate({"off": ["colour"]})
