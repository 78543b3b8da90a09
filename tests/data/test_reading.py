"""Plain text for a language model: a file as one text, or one text a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bitext.errors import DataError
from bitext.filtering import FilterCounts
from manyheads.config.schema import DataConfig
from manyheads.data.reading import read_text, require_pairs

TEXT = "one\n\n  two\tthree\none\nlast"


def read_all(folder: Path, split: str, **settings: Any) -> str:
    config = DataConfig(root=str(folder), language="en", train="text", **settings)
    return "".join(pair.target for pair in read_text(config, split))  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path


def test_a_file_is_read_unchanged_with_a_final_line_end(folder: Path) -> None:
    assert read_all(folder, "train", valid="text") == TEXT + "\n"


@pytest.mark.parametrize("share", [0.01, 0.1, 0.33, 0.5, 0.99])
def test_a_validation_share_is_split_off_at_a_character(folder: Path, share: float) -> None:
    first, last = (read_all(folder, split, valid=share) for split in ("train", "valid"))
    assert first + last == TEXT + "\n"
    total = len(TEXT) + 1
    assert len(last) == min(max(1, round(share * total)), total - 1)


@pytest.mark.parametrize("limit", [1, 7, 0.5])
def test_a_limit_counts_characters(folder: Path, limit: float) -> None:
    found = read_all(folder, "train", valid=0.2, limit=limit)
    rest = len(TEXT) + 1 - round(0.2 * (len(TEXT) + 1))
    assert found == TEXT[: limit if limit >= 1 else round(limit * rest)]  # type: ignore[misc]


def test_each_line_is_a_separate_text_if_documents_are_lines(folder: Path) -> None:
    config = DataConfig(root=str(folder), language="en", train="text", valid="text", documents="line")
    assert [pair.target for pair in read_text(config, "train")] == TEXT.split("\n")


def test_a_split_without_pairs_left_is_an_error_with_the_counts() -> None:
    with pytest.raises(DataError, match=r"data\.train leaves no pairs: 2 pairs read, 0 kept: 2 empty"):
        require_pairs(0, "data.train", FilterCounts(read=2, empty=2))
    require_pairs(1, "train")
