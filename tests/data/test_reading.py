"""Plain text as a language model reads it: a file as it stands, or its lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from manyheads.config.schema import DataConfig
from manyheads.data.reading import read_text

TEXT = "one\n\n  two\tthree\none\nlast"


def whole(folder: Path, split: str, **settings: Any) -> str:
    config = DataConfig(root=str(folder), language="en", train="text", **settings)
    return "".join(pair.target for pair in read_text(config, split))  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path


def test_a_file_comes_as_it_stands(folder: Path) -> None:
    assert whole(folder, "train", valid="text") == TEXT + "\n"


@pytest.mark.parametrize("share", [0.01, 0.1, 0.33, 0.5, 0.99])
def test_a_share_cuts_between_two_characters(folder: Path, share: float) -> None:
    first, last = (whole(folder, split, valid=share) for split in ("train", "valid"))
    assert first + last == TEXT + "\n"
    total = len(TEXT) + 1
    assert len(last) == min(max(1, round(share * total)), total - 1)


@pytest.mark.parametrize("limit", [1, 7, 0.5])
def test_a_limit_is_of_characters(folder: Path, limit: float) -> None:
    found = whole(folder, "train", valid=0.2, limit=limit)
    rest = len(TEXT) + 1 - round(0.2 * (len(TEXT) + 1))
    assert found == TEXT[: limit if limit >= 1 else round(limit * rest)]  # type: ignore[misc]


def test_lines_are_texts_of_their_own(folder: Path) -> None:
    config = DataConfig(root=str(folder), language="en", train="text", valid="text", documents="line")
    assert [pair.target for pair in read_text(config, "train")] == TEXT.split("\n")
