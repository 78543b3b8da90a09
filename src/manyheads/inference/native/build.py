"""The C decoder as a library: from the wheel, or compiled once on a machine and stored in the user's cache.

A wheel for a system holds `compiled/decoder-INSTRUCTIONS-CONTENT.so` for each instruction set (tools/wheels.py).
The cache holds `decoder-SOURCES-TARGET-COMPILER-CONTENT.so` (hashes), or the message of a compiler that failed
(`.failed`). A library whose content has another hash is not opened: calling a function of
a file that was cut would kill the process. Without a compiler there is no library, and torch
computes everything if it is installed.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import hashlib
import os
import platform
import shlex
import shutil
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bitext.files import DRAFTS, discard, write_atomically
from manyheads.inference.native.interface import InterfaceError, check_interface

_SWITCH = "MANYHEADS_NATIVE"  # 0: no native code; decode with torch
_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-O3", "-std=gnu11", "-fPIC", "-shared", "-pthread", "-ffp-contract=off", "-fno-math-errno", "-Wno-psabi")
_VECTORS = {
    "AVX512": ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma", "-mprefer-vector-width=512"),
    "AVX2": ("-mavx2", "-mfma"),
    "SSSE3": ("-mssse3",),
}
# numpy's names of the instructions of VECTORS: since version 2.4, and before.
_NUMPY_NAMES = {"AVX512": ({"X86_V4"}, {"AVX512_SKX"}), "AVX2": ({"X86_V3"}, {"AVX2", "FMA3"}),
                 "SSSE3": ({"X86_V2"}, {"X86_V3"}, {"X86_V4"}, {"SSSE3"})}  # fmt: skip
SHIPPED = "compiled"  # folder of the libraries of a wheel, beside decoder.c
_COMPILER_TIMEOUT = 300  # seconds
_UNUSED_AFTER = 24 * 60 * 60  # seconds after its last use until a library of another version is removed


class _BuildError(Exception):
    """The library could not be compiled; the message is the compiler's.

    Attributes:
        passing: whether it may succeed next time: a signal or the time limit ended it, or there was no space.
    """

    passing = False


def library() -> ctypes.CDLL | None:
    """Return the library of `decoder.c`, of the wheel or compiled at the first call; None if there is neither."""
    return None if _switched_off() else _load()[0]


def why_none() -> str:
    """Return the reason why there is no library."""
    return _switched_off() or _load()[1]


def _switched_off() -> str:
    """Return the reason why native code is off, or an empty string."""
    if os.environ.get(_SWITCH) == "0":
        return f"{_SWITCH}=0"
    return "not supported on Windows" if sys.platform == "win32" else ""


@functools.cache
def _load() -> tuple[ctypes.CDLL | None, str]:
    """Return the library, opened and checked, or None and the reason."""
    source = Path(__file__).with_name("decoder.c")
    level = instruction_set()
    for shipped in (source.parent / SHIPPED).glob(f"decoder-{level}-*.so"):
        library, reason = _open_library(shipped) if _has_its_hash(shipped) else (None, f"{shipped} is damaged")
        if library is not None:
            return library, ""
        print(f"{reason}: install manyheads again", file=sys.stderr)
    vectors = _VECTORS.get(level, ())
    version = _digest(path.read_bytes() for path in sorted(source.parent.glob("*.[ch]")))
    system = os.uname()
    machine = (system.sysname, system.release, system.machine, *platform.libc_ver())
    target = _digest(map(str.encode, (*machine, *_FLAGS, *vectors)))
    stem = f"decoder-{version}-{target}-{_digest(_compiler_identity())}"
    folder = _cache_folder()
    if folder is not None:
        pattern = f"{stem}-*.so" if _compiler() else f"decoder-{version}-{target}-*.so"  # a removed compiler's too
        path = next(filter(_is_whole, folder.glob(pattern)), None)
        _remove_unused(folder, stem if path is None else path.stem, version)
        if path is not None:
            return _open_library(path)
    try:
        with TemporaryDirectory() as temporary:  # a library that is open does not need its file any more
            fresh = Path(temporary, "decoder.so")
            if folder is None:
                return _open_library(_compile_library(source, fresh, vectors))
            _compile_once(source, fresh, vectors, folder / f"{stem}.failed")
            return _open_library(_store_library(fresh, folder, stem))
    except (_BuildError, OSError) as error:
        return None, _first_error(str(error))


def _compile_once(source: Path, path: Path, vectors: Sequence[str], failure: Path) -> None:
    """Compile a library unless an earlier attempt has left the file `failure` with its message.

    Raises:
        BuildError: there is no compiler, or it fails, or has failed.
    """
    if failure.is_file():
        message = failure.read_text(encoding="utf-8", errors="replace")
    else:
        try:
            _compile_library(source, path, vectors)
            return
        except _BuildError as error:
            if not _compiler() or error.passing:
                raise
            message = str(error)
            _write_file(failure, message.encode())
            print(f"the CPU decoder cannot be compiled; see {failure}", file=sys.stderr)
    program = _compiler()[0]
    raise _BuildError(
        f"{program} cannot compile it: {_first_error(message)}; see {failure}, delete it to try again"
    )


def _compile_library(source: Path, path: Path, vectors: Sequence[str] = ()) -> Path:
    """Compile a source to a library at `path`; return the path.

    Raises:
        BuildError: there is no compiler, or it failed; the message holds its output and the command.
    """
    if not _compiler():
        raise _BuildError(f"no C compiler ({', '.join(_COMPILERS)})")
    import subprocess  # slow to import

    print("compiling the CPU decoder, about 7 s", file=sys.stderr, flush=True)
    command = [*_compiler(), *_FLAGS, *vectors, str(source), "-o", str(path), "-lm"]
    try:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       errors="replace", env=os.environ | {"LC_ALL": "C"}, timeout=_COMPILER_TIMEOUT)  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        message = (isinstance(error, subprocess.CalledProcessError) and error.stderr) or str(error)
        failure = _BuildError(f"{message}\nThe command was: {shlex.join(command)}\n")
        ended = getattr(error, "returncode", 0) < 0 or isinstance(error, subprocess.TimeoutExpired)
        failure.passing = ended or os.strerror(errno.ENOSPC) in message
        raise failure from error
    return path


def _store_library(library: Path, folder: Path, stem: str) -> Path:
    """Copy a library to the cache, and return its path there, or its own if the system does not let it be written.

    Damaged files of the same stem are removed.
    """
    content = library.read_bytes()
    path = folder / f"{stem}-{_digest([content])}.so"
    with suppress(OSError):
        for old in folder.glob(f"{stem}-*.so"):
            if not _is_whole(old):
                discard(old)
    return path if _write_file(path, content) else library


def _is_whole(path: Path) -> bool:
    """Return whether a path of the cache is a file of this user whose content has the hash in its name."""
    try:
        status = path.lstat()
        own = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()
    except OSError:
        return False
    return own and _has_its_hash(path)


def _has_its_hash(path: Path) -> bool:
    """Return whether the name of a library ends with the hash of its content."""
    try:
        return path.stem.endswith(f"-{_digest([path.read_bytes()])}")
    except OSError:
        return False


def shipped_name(level: str, library: bytes) -> str:
    """Return the file name of a library in a wheel, for an instruction set."""
    return f"decoder-{level}-{_digest([library])}.so"


def _first_error(message: str) -> str:
    """Return the first line of a compiler's message that names an error, else its first line."""
    lines = message.split("\n")
    return next((line for line in lines if "error" in line), lines[0])


def _remove_unused(folder: Path, used: str, version: str) -> None:
    """Remove libraries of other versions, and drafts, from the cache that no process has used for a day.

    The files whose stem is `used` are marked as used; `version` is the digest of the sources of this version.
    """
    with suppress(OSError):  # another process may remove files too
        for path in (*folder.glob("decoder-*"), *folder.glob(f"{DRAFTS}*")):
            if path.stem == used:
                os.utime(path)
            elif path.name.split("-")[1] != version and time.time() - path.stat().st_mtime > _UNUSED_AFTER:
                discard(path)


def _digest(parts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


def instruction_set() -> str:
    """Return the vector instructions to compute with: AVX512, AVX2, SSSE3 or DEFAULT."""
    return supported_instruction_sets()[0]


def supported_instruction_sets() -> list[str]:
    """Return those of AVX512, AVX2, SSSE3 and DEFAULT that this processor has, in this order.

    `ATEN_CPU_CAPABILITY` lowers them, as in torch, whose "default" is SSSE3 here. numpy asks the processor itself:
    under an emulator, /proc/cpuinfo describes another processor.
    """
    extensions = np.show_config(mode="dicts")["SIMD Extensions"]
    supported = {*extensions["baseline"], *extensions.get("found", ())}
    limit = os.environ.get("ATEN_CPU_CAPABILITY", "").upper()
    usable = [
        name
        for name, names in _NUMPY_NAMES.items()
        if any(needed <= supported for needed in names)
        and (name in ("SSSE3", limit) or limit not in ("AVX2", "DEFAULT"))
    ]
    return [*usable, "DEFAULT"]


def _compiler() -> list[str]:
    """Return the command of the C compiler: `CC`, or the first that is installed; empty if there is none."""
    return shlex.split(os.environ.get("CC", "")) or [*filter(None, map(shutil.which, _COMPILERS))][:1]


def _compiler_identity() -> Iterator[bytes]:
    """Yield the words of the compiler's command, and for each program among them its path, size and date."""
    for word in _compiler():
        yield word.encode()
        if program := shutil.which(word):
            status = os.stat(program)
            yield f"{os.path.realpath(program)} {status.st_size} {status.st_mtime_ns}".encode()


def _open_library(path: Path) -> tuple[ctypes.CDLL | None, str]:
    """Open a library and check its interface; return None and the reason if either fails."""
    try:
        library = ctypes.CDLL(str(path))
        check_interface(library)
    except (OSError, InterfaceError) as error:
        return None, str(error)
    return library, ""


def origin(code: ctypes.CDLL) -> str:
    """Describe where a library comes from."""
    return code._name if Path(code._name).exists() else "compiled for this process, without a cache"


def _write_file(path: Path, content: bytes) -> bool:
    """Write a file of the cache atomically; return whether the system lets it be written."""
    try:
        write_atomically(path, content)
    except OSError:
        return False
    return True


def _cache_folder() -> Path | None:
    """Return a folder that only this user can write to; None if there is none."""
    parent = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        folder = Path(parent).expanduser() / "manyheads"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status, parent_mode, link = folder.stat(), folder.parent.stat().st_mode, folder.lstat()
    except (OSError, RuntimeError):
        return None
    foreign = {status.st_uid, link.st_uid} != {os.getuid()} or bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    foreign |= bool(parent_mode & stat.S_IWOTH) and not parent_mode & stat.S_ISVTX  # anybody may replace it
    return None if foreign or not os.access(folder, os.W_OK) else folder
