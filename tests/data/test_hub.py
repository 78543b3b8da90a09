"""Hugging Face data sets: with the real package where it is installed, and with a fake of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bitext.errors import DataError, MissingExtraError
from fake_datasets import PAIRS, ROWS, FakeStream, datasets, install
from manyheads.config.schema import DataConfig
from manyheads.data.hub import read_hub_pairs

__all__ = ["datasets", "install"]


def config(root: Path, dataset: str, **settings: Any) -> DataConfig:
    return DataConfig(root=str(root), dataset=dataset, source="de", target="en", **settings)


def read_all(config: DataConfig, split: Any = "train") -> list[tuple[str, str, int]]:
    return [(pair.source, pair.target, pair.line) for pair in read_hub_pairs(config, split)]


def test_an_error_without_the_package_names_the_extra_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r'hf:wmt16/de-en.*pip install "manyheads\[hf\]"'):
        read_hub_pairs(config(tmp_path, "hf:wmt16/de-en"), "train")


@pytest.mark.parametrize(
    ("dataset", "splits", "split", "message"),
    [
        ("x", {"train": ROWS}, "train", r'data\.dataset = "x" is none that is known'),
        (
            "hf:x", {"train": ROWS, "validation": ROWS}, "valid",
            r'no split "valid"\. It has: train, validation\. Use data\.valid = "validation"',
        ),
        (
            "hf:x", {"train": [*ROWS, {"translation": {"de": "a", "fr": "b"}}]}, "train",
            r'hf:x, split "train", row 6: no keys "de" and "en".*It has: de, fr',
        ),
        ("hf:x", {"train": []}, "train", "no rows"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_data_set_is_named(
    tmp_path: Path, install: Any, dataset: str, splits: dict[str, Any], split: str, message: str
) -> None:
    hub = install(x={name: FakeStream(rows) for name, rows in splits.items()})
    with pytest.raises(DataError, match=message):
        read_all(config(tmp_path, dataset), split)
    assert bool(hub.requested) == dataset.startswith("hf:")


@pytest.mark.parametrize(("limit", "expected"), [(2, 2), (0.4, 2), (0.01, 1), (99, 5)])
@pytest.mark.parametrize("described", [None, {"train": SimpleNamespace(num_examples=5)}])
def test_the_limit_is_a_count_or_a_share_of_the_rows_of_train(
    tmp_path: Path, install: Any, limit: float, expected: int, described: Any
) -> None:
    stream = FakeStream(ROWS, described)
    install(x={"train": stream, "validation": FakeStream(ROWS)})
    limited = config(tmp_path, "hf:x", limit=limit, valid="validation")
    assert read_all(limited) == PAIRS[:expected]
    assert read_all(limited, "valid") == PAIRS
    if described or limit >= 1:
        assert stream.read == expected  # no row beyond the last is read


# --- the real package, on folders ---


def test_a_data_set_saved_to_disk_can_be_read(datasets: Any, tmp_path: Path) -> None:
    rows = datasets.Dataset.from_list(ROWS)
    datasets.DatasetDict({"train": rows, "validation": rows.select(range(2))}).save_to_disk(tmp_path / "saved")
    saved = config(tmp_path, "hf:saved", valid="validation")
    assert read_all(saved) == PAIRS
    assert read_all(saved, "valid") == PAIRS[:2]
    assert read_all(config(tmp_path, "hf:saved/train", limit=0.4)) == PAIRS[:2]


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_folder_of_files_named_by_split_can_be_read(datasets: Any, tmp_path: Path, kind: str) -> None:
    (tmp_path / "set").mkdir()
    if kind == "jsonl":
        (tmp_path / "set" / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        datasets.Dataset.from_list(ROWS).to_parquet(tmp_path / "set" / "train-00000-of-00001.parquet")
    assert read_all(config(tmp_path, "hf:set")) == PAIRS
    assert read_all(config(tmp_path, "hf:set", limit=0.4)) == PAIRS[:2]
    with pytest.raises(DataError, match=r'no split "valid"\. It has: train\.'):
        read_hub_pairs(config(tmp_path, "hf:set"), "valid")
