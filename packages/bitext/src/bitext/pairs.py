"""Parallel text from files, pair by pair.

Layouts: two files of equally many lines, one .tsv (source, tab, target), or one .jsonl. Errors name the file
and the line. One line at a time is held in memory. `bitext.convert` makes such files of all other formats.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from bitext.errors import DataError
from bitext.file_names import existing, no_file
from bitext.languages import match_language
from bitext.letters import has_text
from bitext.lines import InvalidUtf8, align_lines, count_lines, different_counts, read_decoded
from bitext.tsv import split_row


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


@dataclass(frozen=True)
class TextFiles:
    """The file or the two files of a parallel text.

    Attributes:
        paths: the files of source and target, or one .tsv or .jsonl file.
        source, target: the languages, by which a record of a .jsonl file may name its two texts.
        invalid_utf8: whether bytes that are not UTF-8 are an error, or replaced by U+FFFD.
    """

    paths: tuple[Path, ...]
    source: str
    target: str
    invalid_utf8: InvalidUtf8 = "error"

    @classmethod
    def of(
        cls, files: Sequence[Path], languages: tuple[str, str], invalid_utf8: InvalidUtf8 = "error"
    ) -> TextFiles:
        """Return the text of files, packed where they exist packed alone.

        Raises:
            DataError: a file is missing.
        """
        paths = []
        for file in files:
            path = existing(file)
            if path is None:
                raise no_file(file)
            paths.append(path)
        return cls(tuple(paths), *languages, invalid_utf8)

    @property
    def name(self) -> str:
        """The paths, for messages."""
        return " and ".join(map(str, self.paths))


def read_pairs(text: TextFiles, limit: float | None = None) -> Iterator[Pair]:
    """Read the pairs of a text; at most `limit`, which below 1 is a share of all.

    Raises:
        DataError: when called, a file is missing; while reading, a line cannot be used, a file is empty, or the two
            files have different numbers of lines.
    """
    read = _read_two_files if len(text.paths) == 2 else _read_one_file
    pairs = islice(read(text), _pair_limit(text.paths, limit))
    return not_empty(pairs, f"{text.name}: no lines. Name files that hold text.")


def not_empty(pairs: Iterable[Pair], error: str) -> Iterator[Pair]:
    """Yield the pairs; raise `DataError` with the message `error` if there are none."""
    pair = None
    for pair in pairs:
        yield pair
    if pair is None:
        raise DataError(error)


def _read_two_files(text: TextFiles) -> Iterator[Pair]:
    sides = [read_decoded(path, invalid_utf8=text.invalid_utf8) for path in text.paths]
    for number, (source, target) in enumerate(align_lines(sides, text.paths), start=1):
        yield Pair(source.text, target.text, number, source.replaced + target.replaced)


def _read_one_file(text: TextFiles) -> Iterator[Pair]:
    """Read one pair a line; a blank line is a pair without text."""
    (path,) = text.paths
    lines = read_decoded(path, invalid_utf8=text.invalid_utf8)
    for number, line in enumerate(lines, start=1):
        where = f"{path}, line {number}"
        if not has_text(line.text):
            source, target = "", ""
        elif ".tsv" in path.suffixes[-2:]:
            source, target = _parse_tsv(line.text, where)
        else:
            source, target = pair_from_record(
                parsed_json(line.text, where), (text.source, text.target), where, text.invalid_utf8
            )
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


def pair_from_record(
    record: object, languages: tuple[str, str], where: str, invalid_utf8: InvalidUtf8 = "error"
) -> tuple[str, str]:
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
    alike = tuple(match_language(language, names) or language for language in languages)
    for keys in (languages, ("source", "target"), alike):
        if all(key in record for key in keys):
            source, target = (checked_text(record[key], key, invalid_utf8, where) for key in keys)
            return source, target
    raise DataError(
        f'{where}: no keys "{languages[0]}" and "{languages[1]}", nor "source" and "target". '
        f"It has: {', '.join(map(str, list(record)[:8])) or 'none'}. Check the languages of source and target."
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


def _pair_limit(paths: tuple[Path, ...], limit: float | None) -> int | None:
    """Return the number of pairs to read, None for all; two files must have equally many lines."""
    if limit is None:
        return None
    counts = [count_lines(path) for path in paths] if len(paths) == 2 or limit < 1 else []
    if len(set(counts)) == 2:
        raise different_counts(paths, counts)
    return limited(limit, counts[0] if counts else 0)


def limited(limit: float, total: int) -> int:
    """Return a limit as a count: below 1 it is a share of all pairs, at least one."""
    return int(limit) if limit >= 1 else max(1, round(limit * total))


def chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield items in lists of the given size; the last one may be shorter."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
