"""A file of suggestions grows by whole lines only, from several processes, and until it is full."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from manyheads.data import suggestions
from manyheads.data.suggestions import Suggestion, SuggestionFile
from manyheads.errors import DataError, WriteError

ONE = Suggestion(
    "2026-01-02T03:04:05+00:00", ("de", "en"), "Ein\nHund", "A\tcat", 'A "dog"\u2028\ud800', "0123456789ab"
)
APPEND = """
import sys
from pathlib import Path
from manyheads.data.suggestions import Suggestion, SuggestionFile
for number in range(20):
    SuggestionFile(Path(sys.argv[1])).append(Suggestion("t", ("de", "en"), sys.argv[2] * 2000, "o", str(number)))
"""


def test_what_is_appended_is_read_again(tmp_path: Path) -> None:
    file = SuggestionFile(tmp_path / "new" / "s.jsonl")
    file.check()
    assert file.read() == ([], [])
    file.append(ONE)
    file.append(ONE)
    stored = replace(ONE, correction=ONE.correction.replace("\ud800", "?"))
    assert file.read() == ([stored] * 2, [])
    assert file.path.read_bytes().count(b"\n") == 2
    if sys.platform != "win32":
        assert file.path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.path.parent.iterdir()] == ["s.jsonl"]


def test_lines_that_hold_no_suggestion_are_named_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(
        b'{"half": \n[]\n{"languages": ["de", 5], "time": "", "source": "", "output": "", "correction": ""}\n\xff'
    )
    SuggestionFile(path).append(ONE)  # after the last line, which a crash has left without an end
    found, damaged = SuggestionFile(path).read()
    assert (len(found), damaged) == (1, [1, 2, 3, 4])


@pytest.mark.parametrize("fault", ["write", "fsync"])
def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    file = SuggestionFile(tmp_path / "s.jsonl")
    file.append(ONE)
    before = file.path.read_bytes()
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    class FullDisk(io.FileIO):
        def write(self, content: Any) -> int:
            if len(content) < 40:
                raise full
            return super().write(bytes(content)[: len(content) // 2])

    def fail(_: int) -> None:
        raise full

    if fault == "write":
        monkeypatch.setattr(suggestions, "open", lambda path, mode, **_: FullDisk(path, "a+"), raising=False)
    else:
        monkeypatch.setattr(suggestions.os, "fsync", fail)
    with pytest.raises(WriteError, match="cannot be written: No space left"):
        file.append(ONE)
    monkeypatch.undo()
    assert file.path.read_bytes() == before
    file.append(ONE)
    assert file.path.read_bytes() == before * 2


def test_a_full_file_takes_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = SuggestionFile(tmp_path / "s.jsonl")
    file.append(ONE)
    monkeypatch.setattr(suggestions, "MAX_BYTES", 2 * file.path.stat().st_size - 1)
    with pytest.raises(WriteError, match=r"is the most\. Review it, and move it away"):
        file.append(ONE)
    assert len(file.read()[0]) == 1


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="no regular file"):
        SuggestionFile(tmp_path).check()
    with pytest.raises(DataError, match="cannot be read"):
        SuggestionFile(tmp_path / "nothing").read()


def test_two_processes_extend_one_file_by_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    commands = [[sys.executable, "-c", APPEND, str(path), letter] for letter in "ab"]
    processes = [subprocess.Popen(command) for command in commands]
    assert [process.wait(120) for process in processes] == [0, 0]
    found, damaged = SuggestionFile(path).read()
    assert damaged == []
    for letter in "ab":
        numbers = [suggestion.correction for suggestion in found if suggestion.source == letter * 2000]
        assert numbers == [str(number) for number in range(20)]
