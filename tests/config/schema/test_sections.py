"""The settings: each number has a smallest and a largest value, and each text a longest one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from manyheads.config.load import parse_config
from manyheads.config.schema import Config
from manyheads.errors import ConfigError
from manyheads.improve.build.schema import KINDS

LIMITS = {
    "integer": ({"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}),
    "number": ({"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}),
    "string": ({"maxLength", "enum"},),
}
WILD = [1e308, -1e308, 2**63, 10**400, math.inf, math.nan, "x" * 100_000, "a\0b"]


def unlimited(schema: Any, name: str) -> Iterator[str]:
    """Yield the names of the parts of a JSON schema that have no limit."""
    if isinstance(schema, list):
        for part in schema:
            yield from unlimited(part, name)
    if not isinstance(schema, Mapping):
        return
    missing = [names for names in LIMITS.get(schema.get("type", ""), ()) if not names & schema.keys()]
    if missing:
        yield f"{name}: {schema}"
    for key in ("anyOf", "items", "prefixItems"):
        yield from unlimited(schema.get(key), name)
    for section, part in {**schema.get("$defs", {}), **schema.get("properties", {})}.items():
        yield from unlimited(part, f"{name}.{section}")


def test_every_number_and_every_text_of_a_configuration_has_limits() -> None:
    assert list(unlimited(Config.model_json_schema(), "")) == []


def test_every_number_of_a_plan_has_limits() -> None:
    found = [text for kind in KINDS.values() for text in unlimited(kind.model_json_schema(), kind.__name__)]
    assert [text for text in found if "'type': 'string'" not in text] == []


@pytest.mark.parametrize("value", WILD, ids=lambda value: str(value)[:9])
def test_no_setting_takes_a_wild_value_and_the_refusal_is_short(value) -> None:
    for section, field in Config.model_fields.items():
        for name in getattr(field.annotation, "model_fields", {}):
            values = {"data": {"source": "de", "target": "en"}}
            values.setdefault(section, {})[name] = value
            with pytest.raises(ConfigError) as raised:
                parse_config(values, origin="x")
            assert f"{section}.{name}" in str(raised.value)
            assert len(str(raised.value)) < 1_000


@pytest.mark.parametrize(
    ("section", "name", "value", "message"),
    [
        ("training", "lora_rank", 1e308, "is not a whole number at least 0 and at most 65,536."),
        ("model", "d_model", 65_537, "is not a whole number above 0 and at most 65,536."),
        ("model", "max_positions", 1, "is not a whole number at least 2."),
        ("search", "length_penalty", 2_147_483_647, "is not a number at least 0 and at most 10."),
        ("training", "steps", 10**10, "is not a whole number above 0 and at most 1,000,000,000."),
        ("data", "train", "a\0", "is not text of at most 4,096 characters, none of them NUL or a list of 2, each"),
    ],
)
def test_a_refused_value_is_named_with_the_limit(section, name, value, message) -> None:
    with pytest.raises(ConfigError, match=rf"x: {section}\.{name} = .* {message}"):
        parse_config({"data": {"source": "de", "target": "en"}, section: {name: value}} | (
            {"data": {"source": "de", "target": "en", name: value}} if section == "data" else {}
        ), origin="x")  # fmt: skip


def test_a_model_that_no_machine_could_hold_is_refused() -> None:
    sizes = {"d_model": 65_536, "d_ff": 1_048_576, "num_decoder_layers": 1_000}
    with pytest.raises(ConfigError, match=r"model.d_model = 65,536, d_ff = 1,048,576 .* Use a smaller model\."):
        parse_config({"data": {"source": "de", "target": "en"}, "model": sizes}, origin="x")
