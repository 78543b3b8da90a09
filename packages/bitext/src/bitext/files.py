"""Write files and folders so that no crash, link or second process damages them.

What is written appears under its name when it is complete: it is made in a private folder beside it, `.draft-...`,
with an unpredictable name that is created exclusively, then synced and renamed. A killed process leaves nothing but
such a folder, which the next process that holds the lock removes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

from bitext.errors import BitextError, DataError, WriteError

LOCK = ".lock"
DRAFTS = ".draft-"  # beginning of the names of unfinished files and folders
MAX_NAME = 255  # bytes of a name on most file systems
_MOVED = ".moved"  # file of a draft folder that lists the files which are moved together
_NAMED_STREAMS = re.compile(r"/dev/(std(in|out|err)$|fd/)|/proc/")

_PERMISSION = "Check who may read and write there (ls -ld), or name another place."
_NO_LOCKS = "This file system has no locks: name a local disk."
_TAKEN = "Something else has this name: remove it, or name another place."
_DISK = "The disk does not answer as it should: check it, or name a place on another one."
_OPEN_FILES = "Close other programs, or raise the limit of open files (ulimit -n)."
# What to do about an error of the system, by its number.
CURES = {
    errno.ENOSPC: "Free some space, and give the same command again.",
    errno.EDQUOT: "Your quota is used up: free some space, and give the same command again.",
    errno.EACCES: _PERMISSION,
    errno.EPERM: _PERMISSION,
    errno.EROFS: "This disk can only be read: name a place on another one.",
    errno.EMFILE: _OPEN_FILES,
    errno.ENFILE: _OPEN_FILES,
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.EISDIR: "This is a folder: name a file.",
    errno.ENOTDIR: "A part of this path is a file: name another place.",
    errno.EEXIST: _TAKEN,
    errno.ENOTEMPTY: _TAKEN,
    errno.ELOOP: "This is a link that is not followed: put the file or the folder itself in its place.",
    errno.EFBIG: "The file is too large for this disk or its limit (ulimit -f).",
    errno.EIO: _DISK,
    getattr(errno, "ESTALE", errno.EIO): _DISK,
    errno.ENOLCK: _NO_LOCKS,
    errno.EOPNOTSUPP: _NO_LOCKS,
    errno.EBADF: "Open the standard streams, as by > FILE.",
    errno.EBUSY: "Another program uses it: end that program first.",
    errno.ENXIO: "This is no file: name another one.",
}


# --- errors of the system ---


def cure_of(error: Exception, otherwise: str = "Check the name, and whether its folder exists.") -> str:
    """Return the cure of an error of the system; `otherwise` for another error."""
    return CURES.get(getattr(error, "errno", None) or 0, otherwise)


@contextmanager
def os_errors(problem: str, kind: type[BitextError], kept: str = "") -> Iterator[None]:
    """Convert errors of the system to an error of this kind.

    Its message names the problem, the reason, another file that has caused it, what is `kept`, and the cure.
    """
    try:
        yield
    except OSError as error:
        name = str(error.filename or "")
        named = f" ({name})" if name and name not in problem and DRAFTS not in name else ""
        reason = f"{problem}: {error.strerror or error}{named}."
        raise kind(" ".join(filter(None, (reason, kept, cure_of(error))))) from error


def writing(path: Path) -> AbstractContextManager[None]:
    """Convert the errors of writing a result to a `WriteError` that names the path."""
    return os_errors(f"{path} cannot be written", WriteError, "What is finished is kept.")


# --- drafts ---


def name_hash(path: Path) -> str:
    """Return a short hash of the name of a file, for names made of it: it may be as long as the system allows."""
    return hashlib.sha256(os.fsencode(path.name)).hexdigest()[:8]


def _drafts_of(path: Path) -> str:
    """Return the beginning of the names of the drafts of a path."""
    return f"{DRAFTS}{name_hash(path)}-"


@contextmanager
def drafting(path: Path) -> Iterator[Path]:
    """Yield a new private folder beside a path, for its draft; the folder is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix=_drafts_of(path), dir=path.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path for the draft of a file or a folder, which takes the place of `path` at the end.

    After an error the old file or folder is unchanged, and the draft is removed.
    """
    with drafting(path) as folder:
        yield folder / path.name
        put(folder / path.name, path)


def put(draft: Path, path: Path) -> None:
    """Sync a draft made in a folder of `drafting`, and rename it to `path`; a link there is replaced."""
    for folder, _, names in os.walk(draft):
        for name in names:
            _sync(Path(folder, name))
        _sync(Path(folder))
    if draft.is_dir():
        old, occupied = draft.with_name(".old"), path.is_symlink() or path.is_dir()
        if occupied:
            os.rename(path, old)
        try:
            os.rename(draft, path)
        except BaseException:
            if occupied:
                os.rename(old, path)
            raise
    else:
        _sync(draft)
        os.replace(draft, path)
    _sync(path.parent)


def put_together(draft: Path) -> None:
    """Move the files of a folder of `drafting` beside it, notes (.json) first; after an error none is left.

    After a kill, the next process that removes the draft folder removes the files that were moved, too.
    """
    paths = sorted(draft.iterdir(), key=lambda path: (path.suffix != ".json", path.name))
    (draft / _MOVED).write_text(json.dumps({path.name: _identity(path) for path in paths}), encoding="utf-8")
    _sync(draft / _MOVED)
    try:
        for path in paths:
            put(path, draft.parent / path.name)
    except BaseException:
        _take_back(draft)
        raise


def _identity(path: Path) -> list[int]:
    """Return numbers that a file keeps when it is moved, and that no other file of its name has."""
    status = path.lstat()
    return [status.st_ino, status.st_size, status.st_mtime_ns]


def _take_back(draft: Path) -> None:
    """Remove the files that `put_together` has moved, unless it has moved all."""
    with suppress(OSError, ValueError):  # nothing was moved
        moved = json.loads((draft / _MOVED).read_text("utf-8"))
        for name in moved if any((draft / name).exists() for name in moved) else ():
            with suppress(OSError):
                if _identity(draft.parent / name) == moved[name]:
                    (draft.parent / name).unlink()


def write_atomically(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a file atomically, with the permissions that the umask leaves of `mode`."""
    with replacing(path) as draft, open(draft, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        file.write(content)


def discard(path: Path) -> None:
    """Remove a file or a folder: first its name, at once, then what it holds. A link is not followed."""
    if os.path.lexists(path):
        gone = path.with_name(f"{_drafts_of(path)}{os.urandom(8).hex()}")
        os.rename(path, gone)
        if gone.is_dir() and not gone.is_symlink():
            shutil.rmtree(gone, ignore_errors=True)
        else:
            gone.unlink()


def remove_drafts(folder: Path, beginning: str = DRAFTS) -> None:
    """Remove the drafts that killed processes have left in a folder; only for the process that holds its lock."""
    for left in folder.glob(f"{beginning}*"):
        if not left.is_symlink():
            _take_back(left)
        shutil.rmtree(left, ignore_errors=True)  # a link is not followed, and stays


def _sync(path: Path) -> None:
    """Flush a file that may be written, or a folder, to the disk. Windows can only flush files."""
    if path.is_dir() and sys.platform == "win32":
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)  # Windows flushes only what may be written
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sum_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- locks ---


@contextmanager
def locked(path: Path, in_use: BitextError, *, wait: float = 0.0) -> Iterator[None]:
    """Lock a file until the end of the block or of the process; file and folder are made if they are missing.

    The lock belongs to the process, and ends with it, however it ends. A link, a pipe or a folder in place of the
    file is refused.

    Args:
        path: the file.
        in_use: error to raise if another process holds the lock; also the kind of all other errors.
        wait: seconds to wait for another process.
    """
    with ExitStack() as stack:
        with os_errors(f"{path.parent} cannot be locked for writing", type(in_use)):
            end = time.monotonic() + wait
            while not _lock(stack, path, in_use, last=time.monotonic() >= end):
                time.sleep(0.01)
        yield


def _lock(stack: ExitStack, path: Path, in_use: BitextError, *, last: bool) -> bool:
    """Lock a file; return False if another process has removed it, or holds it and this is not the last try."""
    import portalocker  # slow to import

    path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        file = stack.enter_context(os.fdopen(os.open(path, flags, 0o666), "r+b", 0))
    except FileNotFoundError:  # another process has removed the folder
        return False
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        raise OSError(errno.ENXIO, "no regular file", str(path))
    try:
        portalocker.lock(file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
    except portalocker.AlreadyLocked as error:
        file.close()
        if last:
            raise in_use from error
        return False
    except portalocker.LockException as error:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK), str(path)) from error
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.lstat(path))
    except FileNotFoundError:
        return False


@contextmanager
def locked_beside(path: Path, kind: type[BitextError], *, wait: float = 0.0) -> Iterator[None]:
    """Lock the name of a file or a folder to be written, and remove the drafts that killed processes left of it.

    Raises:
        BitextError: another process writes it, or its folder cannot be written; an error of this kind.
    """
    in_use = kind(f"{path} is being written by another process. Wait for it, or name another place.")
    lock = path.with_name(_drafts_of(path).replace(DRAFTS, f"{LOCK}-").strip("-"))
    with locked(lock, in_use, wait=wait):
        remove_drafts(path.parent, _drafts_of(path))
        try:
            yield
        finally:
            with suppress(OSError):  # Windows removes no open file
                lock.unlink()


# --- folders ---


def refuse_links(folder: Path, names: Iterable[str], kind: type[BitextError] = DataError) -> None:
    """Check that these files and folders of a folder, and all that they hold, are no links, pipes or devices.

    Raises:
        BitextError: one of them is; what it leads to is not written and not removed; an error of this kind.
    """
    paths = [folder / name for name in names if os.path.lexists(folder / name)]
    while paths:
        path = paths.pop()
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            paths += path.iterdir()
        elif not stat.S_ISREG(mode):
            found = f"a link to {os.readlink(path)}" if path.is_symlink() else "a pipe or a device"
            raise kind(
                f"{path} is {found}. Nothing is written or removed there: put the file or the folder itself in its "
                "place, or remove it."
            )


# --- files that the user names ---


def resolve(path: Path) -> Path:
    """Return the path that the user means: behind a link, which stays."""
    return path.resolve() if path.is_symlink() or not path.name else path


def is_stream(path: Path) -> bool:
    """Return whether a path is a pipe, a device, or a name of an open file such as /dev/stdout."""
    for _ in range(40):  # links
        if _NAMED_STREAMS.match(os.path.abspath(path)):
            return True
        if not path.is_symlink():
            break
        path = path.parent / os.readlink(path)
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def locked_output(output: Path) -> Iterator[Path]:
    """Lock the name of a file that the user names; yield the path to write, behind a link that stands there.

    Raises:
        WriteError: it is a folder or a file that must not be written, or another process writes it.
    """
    with writing(output):
        path = resolve(output)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    with locked_beside(path, WriteError):
        yield path


@contextmanager
def replacing_output(path: Path) -> Iterator[Path]:
    """Yield a path for the draft of a file of `locked_output`; the older file passes on owner and permissions.

    Raises:
        WriteError: the file could not be written; the older one is unchanged.
    """
    with writing(path), replacing(path) as draft:
        yield draft
        keep_owner(path, draft)


def keep_owner(path: Path, draft: Path, *, mode: int | None = None) -> None:
    """Give a draft the permissions (or `mode`), and if possible the owner, of the file that it replaces."""
    if path.is_file():
        status = path.stat()
        if status.st_uid != draft.stat().st_uid:
            with suppress(OSError):
                os.chown(draft, status.st_uid, status.st_gid)
        draft.chmod(stat.S_IMODE(status.st_mode) if mode is None else mode)
