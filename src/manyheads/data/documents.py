"""Plain text in one file: each line is a document, or the whole file is one.

A `Pair` holds a line as its target, and "" as its source. The lines of a whole file keep their ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from manyheads.config.schema import DataConfig
from manyheads.data.corpus import Pair, kept_lines
from manyheads.data.lines import read_decoded
from manyheads.data.locate import Split, locate_one
from manyheads.errors import DataError

__all__ = ["read_documents", "read_text", "text_file"]

ENDINGS = (".txt",)


def text_file(config: DataConfig, split: Split) -> tuple[Path, ...]:
    """Find the only file of a split, with any ending."""
    return (locate_one(config, split, ENDINGS, need_ending=False),)


def read_documents(config: DataConfig, split: Split) -> Iterator[Pair]:
    """Read the lines of a split; at most `data.limit` of train.

    Raises:
        DataError: when called, the file is missing; while reading, it has no lines or no text.
    """
    (path,) = text_file(config, split)
    first, last = kept_lines(config, split, path)
    return numbered(path, config, first, last)


def numbered(path: Path, config: DataConfig, first: int, last: int | None) -> Iterator[Pair]:
    """Read the lines from `first`, counted from 0, up to `last`."""
    empty = True
    lines = enumerate(read_decoded(path, invalid_utf8=config.invalid_utf8), start=1)
    for number, line in islice(lines, first, last):
        empty = False
        yield Pair("", line.text, number, line.replaced)
    if empty:
        raise DataError(f"{path}: no lines. Name a file that holds text.")


def read_text(config: DataConfig, split: Split) -> Iterator[Pair]:
    """Read the text of a split for a language model, line by line; limits of a whole file count characters.

    Raises:
        DataError: as `read_documents`.
    """
    if config.documents == "line":
        return read_documents(config, split)
    (path,) = text_file(config, split)
    first, end = kept_lines(config, split, path, partial(count_characters, config))
    return cut(numbered(path, config, 0, None), first, end)


def count_characters(config: DataConfig, path: Path) -> int:
    """Count the characters of a file, a line end as one."""
    return sum(len(line.text) + 1 for line in read_decoded(path, invalid_utf8=config.invalid_utf8))


def cut(lines: Iterable[Pair], first: int, end: int | None) -> Iterator[Pair]:
    """Yield lines with their ends, cut to the characters from `first`, counted from 0, up to `end`."""
    place = 0
    for line in lines:
        text = f"{line.target}\n"
        kept = text[max(0, first - place) : None if end is None else max(0, end - place)]
        place += len(text)
        if kept:
            yield Pair("", kept, line.line, line.replaced)
        if end is not None and place >= end:
            return
