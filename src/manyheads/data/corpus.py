"""The part of a file that a split is: the shares and limits of a configuration, and the pairs of a split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from bitext.file_names import Split
from bitext.lines import Line, count_lines, read_decoded
from bitext.pairs import Pair, TextFiles, limited
from bitext.pairs import read_pairs as pairs_of
from manyheads.config.schema import DataConfig
from manyheads.data.locate import locate


def text_files(config: DataConfig, split: Split) -> TextFiles:
    """Return the files of a split."""
    return TextFiles(locate(config, split), config.source, config.target, config.invalid_utf8)


def read_pairs(config: DataConfig, split: Split) -> Iterator[Pair]:
    """Read the pairs of a split from its files; at most `data.limit` of train."""
    return pairs_of(text_files(config, split), config.limit if split == "train" else None)


def numbered_lines(
    path: Path, config: DataConfig, first: int = 0, end: int | None = None
) -> Iterator[tuple[int, Line]]:
    """Read the lines of a file, numbered from 1: the lines from index `first`, counted from 0, up to `end`."""
    return islice(enumerate(read_decoded(path, invalid_utf8=config.invalid_utf8), start=1), first, end)


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
