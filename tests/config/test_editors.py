"""The schema for editors says of a TOML file what the program says of it, setting by setting."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_help_wording import faults

from manyheads.config.load import json_schema, recipe_paths, to_toml
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
    """Every part of a schema."""
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from nodes(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from nodes(value)


def mixed(change: dict[str, Any]) -> dict[str, Any]:
    """A configuration with something changed."""
    tree = copy.deepcopy(BASE)
    for section, settings in change.items():
        tree[section] = {**tree.get(section, {}), **settings}
    return tree


def test_it_describes_every_setting_and_has_its_default_as_toml_writes_it() -> None:
    schema = json_schema()
    for section, field in Config.model_fields.items():
        settings = getattr(field.annotation, "model_fields", {})
        part = schema["$defs"][field.annotation.__name__]["properties"] if settings else {}
        assert list(part) == list(settings), section
        for name, setting in settings.items():
            assert part[name]["description"] == setting.description
            written = tomllib.loads(f"value = {to_toml(setting.default)}")["value"]
            assert part[name]["default"] == written


def test_every_setting_is_described_in_plain_words() -> None:
    """The same rules as for help texts, but for the first letter and the full stop."""
    schema = json_schema()
    settings = {"task": schema["properties"]["task"]}
    for section in schema["$defs"].values():
        settings |= section["properties"]
    for name, setting in settings.items():
        text = setting["description"]
        assert text == text.strip(".\n ")
        assert [fault for fault in faults(f"{text[0].upper()}{text[1:]}.") if "upper case" not in fault] == [], name


def test_toml_has_no_null() -> None:
    for node in nodes(json_schema()):
        assert node.get("type") != "null"
        assert None not in node.values()


@pytest.fixture(scope="module")
def validator() -> Any:
    """The schema as a library that is not ours reads it."""
    library = pytest.importorskip("jsonschema_rs")
    return library.Draft202012Validator(json_schema())


@pytest.mark.parametrize("path", [pytest.param(path, id=name) for name, path in recipe_paths().items()])
def test_every_recipe_is_right(validator: Any, path: Path) -> None:
    assert not list(validator.iter_errors(tomllib.loads(path.read_text(encoding="utf-8"))))


def test_nothing_is_written_as_none(validator: Any) -> None:
    assert validator.is_valid(mixed({"training": {"patience": "none", "clip_norm": "none"}}))


@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in WRONG.items()])
def test_a_mistake_is_underlined(validator: Any, change: dict[str, Any]) -> None:
    assert validator.is_valid(mixed({}))
    assert not validator.is_valid(mixed(change))
