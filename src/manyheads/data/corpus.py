"""Parallel text from files, pair by pair.

Layouts: two files of equally many lines, one .tsv (source, tab, target), or one .jsonl. Errors name the file
and the line. One line at a time is held in memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from manyheads.config.schema import DataConfig
from manyheads.data.letters import has_text
from manyheads.data.lines import InvalidUtf8, Line, align_lines, count_lines, different_counts, read_decoded
from manyheads.data.locate import Split, locate
from manyheads.data.tsv import split_row
from manyheads.errors import DataError
from manyheads.languages import match_language


class Pair(NamedTuple):
    """One example of a corpus.

    Attributes:
        source, target: the two texts of a translation; text and label of a classification; "" and the text of plain
            text.
        line: number of the line in the file, or of the row in a data set, counted from 1.
        replaced: number of bytes of the line that are not UTF-8 and were replaced by U+FFFD.
    """

    source: str
    target: str
    line: int
    replaced: int = 0


def read_pairs(config: DataConfig, split: Split) -> Iterator[Pair]:
    """Read the pairs of a split from its files; at most `data.limit` of train.

    Raises:
        DataError: when called, a file is missing; while reading, a line cannot be used, a file is empty, or the two
            files have different numbers of lines.
    """
    paths = locate(config, split)
    read = _read_two_files if len(paths) == 2 else _read_one_file
    pairs = islice(read(paths, config), _pair_limit(config, split, paths))
    return not_empty(pairs, f"{' and '.join(map(str, paths))}: no lines. Name files that hold text.")


def not_empty(pairs: Iterable[Pair], error: str) -> Iterator[Pair]:
    """Yield the pairs; raise `DataError` with the message `error` if there are none."""
    pair = None
    for pair in pairs:
        yield pair
    if pair is None:
        raise DataError(error)


def numbered_lines(
    path: Path, config: DataConfig, first: int = 0, end: int | None = None
) -> Iterator[tuple[int, Line]]:
    """Read the lines of a file, numbered from 1: the lines from index `first`, counted from 0, up to `end`."""
    return islice(enumerate(read_decoded(path, invalid_utf8=config.invalid_utf8), start=1), first, end)


def _read_two_files(paths: tuple[Path, ...], config: DataConfig) -> Iterator[Pair]:
    sides = [read_decoded(path, invalid_utf8=config.invalid_utf8) for path in paths]
    for number, (source, target) in enumerate(align_lines(sides, paths), start=1):
        yield Pair(source.text, target.text, number, source.replaced + target.replaced)


def _read_one_file(paths: tuple[Path, ...], config: DataConfig) -> Iterator[Pair]:
    """Read one pair a line; a blank line is a pair without text."""
    (path,) = paths
    for number, line in numbered_lines(path, config):
        where = f"{path}, line {number}"
        if not has_text(line.text):
            source, target = "", ""
        elif ".tsv" in path.suffixes[-2:]:
            source, target = _parse_tsv(line.text, where)
        else:
            source, target = pair_from_record(parsed_json(line.text, where), config, where)
        yield Pair(source, target, number, line.replaced)


def _parse_tsv(line: str, where: str) -> tuple[str, str]:
    columns = split_row(line)
    if len(columns) != 2:
        tabs = "no tab" if len(columns) == 1 else f"{len(columns) - 1} tabs"
        raise DataError(f"{where}: {tabs}. Each line must be source<TAB>target.")
    return columns[0], columns[1]


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

    Messages begin with `where`, the file and the line.

    Raises:
        DataError: the record is no object, has no such keys, or their values are no texts.
    """
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        record = record["translation"]
    if not isinstance(record, dict):
        raise DataError(f"{where}: {type(record).__name__} in place of an object with the two texts.")
    names = [key for key in record if isinstance(key, str)]
    alike = tuple(match_language(language, names) or language for language in (config.source, config.target))
    for keys in ((config.source, config.target), ("source", "target"), alike):
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
    if any("\ud800" <= character <= "\udfff" for character in value):
        if invalid_utf8 == "error":
            raise DataError(
                f'{where}: "{key}" holds half a surrogate pair (\\ud800 to \\udfff), which is no character. '
                "Mend the line."
            )
        return re.sub("[\ud800-\udfff]", "\ufffd", value)
    return value


def _pair_limit(config: DataConfig, split: Split, paths: tuple[Path, ...]) -> int | None:
    """Return the number of pairs that `data.limit` keeps, None for all; two files must have equally many lines."""
    if split != "train" or config.limit is None:
        return None
    counts = [count_lines(path) for path in paths] if len(paths) == 2 or config.limit < 1 else []
    if len(set(counts)) == 2:
        raise different_counts(paths, counts)
    return limited(config.limit, counts[0] if counts else 0)


def limited(limit: float, total: int) -> int:
    """Return `data.limit` as a count: below 1 it is a share of all pairs, at least one."""
    return int(limit) if limit >= 1 else max(1, round(limit * total))


def kept_lines(
    config: DataConfig, split: Split, path: Path, count: Callable[[Path], int] = count_lines
) -> tuple[int, int | None]:
    """Return the range of lines (first, end) of a split in its file, counted from 0; None is the end of the file.

    If `data.valid` is a share, it is taken from the end of the training file; `data.limit` applies to the rest.
    Both count what `count` counts, by default lines.
    """
    share = config.valid if isinstance(config.valid, float) else None
    if split == "train":
        total = count(path) if share or (config.limit or 1) < 1 else 0
        left = total - _held_back(total, share) if share else total
        end = left if share else None
        if config.limit is None:
            return 0, end
        limit = limited(config.limit, left)
        return 0, limit if end is None else min(limit, end)
    if split == "valid" and share:
        total = count(path)
        return total - _held_back(total, share), None
    return 0, None


def _held_back(total: int, share: float) -> int:
    """Return the number of examples held out for validation: at least one, never all."""
    return max(0, min(total - 1, max(1, round(share * total))))
