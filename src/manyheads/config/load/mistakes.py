"""Describe every mistake in a configuration: key, value, what is allowed, and the nearest known name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Any, get_args

from manyheads.config.load.toml import NONE, shorten, to_toml
from manyheads.config.schema import TASKS, Config, LanguageError, PairConfig, StageConfig
from manyheads.config.schema.base import Section, SettingsError, Wrong

_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
_TABLES: dict[str, tuple[str, type[Section]]] = {  # by key: the noun of a table, its settings
    "stages": ("stage", StageConfig),
    "pairs": ("pair", PairConfig),
}
_UNUSUAL_LIMIT = 1_000  # magnitude of a limit that no usual value comes near
_KINDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "null": f'"{NONE}"',
}


def find_mistakes(values: dict[str, Any]) -> list[str]:
    """Return one message for each mistake; an empty list if `Config` accepts the values in strict mode.

    Rules between settings are checked only if each setting alone is valid. So after each round the invalid settings
    are set to their defaults, and rules that involve one of them are skipped.
    """
    mistakes: list[str] = []
    wrong: set[str] = set()
    rest = values
    while errors := _validation_errors(rest):
        described = [_describe(error, rest) for error in errors]
        mistakes += [message for message, names in described if not names & wrong]
        names = {name for _, names in described for name in names}
        if names <= wrong:
            break
        wrong |= names
        rest = _without(values, wrong)
    return list(dict.fromkeys(mistakes))


def _validation_errors(values: dict[str, Any]) -> Sequence[Wrong]:
    try:
        Config.model_validate(values)
    except SettingsError as error:
        return error.wrong
    return []


def _without(values: dict[str, Any], wrong: set[str]) -> dict[str, Any]:
    """Return the values with invalid settings at their defaults, and placeholders for invalid or missing languages.

    If the task is invalid, the languages that it needs are unknown, and placeholders for a translation are used.
    """
    rest = {
        section: {key: value for key, value in settings.items() if key not in wrong}
        for section, settings in values.items()
        if section not in wrong and isinstance(settings, dict)
    }
    data = rest.get("data", {})
    if "task" in wrong:
        known = {key: value for key, value in data.items() if key != "language"}
        return {**rest, "data": {"source": "xx", "target": "xx", **known}}
    task = values.get("task", "translation")
    missing = {name: "xx" for name in TASKS[task].languages if wrong & {name, "data", "pairs"}}
    return {**rest, "task": task, "data": {**missing, **data}}


def _describe(error: Wrong, values: dict[str, Any]) -> tuple[str, set[str]]:
    """Return (message, names of the settings in it) of one validation error."""
    message = str(error.error)
    if isinstance(error.error, LanguageError):
        return message, set(re.findall(r"^data\.(\w+)", message))
    if error.reason == "rule":
        settings = {key for section in _known_settings().values() for key in section}
        return message, settings & set(re.findall(r"\w+", message))
    section, key, *inside = ["", *error.path] if len(error.path) == 1 else error.path
    name = f"{section}.{key}" if section else key
    value: Any = (values[section] if section else values).get(key)
    if error.reason == "missing" and not inside:
        return _missing(section, key, values), {key}
    if not section and key in _known_settings():
        return f"{key} = {shorten(to_toml(value))} is no section; write [{key}], and its settings below it.", {key}
    schema = _known_settings()[section].get(key)
    if schema is None:
        return _unknown(section, key, value)
    if len(inside) > 1 and "$ref" in schema.get("items", {}):
        index, setting, *_ = inside
        noun, table = _TABLES[key]
        where = f"{name}: {setting} of {noun} {index + 1}"
        return describe_setting(where, error.reason, table, setting, value[index].get(setting)), {key}
    if error.reason == "not finite" and not inside:
        return f"{name} = {value} is not finite; write a number.", {key}
    guess = suggestion(to_toml(near) for near in closest(str(value), schema.get("enum", ())))
    return f"{name} = {shorten(to_toml(value))} is not {phrase(schema, value)}{guess or '.'}", {key}


def describe_setting(name: str, reason: str, section: type[Section], key: str, value: Any) -> str:
    """Return the message of a validation error about a setting of a section, which messages call `name`."""
    known = section.model_json_schema()["properties"]
    if key not in known:
        return f"unknown key {name}{hint(key, known)}"
    if reason == "missing":
        return f"{name} is missing: {known[key]['description']}."
    try:
        expected = f"not {phrase(known[key], value)}"
    except KeyError:  # a table
        expected = f"wrong: {known[key]['description']}"
    return f"{name} = {shorten(to_toml(value))} is {expected}."


def _missing(section: str, key: str, values: Mapping[str, Any]) -> str:
    """Return the message for a missing section (no single setting is required: see `Config.check_languages`)."""
    assert (section, key) == ("", "data")
    task = values.get("task", "translation")
    needed = TASKS[task if isinstance(task, str) and task in TASKS else "translation"].languages
    return f"section [{key}] is missing; it needs {' and '.join(needed)}."


def _unknown(section: str, key: str, value: Any) -> tuple[str, set[str]]:
    """Return (message, names in it) for a key that this section does not have."""
    if not section and isinstance(value, dict):
        sections = [name for name in _known_settings() if name]
        return f"unknown section [{key}]{hint(f'[{key}]', [f'[{name}]' for name in sections])}", {key}
    full_name = f"{section}.{key}" if section else key
    near = _nearest_settings(section, key)
    cure = suggestion(near) or "; `manyheads show-config` lists all settings."
    return f"unknown key {full_name}{cure}", {key, *(name.rpartition(".")[2] for name in near)}


def _nearest_settings(section: str, key: str) -> list[str]:
    """Return the likeliest settings: with an equal name, else a similar one in this section, else in any."""
    known = _known_settings()
    full = {f"{owner}.{name}".lstrip("."): name for owner, settings in known.items() for name in settings}
    for names in ([key], closest(key, known[section]), closest(key, full.values())):
        matches = [path for path, name in full.items() if name in names]
        own_section = [path for path in matches if path.startswith(f"{section}.")]
        if matches:
            return own_section or matches
    return []


def closest(word: str, names: Iterable[str]) -> list[str]:
    """Return the names most similar to a word: the best and those nearly as good; none if no name is similar."""
    scores = {name: SequenceMatcher(None, word.lower(), name.lower()).ratio() for name in names}
    best = max(scores.values(), default=0.0)
    return [name for name, score in scores.items() if score >= max(best - 0.02, 0.6)]


@cache
def _known_settings() -> dict[str, dict[str, Any]]:
    """Return the JSON schema of every setting, by section and key; top-level settings are under ""."""
    known: dict[str, dict[str, Any]] = {"": {}}
    for name, field in Config.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            known[name] = field.annotation.model_json_schema()["properties"]
        else:
            known[""][name] = Config.model_json_schema()["properties"][name]
    return known


def optional_settings() -> set[tuple[str, str]]:
    """Return (section, key) of the settings that may be null, without the slow JSON schemas."""
    return {
        (section, key)
        for section, parent in Config.model_fields.items()
        if isinstance(parent.annotation, type) and issubclass(parent.annotation, Section)
        for key, field in parent.annotation.model_fields.items()
        if type(None) in get_args(field.annotation)
    }


def phrase(schema: Mapping[str, Any], value: Any) -> str:
    """Describe the allowed values of a setting, to be read after "is not".

    Limits far above all usual values are only named where the value that is refused is large.
    """
    if "anyOf" in schema:
        return " or ".join(phrase(choice, value) for choice in schema["anyOf"])
    if "prefixItems" in schema:
        return f"a list of {len(schema['prefixItems'])}, each {phrase(schema['prefixItems'][0], value)}"
    if "$ref" in schema.get("items", {}):
        return "a list of tables"
    if schema.get("type") == "array":
        return f"a list, each {phrase(schema['items'], value)}"
    if "enum" in schema:
        return " or ".join(json.dumps(choice) for choice in schema["enum"])
    if "examples" in schema:
        return f"text such as {schema['examples'][0]}"
    if schema.get("maxLength", 0) >= _UNUSUAL_LIMIT:
        limit = f" of at most {schema['maxLength']:,} characters, none of them NUL" if _is_large(value) else ""
        return f"{_KINDS['string']}{limit}"
    if "pattern" in schema:
        return "a language code such as de or pt-BR"
    bounds = [
        f"{word} {number(schema[bound])}"
        for bound, word in _BOUNDS.items()
        if bound in schema and (abs(schema[bound]) < _UNUSUAL_LIMIT or _is_large(value))
    ]
    return f"{_KINDS[schema['type']]} {' and '.join(bounds)}".strip()


def _is_large(value: Any) -> bool:
    """Return whether a value, or one in a list, may be beyond a limit that is far above all usual values."""
    if isinstance(value, list | tuple):
        return any(map(_is_large, value))
    if isinstance(value, str):
        return len(value) >= _UNUSUAL_LIMIT or "\0" in value
    return isinstance(value, int | float) and abs(value) >= _UNUSUAL_LIMIT


def number(value: float) -> str:
    """Write the bound of a setting."""
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:g}"


def suggestion(names: Iterable[str]) -> str:
    """Return the end of a message with the names that may be meant, or ""."""
    choices = " or ".join(names)
    return f"; did you mean {choices}?" if choices else ""


def hint(word: str, names: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the most similar ones, else all names."""
    known = list(names)
    return suggestion(closest(word, known)) or f"; there are {', '.join(known) or 'none'}."
