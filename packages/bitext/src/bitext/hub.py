"""Open Hugging Face data sets, such as hf:wmt16/de-en, or local folders in the same layout.

Rows are streamed or memory-mapped.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from bitext.errors import DataError

PREFIX = "hf:"


def numbered_rows(rows: Iterable[object], where: str) -> Iterator[tuple[int, object]]:
    """Yield the rows of a split, numbered from 1; an error while reading names the last good row."""
    source = iter(rows)
    for number in itertools.count(1):
        with failures_named(f"{where}: reading failed after row {number - 1:,}"):
            row = next(source, None)
        if row is None:
            return
        yield number, row


def open_splits(
    datasets: ModuleType, dataset: str, root: Path, what: str | None = None
) -> Mapping[str, Iterable[object]]:
    """Open the splits of a data set: from a folder if there is one of this name, else from the hub.

    After "hf:" comes NAME, NAME/CONFIG, OWNER/NAME, OWNER/NAME/CONFIG, or a folder (below `root`) that `datasets`
    saved to disk or that holds .jsonl or .parquet files named by split. Messages begin with `what`, by default the
    data set.

    Raises:
        DataError: the data set cannot be opened.
    """
    name, what = dataset.removeprefix(PREFIX), what or dataset
    folder = root / name
    if not name or (name.count("/") > 2 and not folder.is_dir()):
        raise DataError(f"{what} is neither a folder nor NAME/CONFIG nor OWNER/NAME/CONFIG.")
    cure = "" if folder.is_dir() else f" Check its name and the network; there is no folder {folder} either."
    with failures_named(f"{what} cannot be opened", cure):
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


@contextmanager
def failures_named(what: str, cure: str = "") -> Iterator[None]:
    """Turn any error of the `datasets` package into a `DataError` that names the data set."""
    try:
        yield
    except Exception as error:  # network, disk, format, name: each of these packages has separate exception classes
        message = " ".join(str(error).split()) or type(error).__name__
        message = message if len(message) <= 300 else f"{message[:300]}..."
        raise DataError(f"{what}: {message.removesuffix('.')}.{cure}") from error
