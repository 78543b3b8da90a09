"""JSON Schema of the configuration, for completion, descriptions and checks in editors."""

from __future__ import annotations

from typing import Any

from manyheads.config.load.toml import NONE
from manyheads.config.schema import Config

__all__ = ["json_schema"]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a TOML file, with "none" for null.

    It checks single settings; rules between settings are checked by `load_config` only.
    """
    described = with_none(Config.model_json_schema())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **described,
        "title": "manyheads",
    }


def with_none(schema: Any) -> Any:
    """Return a part of a schema with "none" in place of null, and without pydantic's titles."""
    if isinstance(schema, list):
        return [with_none(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema == {"type": "null"}:
        return {"const": NONE}
    changed = {key: with_none(value) for key, value in schema.items() if not titled(key, value)}
    if "$ref" in changed:  # a section, whose settings have their own defaults
        changed.pop("default", None)
    if "default" in changed and changed["default"] is None:
        changed["default"] = NONE
    return changed


def titled(key: str, value: Any) -> bool:
    """Return whether an entry is the title of a schema, not a setting named "title"."""
    return key == "title" and isinstance(value, str)
