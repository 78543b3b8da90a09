"""Hugging Face data sets: with the real package where it is installed, and with a fake of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from manyheads.config.schema import DataConfig
from manyheads.data.hub import read_hub_pairs
from manyheads.errors import DataError, MissingExtraError

ROWS = [{"translation": {"de": f"Satz {number}", "en": f"sentence {number}"}} for number in range(5)]
PAIRS = [(f"Satz {number}", f"sentence {number}", number + 1) for number in range(5)]


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


# --- a fake of the package ---


class DatasetNotFoundError(FileNotFoundError):
    """Stand in for the error of the package."""


class FakeStream:
    """Stand in for a streamed split: iterable, without a length."""

    def __init__(self, rows: list[Any], described: dict[str, Any] | None = None) -> None:
        self.rows = rows
        self.info = SimpleNamespace(splits=described)
        self.read = 0

    def __iter__(self) -> Iterator[Any]:
        for row in self.rows:
            if isinstance(row, Exception):
                raise row
            self.read += 1
            yield row


class FakeDatasets(ModuleType):
    """Stand in for the parts of the package that `manyheads.data.hub` uses."""

    def __init__(self, **known: dict[str, FakeStream] | Exception) -> None:
        super().__init__("datasets")
        self.known = known
        self.requested: list[str] = []
        self.exceptions = SimpleNamespace(DatasetNotFoundError=DatasetNotFoundError)

    def load_dataset(self, name: str, part: str | None = None, *, streaming: bool) -> Any:
        assert streaming
        self.requested.append(f"{name} {part}" if part else name)
        answer = self.known.get(self.requested[-1].replace("/", "_").replace(" ", "__"))
        if answer is None:
            raise DatasetNotFoundError(f"Dataset '{name}' doesn't exist on the Hub\nor cannot be accessed.")
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install_fake(**known: Any) -> FakeDatasets:
        hub = FakeDatasets(**known)
        monkeypatch.setitem(sys.modules, "datasets", hub)
        return hub

    return install_fake


@pytest.mark.parametrize(
    ("name", "key", "requested"),
    [
        ("wmt16", "wmt16", ["wmt16"]),
        ("wmt16/de-en", "wmt16__de", ["wmt16 de-en"]),
        ("owner/name", "owner_name", ["owner name", "owner/name"]),
        ("owner/name/de-en", "owner_name__de", ["owner/name de-en"]),
    ],
)
def test_a_data_set_name_is_read_as_name_and_configuration_or_owner_and_name(
    tmp_path: Path, install: Any, name: str, key: str, requested: list[str]
) -> None:
    hub = install(**{key + "-en" if key.endswith("__de") else key: {"train": FakeStream(ROWS)}})
    assert read_all(config(tmp_path, f"hf:{name}")) == PAIRS
    assert hub.requested == requested


@pytest.mark.parametrize("name", ["nobody", "nobody/nothing", "nobody/nothing/de-en"])
def test_an_error_on_an_unknown_data_set_is_one_line(tmp_path: Path, install: Any, name: str) -> None:
    install()
    with pytest.raises(DataError) as caught:
        read_hub_pairs(config(tmp_path, f"hf:{name}"), "train")
    assert f'"hf:{name}" cannot be opened' in str(caught.value)
    assert "doesn't exist on the Hub or cannot be accessed" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_network_error_is_raised_without_trying_another_name(tmp_path: Path, install: Any) -> None:
    hub = install(wmt16__dex=ConnectionError("Couldn't reach 'wmt16' on the Hub"))
    with pytest.raises(DataError, match=r"Couldn't reach 'wmt16' on the Hub\. Check its name and the network"):
        read_hub_pairs(config(tmp_path, "hf:wmt16/dex"), "train")
    assert len(hub.requested) == 1


@pytest.mark.parametrize("name", ["", "a/b/c/d"])
def test_a_name_with_too_many_parts_or_none_is_refused(tmp_path: Path, install: Any, name: str) -> None:
    hub = install()
    (tmp_path / "a").mkdir()
    with pytest.raises(DataError, match="neither a folder nor NAME/CONFIG"):
        read_hub_pairs(config(tmp_path, f"hf:{name}"), "train")
    assert not hub.requested


def test_a_data_set_without_the_prefix_hf_is_refused(tmp_path: Path, install: Any) -> None:
    hub = install(x={"train": FakeStream(ROWS)})
    with pytest.raises(DataError, match=r'data\.dataset = "x" is none that is known'):
        read_hub_pairs(config(tmp_path, "x"), "train")
    assert not hub.requested


def test_an_error_on_a_missing_split_suggests_the_split_that_is_meant(tmp_path: Path, install: Any) -> None:
    install(x={"train": FakeStream(ROWS), "validation": FakeStream(ROWS)})
    with pytest.raises(
        DataError, match=r'no split "valid"\. It has: train, validation\. Use data\.valid = "validation"'
    ):
        read_hub_pairs(config(tmp_path, "hf:x"), "valid")


def test_rows_that_fail_while_reading_are_named_by_number(tmp_path: Path, install: Any) -> None:
    install(x={"train": FakeStream([*ROWS[:2], TimeoutError("the read\ntimed out")])})
    with pytest.raises(DataError, match='hf:x, split "train": reading failed after row 2: the read timed out'):
        read_all(config(tmp_path, "hf:x"))


def test_a_row_without_the_two_texts_is_named(tmp_path: Path, install: Any) -> None:
    install(x={"train": FakeStream([*ROWS, {"translation": {"de": "a", "fr": "b"}}])})
    with pytest.raises(DataError, match=r'hf:x, split "train", row 6: no keys "de" and "en".*It has: de, fr'):
        read_all(config(tmp_path, "hf:x"))


def test_a_split_without_rows_is_refused(tmp_path: Path, install: Any) -> None:
    install(x={"train": FakeStream([])})
    with pytest.raises(DataError, match="no rows"):
        read_all(config(tmp_path, "hf:x"))


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


@pytest.fixture
def datasets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    module = pytest.importorskip("datasets")
    monkeypatch.setattr(module.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    return module


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


def test_a_folder_without_data_is_a_data_error(datasets: Any, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    with pytest.raises(DataError, match='"hf:set" cannot be opened'):
        read_hub_pairs(config(tmp_path, "hf:set"), "train")
