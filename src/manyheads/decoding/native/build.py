"""The C decoder as a library: compiled once on a machine, and stored in the user's cache.

The cache holds `decoder-SOURCES-TARGET-COMPILER-CONTENT.so` (hashes), its measured speed (`.json`), or the message
of a compiler that failed (`.failed`). A library whose content has another hash is not opened: calling a function of
a file that was cut would kill the process. Without a compiler there is no library, and torch computes everything.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import hashlib
import json
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from manyheads.decoding.native.interface import InterfaceError, check_interface
from manyheads.files import DRAFTS, discard, write_atomically

__all__ = [
    "SWITCH",
    "BuildError",
    "compile_library",
    "instruction_set",
    "library",
    "load_measurement",
    "measurement_path",
    "origin",
    "store_measurement",
    "why_none",
]

SWITCH = "MANYHEADS_NATIVE"  # 0: compile nothing; 1: use the library without measuring it
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-O3", "-std=gnu11", "-fPIC", "-shared", "-pthread", "-fopenmp-simd", "-fno-math-errno", "-Wno-psabi")
VECTORS = {
    "AVX512": ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma", "-mprefer-vector-width=512"),
    "AVX2": ("-mavx2", "-mfma"),
}
# numpy's names of the instructions of VECTORS: since version 2.4, and before.
NUMPY_NAMES = {"AVX512": ({"X86_V4"}, {"AVX512_SKX"}), "AVX2": ({"X86_V3"}, {"AVX2", "FMA3"})}
COMPILER_TIMEOUT = 120  # seconds
UNUSED_AFTER = 24 * 60 * 60  # seconds after its last use until a library of another version is removed


class BuildError(Exception):
    """The library could not be compiled; the message is the compiler's.

    Attributes:
        passing: whether it may succeed next time: a signal ended the compiler, or there was no space.
    """

    passing = False


def library() -> ctypes.CDLL | None:
    """Return the library of `decoder.c`, compiled at the first call on a machine; None if that is impossible."""
    return None if switched_off() else load()[0]


def why_none() -> str:
    """Return the reason why there is no library."""
    return switched_off() or load()[1]


def switched_off() -> str:
    """Return the reason why native code is off, or an empty string."""
    if os.environ.get(SWITCH) == "0":
        return f"{SWITCH}=0"
    return "not supported on Windows" if sys.platform == "win32" else ""


@functools.cache
def load() -> tuple[ctypes.CDLL | None, str]:
    """Return the library, compiled and checked, or None and the reason."""
    source = Path(__file__).with_name("decoder.c")
    vectors = VECTORS.get(instruction_set(), ())
    version = digest(path.read_bytes() for path in sorted(source.parent.glob("*.[ch]")))
    target = digest(map(str.encode, (platform.platform(), platform.machine(), *FLAGS, *vectors)))
    stem = f"decoder-{version}-{target}-{digest(compiler_identity())}"
    folder = cache_folder()
    if folder is not None:
        pattern = f"{stem}-*.so" if compiler() else f"decoder-{version}-{target}-*.so"  # a removed compiler's too
        path = next(filter(is_whole, folder.glob(pattern)), None)
        remove_unused(folder, stem if path is None else path.stem, version)
        if path is not None:
            return open_library(path)
    try:
        with TemporaryDirectory() as temporary:  # a library that is open does not need its file any more
            fresh = Path(temporary, "decoder.so")
            if folder is None:
                return open_library(compile_library(source, fresh, vectors))
            compile_once(source, fresh, vectors, folder / f"{stem}.failed")
            return open_library(store_library(fresh, folder, stem))
    except (BuildError, OSError) as error:
        return None, first_error(str(error))


def compile_once(source: Path, path: Path, vectors: Sequence[str], failure: Path) -> None:
    """Compile a library unless an earlier attempt has left the file `failure` with its message.

    Raises:
        BuildError: there is no compiler, or it fails, or has failed.
    """
    if failure.is_file():
        message = failure.read_text(encoding="utf-8", errors="replace")
    else:
        try:
            compile_library(source, path, vectors)
            return
        except BuildError as error:
            if not compiler() or error.passing:
                raise
            message = str(error)
            write_file(failure, message.encode())
            print(f"the CPU decoder cannot be compiled, torch decodes instead; see {failure}", file=sys.stderr)
    program = compiler()[0]
    raise BuildError(f"{program} cannot compile it: {first_error(message)}; see {failure}, delete it to try again")


def compile_library(source: Path, path: Path, vectors: Sequence[str] = ()) -> Path:
    """Compile a source to a library at `path`; return the path.

    Raises:
        BuildError: there is no compiler, or it failed; the message holds its output and the command.
    """
    if not compiler():
        raise BuildError(f"no C compiler ({', '.join(COMPILERS)})")
    print("compiling the CPU decoder, about 7 s", file=sys.stderr, flush=True)
    command = [*compiler(), *FLAGS, *vectors, str(source), "-o", str(path), "-lm"]
    try:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       errors="replace", env=os.environ | {"LC_ALL": "C"}, timeout=COMPILER_TIMEOUT)  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        message = (isinstance(error, subprocess.CalledProcessError) and error.stderr) or str(error)
        failure = BuildError(f"{message}\nThe command was: {shlex.join(command)}\n")
        killed = isinstance(error, subprocess.CalledProcessError) and error.returncode < 0
        failure.passing = killed or os.strerror(errno.ENOSPC) in message
        raise failure from error
    return path


def store_library(library: Path, folder: Path, stem: str) -> Path:
    """Copy a library to the cache, and return its path there, or its own if the system does not let it be written.

    Damaged files of the same stem are removed.
    """
    content = library.read_bytes()
    path = folder / f"{stem}-{digest([content])}.so"
    with suppress(OSError):
        for old in folder.glob(f"{stem}-*.so"):
            if not is_whole(old):
                discard(old)
    return path if write_file(path, content) else library


def is_whole(path: Path) -> bool:
    """Return whether a path of the cache is a file of this user whose content has the hash in its name."""
    try:
        status = path.lstat()
        own = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid()
        return own and path.stem.endswith(f"-{digest([path.read_bytes()])}")
    except OSError:
        return False


def first_error(message: str) -> str:
    """Return the first line of a compiler's message that names an error, else its first line."""
    lines = message.split("\n")
    return next((line for line in lines if "error" in line), lines[0])


def remove_unused(folder: Path, used: str, version: str) -> None:
    """Remove libraries of other versions, and drafts, from the cache that no process has used for a day.

    Args:
        folder: the cache.
        used: stem of the files of the library that is used now, which are marked as used.
        version: digest of the sources of this version.
    """
    with suppress(OSError):  # another process may remove files too
        for path in (*folder.glob("decoder-*"), *folder.glob(f"{DRAFTS}*")):
            if path.stem == used:
                os.utime(path)
            elif path.name.split("-")[1] != version and time.time() - path.stat().st_mtime > UNUSED_AFTER:
                discard(path)


def digest(parts: Iterable[bytes]) -> str:
    """Return a short hash of some bytes."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


def instruction_set() -> str:
    """Return the vector instructions to compile for: AVX512, AVX2 or DEFAULT, as torch names them.

    `ATEN_CPU_CAPABILITY` lowers them, here as in torch. numpy asks the processor itself: under an emulator,
    /proc/cpuinfo describes another processor.
    """
    extensions = np.show_config(mode="dicts")["SIMD Extensions"]
    supported = {*extensions["baseline"], *extensions.get("found", ())}
    limit = os.environ.get("ATEN_CPU_CAPABILITY", "").upper()
    for name, names in NUMPY_NAMES.items():
        if any(needed <= supported for needed in names) and (limit == name or limit not in ("AVX2", "DEFAULT")):
            return name
    return "DEFAULT"


def compiler() -> list[str]:
    """Return the command of the C compiler: `CC`, or the first that is installed; empty if there is none."""
    return shlex.split(os.environ.get("CC", "")) or [*filter(None, map(shutil.which, COMPILERS))][:1]


def compiler_identity() -> Iterator[bytes]:
    """Yield the words of the compiler's command, and for each program among them its path, size and date."""
    for word in compiler():
        yield word.encode()
        if program := shutil.which(word):
            status = os.stat(program)
            yield f"{os.path.realpath(program)} {status.st_size} {status.st_mtime_ns}".encode()


def open_library(path: Path) -> tuple[ctypes.CDLL | None, str]:
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


def measurement_path(code: ctypes.CDLL) -> Path | None:
    """Return the path of a library's measurement, beside it in the cache; None outside of the cache."""
    path = Path(code._name)
    return path.with_suffix(".json") if path.exists() else None


def load_measurement(path: Path) -> Any:
    """Read a measurement; return None if there is none that can be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    except (OSError, ValueError, RecursionError):
        return None


def store_measurement(path: Path, measurement: Mapping[str, object]) -> None:
    """Store a measurement, if the system lets it be written."""
    write_file(path, json.dumps(measurement).encode())


def write_file(path: Path, content: bytes) -> bool:
    """Write a file of the cache atomically; return whether the system lets it be written."""
    try:
        write_atomically(path, content)
    except OSError:
        return False
    return True


def cache_folder() -> Path | None:
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
