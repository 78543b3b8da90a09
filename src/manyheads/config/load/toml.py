"""Read and write TOML: files, the values of `--set`, single settings."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bitext.files import cure_of
from manyheads.errors import ConfigError

NONE = "none"
_LONGEST_VALUE = 60  # characters of a value that a message shows
_BACKSLASH = re.compile(r'"([^"\']*\\[^"\']*)"')  # a path of Windows in double quotes, where \ begins an escape
_UNQUOTED = re.compile(r"""([\w.-]+)\s*=\s*([^\W\d][^"'#]*?|[/.~][^"'#]*?)\s*(#.*)?$""")


def read_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file.

    Raises:
        ConfigError: the file cannot be read, is not UTF-8, or is not TOML; the message has line and column.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError([f"cannot be read: {error.strerror}. {cure_of(error)}"], origin=str(path)) from error
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        fault = f"byte {error.start} (0x{data[error.start]:02x}) is no UTF-8. Save the file as UTF-8."
        raise ConfigError([fault], origin=f"{path}, line {line}") from error
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        fault, position, _ = str(error).partition(" (at line ")
        if not position:
            raise ConfigError([f"{fault}."], origin=str(path)) from error
        line, column = map(int, re.findall(r"\d+", str(error)[len(fault) :]))
        cure = _cure_of_line(text.split("\n")[line - 1].strip(), fault)
        raise ConfigError([f"{fault}{cure}."], origin=f"{path}, line {line}, column {column}") from error


def _cure_of_line(line: str, fault: str) -> str:
    """Return the end of a message: the line that is not TOML, and its correction if that is clear."""
    literal = _BACKSLASH.sub(r"'\1'", line)
    if literal != line and ("\\" in fault or "hex" in fault):
        return f" in `{shorten(line)}`; write a path in single quotes, or with forward slashes: {literal}"
    match = _UNQUOTED.match(line)
    if not match:
        return f" in `{shorten(line)}`" if line else ""
    key, value = match[1], match[2]
    corrected = value.lower() if value in ("True", "False") else to_toml(value)
    return f" in `{shorten(line)}`; write {key} = {corrected}"


def override(values: dict[str, Any], text: str, *, form: str = "section.key=value", deepest: int = 1) -> str | None:
    """Put one `section.key=value` into `values`; return the mistake if the text has another form.

    A key may be inside `deepest` tables; `form` shows what to write.
    """
    name, equals, written = text.partition("=")
    *tables, key = (part.strip() for part in name.split("."))
    if not (equals and key and all(tables)) or len(tables) > deepest:
        return f"--set {text} is not of the form {form}."
    for table in tables:
        values = values.setdefault(table, {})
        if not isinstance(values, dict):
            return f"--set {text}: {table} is no table."
    values[key] = read_value(written.strip())
    return None


def read_value(text: str) -> Any:
    """Parse a TOML value; return the text itself if it is not TOML, and for `nan`, which is a language."""
    try:
        values = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    value = values.pop("value")
    plain = values or (isinstance(value, float) and not math.isfinite(value))
    return text if plain else value


def to_toml(value: Any) -> str:
    """Write a setting's value as TOML; None becomes "none"."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return f'"{NONE}"'
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(to_toml(item) for item in value)}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {to_toml(item)}" for key, item in value.items()) + "}"
    return str(value)


def shorten(text: str) -> str:
    """Shorten a text for a message."""
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
