"""All files are moved to their folder at the end, or none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bitext.errors import DataError
from bitext.lines import read_lines
from bitext.placing import open_packed, placing_files
from faults import needs_signals, run_killed


def test_files_appear_at_the_end_and_the_draft_is_removed(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    with placing_files(out, "text") as draft:
        (draft / "one").write_text("1", encoding="utf-8")
        (draft / "two").write_text("2", encoding="utf-8")
        assert not (out / "one").exists()
    assert sorted(path.name for path in out.iterdir()) == ["one", "two"]


def write_part_and_fail(out: Path) -> None:
    with placing_files(out, "text") as draft:
        (draft / "one").write_text("1", encoding="utf-8")
        raise ZeroDivisionError


def test_an_error_removes_a_new_folder_and_leaves_an_existing_one_unchanged(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "mine").write_text("mine", encoding="utf-8")
    for name in ("old", "new"):
        with pytest.raises(ZeroDivisionError):
            write_part_and_fail(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert [path.name for path in (tmp_path / "old").iterdir()] == ["mine"]


def test_a_full_disk_is_an_error_with_advice(tmp_path: Path) -> None:
    with (
        pytest.raises(DataError, match=r"out cannot be written: No space left.*Free some space"),
        placing_files(tmp_path / "out", "text"),
    ):
        raise OSError(28, "No space left on device")


KILLED = """
import os, sys
from pathlib import Path
from bitext.placing import placing_files

moves, replace = [], os.replace

def replace_or_kill(draft, path):
    if len(moves) == int(sys.argv[2]):
        kill()
    moves.append(replace(draft, path))
    if len(moves) == int(sys.argv[3]):
        kill()

os.replace = replace_or_kill
with placing_files(Path(sys.argv[1]), "text") as draft:
    for name in ("one", "two"):
        (draft / name).write_text("of a killed process")
    if len(sys.argv) > 4:
        kill()
"""


@needs_signals
@pytest.mark.parametrize("arguments", [(0, 9, "before the end"), (0, 9), (1, 9), (9, 1)], ids=str)
def test_the_next_call_removes_what_a_killed_process_left(tmp_path: Path, arguments: tuple[object, ...]) -> None:
    run_killed(KILLED, tmp_path, *arguments)
    assert (tmp_path / "one").exists() == (1 in arguments)
    with placing_files(tmp_path, "other"):  # another name: nothing of it is touched
        pass
    assert len(list(tmp_path.glob(".draft-*/two"))) == 1
    with placing_files(tmp_path, "text"):
        assert not (tmp_path / "one").exists()
    assert list(tmp_path.iterdir()) == []


@needs_signals
@pytest.mark.parametrize("replaced", [True, False])
def test_what_is_complete_or_of_others_is_not_taken_back(tmp_path: Path, replaced: bool) -> None:
    run_killed(KILLED, tmp_path, *((1, 9) if replaced else (9, 2)))
    if replaced:
        (tmp_path / "one").unlink()
        (tmp_path / "one").write_text("mine")
    with placing_files(tmp_path, "text"):
        pass
    names = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert names == ({"one": "mine"} if replaced else dict.fromkeys(("one", "two"), "of a killed process"))


def write_one_and_two(out: Path) -> None:
    with placing_files(out, "text") as draft:
        for name in ("one", "two"):
            (draft / name).touch()


def test_an_error_at_the_second_file_takes_the_first_one_back(tmp_path: Path) -> None:
    (tmp_path / "out" / "two" / "taken").mkdir(parents=True)
    with pytest.raises(DataError, match=r"out cannot be written: Is a directory"):
        write_one_and_two(tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["two"]


def test_the_note_of_sources_is_moved_before_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[str] = []
    replace = os.replace

    def record_rename(path: Path, target: Path) -> None:
        moved.append(target.name)
        replace(path, target)

    monkeypatch.setattr(os, "replace", record_rename)
    with placing_files(tmp_path, "text") as draft:
        for name in ("text.uk.gz", "text.de.gz", "text.sources.json"):
            (draft / name).touch()
    assert moved == ["text.sources.json", "text.de.gz", "text.uk.gz"]


def test_two_processes_do_not_write_the_same_draft(tmp_path: Path) -> None:
    with placing_files(tmp_path, "text") as draft, placing_files(tmp_path, "other"):
        (draft / "one").write_text("1", encoding="utf-8")
        with (
            pytest.raises(DataError, match=r"text is being written by another process"),
            placing_files(tmp_path, "text"),
        ):
            raise AssertionError
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".zst"])
def test_a_file_is_compressed_by_its_suffix(tmp_path: Path, ending: str) -> None:
    if ending == ".zst":
        pytest.importorskip("zstandard")
    path = tmp_path / f"text.ko{ending}"
    for _ in range(2):
        with open_packed(path) as stream:
            stream.write("가\n나\n".encode() * 1_000)
        content = path.read_bytes()
    assert [*read_lines(path)] == ["가", "나"] * 1_000
    assert (len(content) < 5_000) == bool(ending)
