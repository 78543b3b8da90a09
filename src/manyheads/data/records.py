"""One line of TSV or JSON, or one row of a data set, as source and target."""

from __future__ import annotations

import json
import re

from manyheads.config.schema import DataConfig
from manyheads.data.lines import InvalidUtf8
from manyheads.errors import DataError

__all__ = ["checked_text", "pair_from_record", "parse_json", "parse_tsv", "parsed_json"]


def parse_tsv(line: str, config: DataConfig, where: str) -> tuple[str, str]:
    """Source and target of one line, which holds exactly one tab."""
    columns = line.split("\t")
    if len(columns) != 2:
        found = "no tab" if len(columns) == 1 else f"{len(columns) - 1} tabs"
        raise DataError(f"{where}: {found}. Each line must be source<TAB>target.")
    return columns[0], columns[1]


def parse_json(line: str, config: DataConfig, where: str) -> tuple[str, str]:
    """Source and target of one line, which holds one JSON object."""
    return pair_from_record(parsed_json(line, where), config, where)


def parsed_json(line: str, where: str) -> object:
    """What one line of JSON holds.

    Raises:
        DataError: it is none.
    """
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"{where}: no JSON ({error.msg}, column {error.colno}). Put one object a line.") from error
    except (ValueError, RecursionError) as error:  # a number too long, brackets too deep
        raise DataError(f"{where}: no JSON that can be read ({error}).") from error


def pair_from_record(record: object, config: DataConfig, where: str) -> tuple[str, str]:
    """Source and target of an object: by language, as source and target, or within its "translation".

    Args:
        record: what a line of JSON or a row of a data set holds.
        config: names the two languages.
        where: the place, for messages.

    Raises:
        DataError: it is no object, has no such keys, or what they hold is no text.
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
    """A text that can be written as UTF-8 again, which half of a JSON surrogate pair cannot."""
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
