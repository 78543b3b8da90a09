"""Plain text in one file: a line is a document. A `Pair` holds it as its target, and nothing as its source."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from manyheads.config.schema import DataConfig
from manyheads.data.corpus import Pair, kept_lines
from manyheads.data.lines import read_decoded
from manyheads.data.locate import Split, locate_one
from manyheads.errors import DataError

__all__ = ["read_documents", "text_file"]

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
