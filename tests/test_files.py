"""A new folder is whole or not there; files of runs are plain, and of a sensible size."""

from __future__ import annotations

from pathlib import Path

import pytest

from manyheads import files
from manyheads.errors import RunError, SaveError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_folder_is_whole_or_missing(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    with pytest.raises(ZeroDivisionError), files.new_folder(out):
        raise ZeroDivisionError
    assert names(out.parent) == []
    out.mkdir()
    with files.new_folder(out) as draft:
        (draft / "one").touch()
        assert names(out) == []
    assert names(out) == ["one"]
    with pytest.raises(RunError, match="out exists"), files.new_folder(out):
        raise AssertionError
    with files.new_folder(tmp_path / "x.page") as draft:
        (draft / "one.page").write_text("page")
    assert (tmp_path / "x.page").read_text() == "page"


def test_a_folder_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="out exists"), files.new_folder(tmp_path / "out"):
        (tmp_path / "out" / "mine").mkdir(parents=True)
    assert names(tmp_path / "out") == ["mine"]
    assert names(tmp_path) == ["out"]


def test_the_errors_of_the_system_are_those_of_runs(tmp_path: Path) -> None:
    kept = r"the log could not be written to .* What was saved before is intact"
    with pytest.raises(SaveError, match=kept), files.saving("the log", tmp_path):
        raise OSError(28, "No space left on device")
    with pytest.raises(RunError, match="missing cannot be read"):
        files.read_bytes(tmp_path / "missing")
    (tmp_path / "large").write_bytes(b"x" * 9)
    with pytest.raises(RunError, match="it has 9 bytes, and at most 8"):
        files.read_bytes(tmp_path / "large", 8)
