"""The JSON schema for editors agrees with the program on every setting of a TOML file."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_help_wording import faults

from manyheads.config.load import json_schema, recipe_paths
from manyheads.config.load.toml import to_toml
from manyheads.config.schema import Config

BASE = {"data": {"source": "de", "target": "en"}}
WRONG = {
    "unknown setting": {"model": {"d_modle": 256}},
    "unknown section": {"modle": {"d_model": 256}},
    "text for a number": {"model": {"d_model": "256"}},
    "a number that is too small": {"training": {"steps": 0}},
    "a number that is too large": {"training": {"label_smoothing": 1.0}},
    "a word that is not known": {"model": {"norm": "middle"}},
    "nothing where something must be": {"training": {"steps": "none"}},
    "three files": {"data": {"train": ["a", "b", "c"]}},
}


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a schema."""
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from nodes(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from nodes(value)


def with_change(change: dict[str, Any]) -> dict[str, Any]:
    """Return the base configuration with these settings changed."""
    tree = copy.deepcopy(BASE)
    for section, settings in change.items():
        tree[section] = {**tree.get(section, {}), **settings}
    return tree


def test_the_schema_has_the_description_and_the_toml_default_of_every_setting() -> None:
    schema = json_schema()
    for section, field in Config.model_fields.items():
        fields = getattr(field.annotation, "model_fields", {})
        settings = {name: setting for name, setting in fields.items() if not setting.internal}
        part = schema["$defs"][field.annotation.__name__]["properties"] if fields else {}
        assert list(part) == list(settings), section
        for name, setting in settings.items():
            assert part[name]["description"] == setting.description
            written = tomllib.loads(f"value = {to_toml(setting.default)}")["value"]
            assert part[name]["default"] == written


def test_every_setting_is_described_in_plain_words() -> None:
    """The rules are those of help texts, except for the first letter and the full stop."""
    schema = json_schema()
    settings = {"task": schema["properties"]["task"]}
    for section in schema["$defs"].values():
        settings |= section["properties"]
    for name, setting in settings.items():
        text = setting["description"]
        assert text == text.strip(".\n ")
        assert [fault for fault in faults(f"{text[0].upper()}{text[1:]}.") if "upper case" not in fault] == [], name


def test_the_schema_has_no_null() -> None:
    for node in nodes(json_schema()):
        assert node.get("type") != "null"
        assert None not in node.values()


@pytest.fixture(scope="module")
def validator() -> Any:
    """Return the validator of the schema of an independent library."""
    library = pytest.importorskip("jsonschema_rs")
    return library.Draft202012Validator(json_schema())


@pytest.mark.parametrize("path", [pytest.param(path, id=name) for name, path in recipe_paths().items()])
def test_every_recipe_is_valid_by_the_schema(validator: Any, path: Path) -> None:
    assert not list(validator.iter_errors(tomllib.loads(path.read_text(encoding="utf-8"))))


def test_none_is_a_valid_value_of_optional_settings(validator: Any) -> None:
    assert validator.is_valid(with_change({"training": {"patience": "none", "clip_norm": "none"}}))


@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in WRONG.items()])
def test_a_mistake_is_invalid_by_the_schema(validator: Any, change: dict[str, Any]) -> None:
    assert validator.is_valid(with_change({}))
    assert not validator.is_valid(with_change(change))
