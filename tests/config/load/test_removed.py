"""Settings that are gone: a run of an earlier version opens where its outputs stay; a new file gets a hint."""

from __future__ import annotations

import json
from typing import Any

import pytest

from manyheads.config.load import config_from_json, config_to_json, parse_config
from manyheads.config.load.removed import REMOVED
from manyheads.config.schema import Config
from manyheads.errors import ConfigError

CONFIG = Config.model_validate({"data": {"source": "de", "target": "en"}})


def opened(changes: dict[str, Any]) -> Config:
    """Open the configuration of a run with these settings added."""
    values = json.loads(config_to_json(CONFIG))
    for name, value in changes.items():
        section, _, key = name.partition(".")
        values[section][key] = value
    return config_from_json(json.dumps({**values, "measured": {}}), "config.json")


def test_an_old_run_opens_with_the_values_that_the_program_works_with() -> None:
    assert opened({name: removed.constant for name, removed in REMOVED.items()}) == CONFIG


def test_a_setting_that_only_training_used_may_have_had_any_value() -> None:
    assert opened({"training.unfreeze_every": 7, "model.layer_dropout": 0.3}) == CONFIG


def test_a_value_that_outputs_depend_on_is_refused_by_its_name() -> None:
    with pytest.raises(ConfigError, match=r"search\.coverage_penalty = 0\.2 was removed"):
        opened({"search.coverage_penalty": 0.2})


@pytest.mark.parametrize("name", REMOVED)
def test_a_removed_setting_is_unknown_and_the_message_says_what_stands_in_its_place(name: str) -> None:
    section, _, key = name.partition(".")
    languages = {"source": "de", "target": "en"}
    values = {"data": languages} | {section: {key: 1, **(languages if section == "data" else {})}}
    with pytest.raises(ConfigError) as caught:
        parse_config(values, origin="x.toml")
    assert f"unknown key {name}; it was removed: {REMOVED[name].instead}." in str(caught.value)
