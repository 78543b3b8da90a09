"""Parse one line of TSV or JSON, or one row of a data set, as source and target."""

from __future__ import annotations

import json
import re

from manyheads.config.schema import DataConfig
from manyheads.data.lines import InvalidUtf8
from manyheads.errors import DataError

__all__ = ["checked_text", "pair_from_record", "parse_json", "parse_tsv", "parsed_json"]


def parse_tsv(line: str, config: DataConfig, where: str) -> tuple[str, str]:
    """Parse source and target of a line with exactly one tab."""
    columns = line.split("\t")
    if len(columns) != 2:
        found = "no tab" if len(columns) == 1 else f"{len(columns) - 1} tabs"
        raise DataError(f"{where}: {found}. Each line must be source<TAB>target.")
    return columns[0], columns[1]


def parse_json(line: str, config: DataConfig, where: str) -> tuple[str, str]:
    """Parse source and target of a line with one JSON object."""
    return pair_from_record(parsed_json(line, where), config, where)


def parsed_json(line: str, where: str) -> object:
    """Parse one line of JSON.

    Raises:
        DataError: the line is not JSON.
    """
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"{where}: no JSON ({error.msg}, column {error.colno}). Put one object a line.") from error
    except (ValueError, RecursionError) as error:  # a number too long, brackets too deep
        raise DataError(f"{where}: no JSON that can be read ({error}).") from error


def pair_from_record(record: object, config: DataConfig, where: str) -> tuple[str, str]:
    """Return source and target of an object: by language, as "source" and "target", or within "translation".

    Args:
        record: the value of a line of JSON or a row of a data set.
        config: names the two languages.
        where: file and line, for messages.

    Raises:
        DataError: the record is no object, has no such keys, or their values are no texts.
    """
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        record = record["translation"]
    if not isinstance(record, dict):
        raise DataError(f"{where}: {type(record).__name__} in place of an object with the two texts.")
    for keys in ((config.source, config.target), ("source", "target")):
        if all(key in record for key in keys):
            source, target = (checked_text(record[key], key, config.invalid_utf8, where) for key in keys)
            return source, target
    raise DataError(
        f'{where}: no keys "{config.source}" and "{config.target}", nor "source" and "target". '
        f"It has: {', '.join(map(str, list(record)[:8])) or 'none'}. Check data.source and data.target."
    )


def checked_text(value: object, key: str, invalid_utf8: InvalidUtf8, where: str) -> str:
    """Return a text if it can be written as UTF-8; half of a JSON surrogate pair cannot."""
    if not isinstance(value, str):
        raise DataError(f'{where}: "{key}" holds {type(value).__name__}, not text.')
    if any("\ud800" <= symbol <= "\udfff" for symbol in value):
        if invalid_utf8 == "error":
            raise DataError(
                f'{where}: "{key}" holds half a surrogate pair (\\ud800 to \\udfff), which is no character. '
                'Mend the line, or set data.invalid_utf8 = "replace".'
            )
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    return value
