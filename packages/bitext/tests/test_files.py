"""Files and folders: whole or not there, whatever is interrupted, linked, locked, full or forbidden."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import portalocker
import pytest

from bitext import files
from bitext.errors import DataError, WriteError
from faults import FAILURES, PowerCutError, each_failure

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="links, modes and pipes of POSIX")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- drafts ---


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_failure_at_any_moment_leaves_the_old_or_the_new_content(
    tmp_path: Path, kind: str, failure: BaseException
) -> None:
    def write(path: Path, text: str) -> None:
        if kind == "file":
            files.write_atomically(path, text.encode())
            return
        with files.replacing(path) as draft:
            draft.mkdir()
            for name in ("one", "two"):
                (draft / name).write_text(text)

    def content(path: Path) -> set[str]:
        assert path.is_file() or names(path) == ["one", "two"]
        return {file.read_text() for file in ([path] if kind == "file" else path.iterdir())}

    folders = (tmp_path / str(number) for number in itertools.count())

    def prepare() -> Callable[[], None]:
        folder = next(folders)
        folder.mkdir()
        write(folder / "x", "old")
        return lambda: write(folder / "x", "new")

    for number in each_failure(prepare, failure):
        folder = tmp_path / str(number - 1)
        between = isinstance(failure, PowerCutError) and any(folder.glob(f"{files.DRAFTS}*/.old"))
        assert (between and not (folder / "x").exists()) or content(folder / "x") in ({"old"}, {"new"})
        files.remove_drafts(folder)
        write(folder / "x", "newest")
        assert content(folder / "x") == {"newest"}
        assert names(folder) == ["x"]


def test_drafts_have_unpredictable_names_that_begin_alike(tmp_path: Path) -> None:
    with files.drafting(tmp_path / "x") as one, files.drafting(tmp_path / "x") as two:
        assert one != two
        assert all(path.name.startswith(files.DRAFTS) for path in (one, two))
    assert names(tmp_path) == []


@POSIX
def test_links_and_folders_at_names_of_drafts_are_neither_followed_nor_in_the_way(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine")
    run = tmp_path / "run"
    run.mkdir()
    for name in (".x.draft", f"{files.DRAFTS}a", "x"):
        (run / name).symlink_to(outside / "mine")
    (run / f"{files.DRAFTS}b").symlink_to(outside)
    files.remove_drafts(run)
    files.write_atomically(run / "x", b"new")
    assert (outside / "mine").read_text() == "mine"
    assert (run / "x").read_text() == "new"
    assert not (run / "x").is_symlink()


@POSIX
@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664), (0o027, 0o640)])
def test_permissions_follow_the_umask(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        files.write_atomically(tmp_path / "file", b"x")
        with files.replacing(tmp_path / "folder") as draft:
            draft.mkdir()
            (draft / "file").touch()
        assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("file", "folder/file")] == [mode] * 2
        assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o777 & ~umask
    finally:
        os.umask(before)


@POSIX
def test_a_secret_is_never_readable_by_others(tmp_path: Path) -> None:
    seen: list[int] = []

    def look() -> None:
        for folder, _, found in os.walk(tmp_path):
            for path in (Path(folder, name) for name in found):
                private = path.parent != tmp_path and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
                seen.append(0 if private else stat.S_IMODE(path.stat().st_mode) & 0o077)

    replace, fsync = os.replace, os.fsync
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", lambda *arguments: (look(), replace(*arguments), look()))
        patch.setattr(os, "fsync", lambda handle: (look(), fsync(handle)))
        files.write_atomically(tmp_path / "secret", b"x", mode=0o600)
    assert seen
    assert set(seen) == {0}
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_names_of_any_allowed_length_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)
    with files.locked_output(path) as allowed, files.replacing_output(allowed) as draft:
        draft.write_text("x")
    assert names(tmp_path) == ["n" * 250]


@POSIX
def test_a_folder_is_discarded_at_once_and_links_in_it_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").touch()
    for path in (tmp_path / "folder", tmp_path / "link"):
        path.symlink_to(outside) if path.name == "link" else path.mkdir()
    (tmp_path / "folder" / "link").symlink_to(outside)
    for name in ("folder", "link", "missing"):
        files.discard(tmp_path / name)
    assert names(tmp_path) == ["outside"]
    assert names(outside) == ["mine"]


def test_a_folder_that_is_half_removed_has_lost_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr(files.shutil, "rmtree", lambda *arguments, **options: None)
    files.discard(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()
    assert all(name.startswith(files.DRAFTS) for name in names(tmp_path))


# --- syncing ---


def test_a_file_and_its_folder_are_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed = []
    monkeypatch.setattr(files.os, "fsync", lambda handle: flushed.append(os.fstat(handle).st_ino))
    files.write_atomically(tmp_path / "state.json", b"{}")
    assert flushed == [(tmp_path / "state.json").stat().st_ino, tmp_path.stat().st_ino]


def test_on_windows_files_are_flushed_and_folders_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl", reason="this is Windows")
    open_file, flushed = os.open, []

    def open_on_windows(path: Path, flags: int, *mode: int) -> int:
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return open_file(path, flags, *mode)

    def fsync_on_windows(handle: int) -> None:
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        flushed.append(os.fstat(handle).st_ino)

    draft = tmp_path / "draft"
    draft.write_bytes(b"{}")
    monkeypatch.setattr(files.sys, "platform", "win32")
    monkeypatch.setattr(files.os, "open", open_on_windows)
    monkeypatch.setattr(files.os, "fsync", fsync_on_windows)
    files._sync(tmp_path)
    files.put(draft, tmp_path / "state.json")
    assert flushed == [(tmp_path / "state.json").stat().st_ino]


# --- locks ---


def test_a_name_is_locked_for_one_writer_whose_draft_stays_and_the_lock_leaves_no_file(tmp_path: Path) -> None:
    refusal = r"out is being written by another process\. Wait for it"
    with files.locked_beside(tmp_path / "out", DataError), files.drafting(tmp_path / "out") as draft:
        (draft / "work").write_text("hours")
        with pytest.raises(DataError, match=refusal), files.locked_beside(tmp_path / "out", DataError):
            raise AssertionError
        with pytest.raises(WriteError, match=refusal), files.locked_output(tmp_path / "out"):
            raise AssertionError
        with files.locked_beside(tmp_path / "other", DataError):
            assert (draft / "work").read_text() == "hours"
    assert names(tmp_path) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from bitext.errors import DataError
from bitext.files import drafting, locked_beside

with locked_beside(Path(sys.argv[1]), DataError), drafting(Path(sys.argv[1])) as draft:
    (draft / "large").write_text("of a model's size")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills a process by a signal")
def test_the_next_writer_of_a_name_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "out")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 2
    with files.drafting(tmp_path / "other") as other, files.locked_beside(tmp_path / "out", DataError):
        assert {path.name for path in tmp_path.glob(f"{files.DRAFTS}*")} == {other.name}
    assert names(tmp_path) == []


def test_processes_that_wait_take_their_turns(tmp_path: Path) -> None:
    """The lock file is removed at each end, and no two threads may then hold two files of its name."""
    counter = tmp_path / "counter"
    counter.write_text("0")

    def count() -> None:
        for _ in range(10):
            with files.locked_beside(counter, DataError, wait=60):
                counter.write_text(str(int(counter.read_text()) + 1))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.read_text() == "40"


def test_a_lock_file_that_was_removed_meanwhile_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may lock the file that the holder of the lock removes at its end."""
    path, lock, locked = tmp_path / "lock", portalocker.lock, list[int]()

    def lock_and_remove(file: Any, flags: Any) -> None:
        lock(file, flags)
        locked.append(os.fstat(file.fileno()).st_ino)
        if len(locked) < 3:
            path.unlink()
        if len(locked) == 2:
            path.touch()

    monkeypatch.setattr(portalocker, "lock", lock_and_remove)
    with files.locked(path, DataError("in use")):
        assert path.stat().st_ino == locked[-1]
    assert len(locked) == 3


def make_link(lock: Path) -> None:
    lock.symlink_to(lock.with_name("mine"))


def forbid(lock: Path) -> None:
    lock.touch()
    lock.chmod(0)


@POSIX
@pytest.mark.parametrize(
    ("occupy", "message"),
    [
        (make_link, "link that is not followed"),
        (Path.mkdir, "This is a folder"),
        (os.mkfifo, "no regular file"),
        (forbid, "Permission denied.*Check who may"),
    ],
)
def test_a_lock_that_is_no_file_of_ours_is_refused(tmp_path: Path, occupy: Any, message: str) -> None:
    if occupy is forbid and os.geteuid() == 0:
        pytest.skip("root may open every file")
    occupy(tmp_path / ".lock")
    with (
        pytest.raises(DataError, match=f"cannot be locked for writing: .*{message}"),
        files.locked(tmp_path / ".lock", DataError("in use")),
    ):
        raise AssertionError
    assert not (tmp_path / "mine").exists()


def test_a_file_system_without_locks_is_an_error_with_advice(tmp_path: Path, monkeypatch: Any) -> None:
    def fail(*_: object) -> None:
        raise portalocker.LockException("no locks")

    monkeypatch.setattr(portalocker, "lock", fail)
    with (
        pytest.raises(DataError, match="no locks: name a local"),
        files.locked_beside(tmp_path / "out", DataError),
    ):
        raise AssertionError


# --- errors of the system ---


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        ("ENOSPC", "Free some space"),
        ("EDQUOT", "quota"),
        ("EACCES", "Check who may"),
        ("EPERM", "Check who may"),
        ("EROFS", "another one"),
        ("EMFILE", "ulimit -n"),
        ("ENFILE", "ulimit -n"),
        ("ENAMETOOLONG", "shorter name"),
        ("EISDIR", "name a file"),
        ("ENOTDIR", "is a file: name another place"),
        ("EEXIST", "remove it, or name another place"),
        ("ELOOP", "link"),
        ("EFBIG", "ulimit -f"),
        ("EIO", "check it"),
        ("ENOLCK", "local disk"),
        ("EBUSY", "Another program"),
        ("ENOENT", "Check the name"),
    ],
)
def test_each_error_has_its_cure_and_only_a_full_disk_is_told_to_free_space(number: str, advice: str) -> None:
    error = OSError(getattr(errno, number), os.strerror(getattr(errno, number)), "runs/x/file")
    with (
        pytest.raises(DataError) as caught,
        files.os_errors("the log could not be written to runs/x", DataError, "What was saved before is intact."),
    ):
        raise error
    message = str(caught.value)
    assert message.startswith(f"the log could not be written to runs/x: {error.strerror} (runs/x/file). What was")
    assert advice in message
    assert ("ree some space" in message) == (number in ("ENOSPC", "EDQUOT"))


def test_an_error_names_no_draft(tmp_path: Path) -> None:
    with pytest.raises(WriteError) as caught, files.writing(tmp_path / "missing" / "x"):
        files.write_atomically(tmp_path / "missing" / "x", b"")
    assert files.DRAFTS not in str(caught.value)


# --- folders ---


@POSIX
@pytest.mark.parametrize("at", ["cache", "cache/text", "cache/text/index.json", "metrics.jsonl"])
@pytest.mark.parametrize("kind", ["link", "dangling", "inside", "pipe"])
def test_a_link_or_a_pipe_where_a_run_is_written_is_refused(tmp_path: Path, at: str, kind: str) -> None:
    run, target = tmp_path / "run", tmp_path / "outside"
    (run / at).parent.mkdir(parents=True)
    (run / "inside").mkdir()
    target.mkdir()
    if kind == "pipe":
        os.mkfifo(run / at)
    else:
        (run / at).symlink_to({"link": target, "dangling": tmp_path / "none", "inside": run / "inside"}[kind])
    with pytest.raises(DataError, match=f"{at} is a.*Nothing is written or removed there"):
        files.refuse_links(run, ("cache", "metrics.jsonl"))
    files.refuse_links(run, ("checkpoints", "inside"))


# --- files that the user names ---


@POSIX
def test_an_output_behind_a_link_is_written_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "real").chmod(0o640)
    for name, target in (("link", "real"), ("dangling", "fresh")):
        (tmp_path / name).symlink_to(target)
        with files.locked_output(tmp_path / name) as path, files.replacing_output(path) as draft:
            draft.write_text("new")
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / target).read_text() == "new"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o640


@POSIX
def test_folders_and_files_that_must_not_be_written_are_refused_as_outputs(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "file").chmod(0o400)
    with pytest.raises(WriteError, match="This is a folder: name a file"), files.locked_output(tmp_path / "folder"):
        raise AssertionError
    if os.geteuid() == 0:
        pytest.skip("root may write every file")
    with pytest.raises(WriteError, match="Check who may"), files.locked_output(tmp_path / "file"):
        raise AssertionError


@POSIX
def test_pipes_devices_and_names_of_open_files_are_streams(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    for name, target in (("out", "/dev/stdout"), ("indirect", "out"), ("link", "file"), ("loop", "loop")):
        (tmp_path / name).symlink_to(target)
    streams = [tmp_path / name for name in ("pipe", "out", "indirect")] + [Path("/dev/null"), Path("/dev/stdout")]
    assert [files.is_stream(path) for path in [*streams, Path("/proc/self/fd/1")]] == [True] * 6
    others = [tmp_path, *(tmp_path / name for name in ("file", "link", "missing"))]
    assert [files.is_stream(path) for path in others] == [False] * 4
