"""Files are flushed to disk, also on Windows, which flushes neither folders nor files opened for reading."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from manyheads.checkpoint import files


def test_a_file_and_its_folder_are_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed = []
    monkeypatch.setattr(files.os, "fsync", lambda handle: flushed.append(os.fstat(handle).st_ino))
    files.write_atomically(tmp_path / "state.json", b"{}")
    files.sync(tmp_path)
    assert flushed == [(tmp_path / "state.json").stat().st_ino, tmp_path.stat().st_ino]


def test_on_windows_files_are_flushed_and_folders_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl", reason="this is Windows")
    open_file, flushed = os.open, []

    def open_on_windows(path: Path, flags: int) -> int:
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return open_file(path, flags)

    def fsync_on_windows(handle: int) -> None:
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        flushed.append(os.fstat(handle).st_ino)

    monkeypatch.setattr(files.sys, "platform", "win32")
    monkeypatch.setattr(files.os, "open", open_on_windows)
    monkeypatch.setattr(files.os, "fsync", fsync_on_windows)
    files.sync(tmp_path)
    files.write_atomically(tmp_path / "state.json", b"{}")
    assert flushed == [(tmp_path / "state.json").stat().st_ino]
