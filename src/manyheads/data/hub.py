"""Read Hugging Face data sets as pairs: data.dataset = "hf:wmt16/de-en", or a local folder in the same layout.

Rows are streamed or memory-mapped.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from manyheads.config.schema import DataConfig
from manyheads.data.corpus import Pair, limited, not_empty, pair_from_record
from manyheads.data.locate import Split, best_match, split_setting
from manyheads.errors import DataError, require

PREFIX = "hf:"


def read_hub_pairs(config: DataConfig, split: Split) -> Iterator[Pair]:
    """Read the pairs of a split of a data set; `Pair.line` is the row, counted from 1.

    After "hf:" comes NAME, NAME/CONFIG, OWNER/NAME, OWNER/NAME/CONFIG, or a folder (from data.root) that
    `datasets` saved to disk or that holds .jsonl or .parquet files named by split. A row is
    {"translation": {"de": ..., "en": ...}}, or holds the two texts itself.

    Raises:
        MissingExtraError: the package datasets is not installed.
        DataError: when called, there is no such data set or split, or no network; while reading, a row lacks a
            text, a request fails, or the split has no rows.
    """
    dataset = config.dataset or ""
    split_name = split_setting(config, split)
    assert isinstance(split_name, str)
    datasets = require("datasets", extra="hf", purpose=f'data.dataset = "{dataset}"')
    splits = open_splits(datasets, dataset, Path(config.root).expanduser())
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
        Pair(*pair_from_record(row, config, f"{where}, row {number:,}"), number)
        for number, row in numbered_rows(itertools.islice(rows, count), where)
    )
    return not_empty(pairs, f"{where}: no rows. Name a split that holds text.")


def numbered_rows(rows: Iterable[object], where: str) -> Iterator[tuple[int, object]]:
    """Yield the rows of a split, numbered from 1; an error while reading names the last good row."""
    source = iter(rows)
    for number in itertools.count(1):
        with failures_named(f"{where}: reading failed after row {number - 1:,}"):
            row = next(source, None)
        if row is None:
            return
        yield number, row


def open_splits(datasets: ModuleType, dataset: str, root: Path) -> Mapping[str, Iterable[object]]:
    """Open the splits of a data set: from a folder if there is one of this name, else from the hub.

    Raises:
        DataError: the data set cannot be opened.
    """
    name = dataset.removeprefix(PREFIX)
    if name == dataset:
        raise DataError(
            f'data.dataset = "{dataset}" is none that is known. It must begin with "builtin:" or "hf:".'
        )
    folder = root / name
    if not name or (name.count("/") > 2 and not folder.is_dir()):
        raise DataError(f'data.dataset = "{dataset}" is neither a folder nor NAME/CONFIG nor OWNER/NAME/CONFIG.')
    cure = "" if folder.is_dir() else f" Check its name and the network; there is no folder {folder} either."
    with failures_named(f'data.dataset = "{dataset}" cannot be opened', cure):
        return _open_folder(datasets, folder) if folder.is_dir() else _open_remote(datasets, name)


def _open_folder(datasets: ModuleType, folder: Path) -> Any:
    """Open a data set on disk: memory-mapped if `datasets` saved it, else its files are streamed."""
    if (folder / "dataset_dict.json").is_file():
        return datasets.load_from_disk(str(folder))
    if (folder / "state.json").is_file():
        single = datasets.load_from_disk(str(folder))
        return {str(single.split or "train"): single}
    return datasets.load_dataset(str(folder), streaming=True)


def _open_remote(datasets: ModuleType, name: str) -> Any:
    """Open a data set of the hub; "a/b" is configuration b of data set a, otherwise data set b of owner a."""
    first, _, second = name.rpartition("/")
    if not first:
        return datasets.load_dataset(name, streaming=True)
    try:
        return datasets.load_dataset(first, second, streaming=True)
    except datasets.exceptions.DatasetNotFoundError:
        if "/" in first:
            raise
        return datasets.load_dataset(name, streaming=True)


def _row_count(rows: Any, split: str) -> int:
    """Return the number of rows of a split: its length, the described number, or else counted by reading it."""
    if isinstance(rows, Sized):
        return len(rows)
    described = (rows.info.splits or {}).get(split)
    return described.num_examples if described else sum(1 for _ in rows)


@contextmanager
def failures_named(what: str, cure: str = "") -> Iterator[None]:
    """Turn any error of the `datasets` package into a `DataError` that names the data set."""
    try:
        yield
    except Exception as error:  # network, disk, format, name: each of these packages has separate exception classes
        message = " ".join(str(error).split()) or type(error).__name__
        message = message if len(message) <= 300 else f"{message[:300]}..."
        raise DataError(f"{what}: {message.removesuffix('.')}.{cure}") from error
