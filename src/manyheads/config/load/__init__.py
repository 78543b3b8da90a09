"""Read configurations from TOML files, recipes, `--set` and run directories, and report all mistakes at once.

A relative `data.root` starts from the current folder; in a TOML file, a root that begins with ./ or ../ starts from
the folder of that file, so that file and text can be moved together. TOML has no null: an optional setting is
switched off with "none".
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from manyheads.config.load.mistakes import closest, find_mistakes, optional_settings, suggestion
from manyheads.config.load.toml import NONE, override, read_toml
from manyheads.config.schema import Config
from manyheads.config.schema.base import SettingsError
from manyheads.errors import HOW_TO_UPGRADE, ConfigError, UsageError

_FORMAT = 1


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read a TOML file, with single settings replaced.

    Args:
        path: path of the file.
        overrides: `section.key=value`; the value is read as TOML, or as plain text if it is not TOML.

    Raises:
        ConfigError: the file cannot be read, or file or overrides have mistakes; the message lists all of them.
    """
    path = Path(path)
    origin = f"{path} with --set" if overrides else str(path)
    values = resolve_data_root(read_toml(path), path.parent)
    given = [f"{name}.{key}" for name, section in values.items() if isinstance(section, dict) for key in section]
    return _parse_replaced(values, overrides, origin, given)


def resolve_data_root(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Make a `data.root` that begins with ./ or ../ absolute: it starts from the folder of the TOML file."""
    data = values.get("data")
    root = data.get("root") if isinstance(data, dict) else None
    if isinstance(data, dict) and isinstance(root, str) and f"{root}/".startswith(("./", "../")) and root != ".":
        return values | {"data": data | {"root": str((folder / root).resolve())}}
    return values


def with_overrides(config: Config, overrides: Sequence[str]) -> Config:
    """Return a configuration with single settings replaced, each given as `section.key=value`."""
    return _parse_replaced(config.model_dump(), overrides, "--set") if overrides else config


def _parse_replaced(
    values: dict[str, Any], overrides: Sequence[str], origin: str, given: Sequence[str] = ()
) -> Config:
    """Replace settings, then parse as `parse_config` does; mistakes of both are reported.

    Internal settings may be among `values`, but neither among the overrides nor the names in `given`.
    """
    mistakes = [mistake for text in overrides if (mistake := override(values, text))]
    for name in (*given, *(text.partition("=")[0].strip() for text in overrides)):
        section, _, key = name.partition(".")
        known = getattr(Config.model_fields.get(section), "annotation", None)
        if key in (fields := getattr(known, "model_fields", {})) and fields[key].internal:
            mistakes.append(f"unknown key {name}; only the program sets it, as from a model of another program.")
    mistakes += _replace_length(values, overrides)
    try:
        config = parse_config(values, origin=origin)
    except ConfigError as error:
        raise ConfigError(mistakes + error.mistakes, origin=origin) from error
    if mistakes:
        raise ConfigError(mistakes, origin=origin)
    return config


def _replace_length(values: Mapping[str, Any], overrides: Sequence[str]) -> list[str]:
    """Let `training.steps` in `--set` replace the epochs of the file; return a mistake if `--set` has both.

    In a file, `training.epochs` replaces `training.steps`.
    """
    names = {text.partition("=")[0].strip(): text for text in overrides}
    steps, epochs, training = names.get("training.steps"), names.get("training.epochs"), values.get("training")
    if steps is None or not isinstance(training, dict):
        return []
    if epochs is None:
        training["epochs"] = None
    elif training["epochs"] != NONE:
        return [f"--set {steps} and --set {epochs} ask for two lengths of training. Give one of them."]
    return []


def parse_config(values: Mapping[str, Any], *, origin: str) -> Config:
    """Convert sections of settings to a `Config`.

    Raises:
        ConfigError: there are mistakes; the message lists all, each with key, value, and what is allowed.
    """
    optional = optional_settings()
    prepared = {
        section: {
            key: None if value == NONE and (section, key) in optional else prepare(value)
            for key, value in settings.items()
        }
        if isinstance(settings, Mapping)
        else prepare(settings)
        for section, settings in values.items()
    }
    try:
        return Config.model_validate(prepared)
    except SettingsError as error:
        raise ConfigError(find_mistakes(prepared), origin=origin) from error


def prepare(value: Any) -> Any:
    """Convert lists to tuples and 1e4 to an integer, as strict validation of TOML and JSON needs."""
    if isinstance(value, dict):
        return {key: prepare(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(prepare(item) for item in value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def config_to_json(config: Config) -> str:
    """Return the configuration as JSON, with its format version."""
    values = config.model_dump()
    return json.dumps({"format": _FORMAT, **values}, indent=2, ensure_ascii=False) + "\n"


def config_from_json(text: str, origin: str) -> Config:
    """Read a configuration from the JSON of `config_to_json`.

    Raises:
        ConfigError: the text is not JSON, has a newer format, or has mistakes.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError([f"this is no JSON: {error}."], origin=origin) from error
    number = values.pop("format", None) if isinstance(values, dict) else None
    if type(number) is not int or number < 1:
        raise ConfigError(["this is no configuration of manyheads: it has no format number."], origin=origin)
    if number > _FORMAT:
        cure = f"this manyheads reads up to {_FORMAT}. Upgrade it: {HOW_TO_UPGRADE}"
        raise ConfigError([f"format {number} is newer than this program; {cure}"], origin=origin)
    _drop_former_settings(values)
    return parse_config(values, origin=origin)


def _drop_former_settings(values: dict[str, Any]) -> None:
    """Remove the settings of earlier versions, unless outputs may depend on them: those are refused as unknown.

    Only settings of the model and the search that are on are such; dropout is not.
    """
    for section, settings in [*values.items()]:
        if not isinstance(settings, dict):
            continue
        if section not in Config.model_fields:
            del values[section]
            continue
        known = getattr(Config.model_fields[section].annotation, "model_fields", {})
        for name in settings.keys() - known.keys():
            needed = section in ("model", "search") and settings[name] and not name.endswith("dropout")
            if not needed:
                del settings[name]
        if section == "data" and isinstance(settings.get("augment"), dict):  # rates of its changes
            settings["augment"] = 1


def recipe_paths(folder: str = "recipes") -> dict[str, Path]:
    """Return the TOML files of a folder of recipes: in the installed package, or beside `src` in a checkout."""
    package = Path(str(importlib.resources.files("manyheads")))
    roots = [package, package.parent.parent] if package.parent.name == "src" else [package]
    return {path.stem: path for root in roots for path in sorted((root / folder).glob("*.toml"))}


def resolve_recipe(name_or_path: str) -> Path:
    """Return the file of a path, or of the name of a recipe; an existing file is preferred."""
    return resolve_file(name_or_path, recipe_paths(), "configuration file or recipe", "recipes")


def resolve_file(name_or_path: str, known: Mapping[str, Path], kind: str, kinds: str) -> Path:
    """Return the file of a path, else of a known name; `kind` and `kinds` name such files in the `UsageError`."""
    path = Path(name_or_path)
    if path.exists() and not path.is_dir():
        return path
    if name_or_path in known:
        return known[name_or_path]
    if path.is_dir():
        raise UsageError(f"{name_or_path} is a folder; name the .toml file in it.")
    names = {name: name for name in known} | {file.name: str(file) for file in path.parent.glob("*.toml")}
    guess = suggestion(names[name] for name in closest(path.name, names))
    raise UsageError(f"no {kind} {name_or_path}{guess or f'; `manyheads recipes` lists the {kinds}.'}")


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a TOML file, with "none" for null.

    It checks single settings; rules between settings are checked by `load_config` only.
    """
    described = _with_none(Config.model_json_schema())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **described,
        "title": "manyheads",
    }


def _with_none(schema: Any) -> Any:
    """Return a part of a schema with "none" in place of null."""
    if isinstance(schema, list):
        return [_with_none(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema == {"type": "null"}:
        return {"const": NONE}
    changed = {key: _with_none(value) for key, value in schema.items()}
    if "default" in changed and changed["default"] is None:
        changed["default"] = NONE
    return changed
