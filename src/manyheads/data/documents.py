"""Plain text in one file: a line is a document, or all lines together are one.

A `Pair` holds a line as its target, and nothing as its source. Of a whole file a line has its end too.
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
    """The one file of a split, of any name."""
    return (locate_one(config, split, ENDINGS, need_ending=False),)


def read_documents(config: DataConfig, split: Split) -> Iterator[Pair]:
    """The lines of a split; of train only as many as data.limit says.

    Raises:
        DataError: at the call, the file is missing; while reading, it holds no lines or no text.
    """
    (path,) = text_file(config, split)
    first, last = kept_lines(config, split, path)
    return numbered(path, config, first, last)


def numbered(path: Path, config: DataConfig, first: int, last: int | None) -> Iterator[Pair]:
    """The lines from `first` on, counted from 0, up to `last`."""
    empty = True
    lines = enumerate(read_decoded(path, invalid_utf8=config.invalid_utf8), start=1)
    for number, line in islice(lines, first, last):
        empty = False
        yield Pair("", line.text, number, line.replaced)
    if empty:
        raise DataError(f"{path}: no lines. Name a file that holds text.")


def read_text(config: DataConfig, split: Split) -> Iterator[Pair]:
    """What a language model reads of a split, line by line; shares and limits of a whole file are of characters.

    Raises:
        DataError: as `read_documents`.
    """
    if config.documents == "line":
        return read_documents(config, split)
    (path,) = text_file(config, split)
    first, end = kept_lines(config, split, path, partial(count_characters, config))
    return cut(numbered(path, config, 0, None), first, end)


def count_characters(config: DataConfig, path: Path) -> int:
    """How many characters a file has, a line end being one."""
    return sum(len(line.text) + 1 for line in read_decoded(path, invalid_utf8=config.invalid_utf8))


def cut(lines: Iterable[Pair], first: int, end: int | None) -> Iterator[Pair]:
    """The characters of lines from `first` on, counted from 0, up to `end`; each line with its end."""
    place = 0
    for line in lines:
        text = f"{line.target}\n"
        kept = text[max(0, first - place) : None if end is None else max(0, end - place)]
        place += len(text)
        if kept:
            yield Pair("", kept, line.line, line.replaced)
        if end is not None and place >= end:
            return
