"""Hugging Face data sets: with the real package where it is installed, and with a fake of it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from bitext.errors import DataError
from bitext.hub import numbered_rows, open_splits
from fake_datasets import PAIRS, ROWS, FakeStream, datasets, install

__all__ = ["datasets", "install"]


def read_all(dataset: str, root: Path = Path()) -> list[tuple[str, str, int]]:
    rows: Any = open_splits(import_module("datasets"), dataset, root)["train"]
    numbered: Any = numbered_rows(rows, f'{dataset}, split "train"')
    return [(row["translation"]["de"], row["translation"]["en"], number) for number, row in numbered]


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
    assert read_all(f"hf:{name}") == PAIRS
    assert hub.requested == requested


@pytest.mark.parametrize("name", ["nobody", "nobody/nothing", "nobody/nothing/de-en"])
def test_an_error_on_an_unknown_data_set_is_one_line(tmp_path: Path, install: Any, name: str) -> None:
    install()
    with pytest.raises(DataError) as caught:
        read_all(f"hf:{name}")
    assert f"hf:{name} cannot be opened" in str(caught.value)
    assert "doesn't exist on the Hub or cannot be accessed" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_network_error_is_raised_without_trying_another_name(tmp_path: Path, install: Any) -> None:
    hub = install(wmt16__dex=ConnectionError("Couldn't reach 'wmt16' on the Hub"))
    with pytest.raises(DataError, match=r"Couldn't reach 'wmt16' on the Hub\. Check its name and the network"):
        read_all("hf:wmt16/dex")
    assert len(hub.requested) == 1


@pytest.mark.parametrize("name", ["", "a/b/c/d"])
def test_a_name_with_too_many_parts_or_none_is_refused(tmp_path: Path, install: Any, name: str) -> None:
    hub = install()
    (tmp_path / "a").mkdir()
    with pytest.raises(DataError, match="neither a folder nor NAME/CONFIG"):
        read_all(f"hf:{name}", tmp_path)
    assert not hub.requested


def test_rows_that_fail_while_reading_are_named_by_number(tmp_path: Path, install: Any) -> None:
    install(x={"train": FakeStream([*ROWS[:2], TimeoutError("the read\ntimed out")])})
    with pytest.raises(DataError, match='hf:x, split "train": reading failed after row 2: the read timed out'):
        read_all("hf:x")


# --- the real package, on folders ---


def test_a_folder_without_data_is_a_data_error(datasets: Any, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    with pytest.raises(DataError, match="hf:set cannot be opened"):
        read_all("hf:set", tmp_path)
