"""Read Hugging Face data sets as pairs: data.dataset = "hf:wmt16/de-en", or a local folder in the same layout."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sized
from pathlib import Path
from typing import Any

from bitext.file_names import Split, best_match
from bitext.hub import PREFIX, failures_named, numbered_rows, open_splits
from bitext.pairs import Pair, limited, not_empty, pair_from_record
from manyheads.config.schema import DataConfig
from manyheads.data.locate import split_setting
from manyheads.errors import DataError, require


def read_hub_pairs(config: DataConfig, split: Split) -> Iterator[Pair]:
    """Read the pairs of a split of a data set; `Pair.line` is the row, counted from 1.

    `bitext.hub.open_splits` says what comes after "hf:". A row is {"translation": {"de": ..., "en": ...}}, or holds
    the two texts itself.

    Raises:
        MissingExtraError: the package datasets is not installed.
        DataError: when called, there is no such data set or split, or no network; while reading, a row lacks a
            text, a request fails, or the split has no rows.
    """
    dataset = config.dataset or ""
    split_name = split_setting(config, split)
    assert isinstance(split_name, str)
    setting = f'data.dataset = "{dataset}"'
    if not dataset.startswith(PREFIX):
        raise DataError(f'{setting} is none that is known. It must begin with "builtin:" or "hf:".')
    datasets = require("datasets", extra="hf", purpose=setting)
    splits = open_splits(datasets, dataset, Path(config.root).expanduser(), setting)
    if split_name not in splits:
        match = best_match(split_name, splits)
        cure = f' Use data.{split} = "{match}".' if match else ""
        raise DataError(f'{dataset} has no split "{split_name}". It has: {", ".join(splits) or "none"}.{cure}')
    where = f'{dataset}, split "{split_name}"'
    rows, count = splits[split_name], None
    if split == "train" and config.limit is not None:
        with failures_named(f"{where}: its rows cannot be counted"):
            count = limited(config.limit, _row_count(rows, split_name) if config.limit < 1 else 0)
    pairs = (
        Pair(
            *pair_from_record(row, (config.source, config.target), f"{where}, row {number:,}", config.invalid_utf8),
            number,
        )
        for number, row in numbered_rows(itertools.islice(rows, count), where)
    )
    return not_empty(pairs, f"{where}: no rows. Name a split that holds text.")


def _row_count(rows: Any, split: str) -> int:
    """Return the number of rows of a split: its length, the described number, or else counted by reading it."""
    if isinstance(rows, Sized):
        return len(rows)
    described = (rows.info.splits or {}).get(split)
    return described.num_examples if described else sum(1 for _ in rows)
