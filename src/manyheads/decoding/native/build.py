"""The C decoder as a library: compiled once on a machine, and stored in the user's cache.

The cache holds `decoder-SOURCES-TARGET-COMPILER.so` (hashes), its measured speed (`.json`), or the message of a
compiler that failed (`.failed`). Without a compiler there is no library, and torch computes everything.
"""

from __future__ import annotations

import ctypes
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
from uuid import uuid4

import numpy as np

from manyheads.decoding.native.interface import InterfaceError, check_interface

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
        killed: whether a signal ended the compiler, so that it may succeed next time.
    """

    killed = False


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
    try:
        if (folder := cache_folder()) is not None:
            return open_library(find_or_compile(source, folder, vectors))
        with TemporaryDirectory() as temporary:  # a library that is open does not need its file any more
            return open_library(compile_library(source, Path(temporary, "decoder.so"), vectors))
    except BuildError as error:
        return None, first_error(str(error))


def find_or_compile(source: Path, folder: Path, vectors: Sequence[str]) -> Path:
    """Return the path of the library in the cache; compile it unless an earlier attempt has succeeded or failed.

    Raises:
        BuildError: there is no library in the cache, and no compiler, or the compiler fails.
    """
    version = digest(path.read_bytes() for path in sorted(source.parent.glob("*.[ch]")))
    target = digest(map(str.encode, (platform.platform(), platform.machine(), *FLAGS, *vectors)))
    path = folder / f"decoder-{version}-{target}-{digest(compiler_identity())}.so"
    if not compiler():  # a library made by a compiler that was removed since is as good
        path = next(folder.glob(f"decoder-{version}-{target}-*.so"), path)
    remove_unused(folder, path, version)
    if path.exists():
        return path
    failure = path.with_suffix(".failed")
    if failure.exists():
        message = failure.read_text(encoding="utf-8", errors="replace")
    else:
        try:
            return compile_library(source, path, vectors)
        except BuildError as error:
            if not compiler() or error.killed:
                raise
            message = str(error)
            write_text(failure, message)
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
    draft = draft_of(path)
    command = [*compiler(), *FLAGS, *vectors, str(source), "-o", str(draft), "-lm"]
    try:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       errors="replace", env=os.environ | {"LC_ALL": "C"}, timeout=COMPILER_TIMEOUT)  # fmt: skip
        os.replace(draft, path)
    except (OSError, subprocess.SubprocessError) as error:
        message = (isinstance(error, subprocess.CalledProcessError) and error.stderr) or str(error)
        failure = BuildError(f"{message}\nThe command was: {shlex.join(command)}\n")
        failure.killed = isinstance(error, subprocess.CalledProcessError) and error.returncode < 0
        raise failure from error
    finally:
        draft.unlink(missing_ok=True)
    return path


def first_error(message: str) -> str:
    """Return the first line of a compiler's message that names an error, else its first line."""
    lines = message.split("\n")
    return next((line for line in lines if "error" in line), lines[0])


def remove_unused(folder: Path, used: Path, version: str) -> None:
    """Remove libraries of other versions from the cache that no process has used for a day.

    Args:
        folder: the cache.
        used: path of the library that is used now; its files are marked as used.
        version: digest of the sources of this version.
    """
    with suppress(OSError):  # another process may remove files too
        for path in folder.glob("decoder-*"):
            if path.stem == used.stem:
                os.utime(path)
            elif path.name.split("-")[1] != version and time.time() - path.stat().st_mtime > UNUSED_AFTER:
                path.unlink()


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
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def store_measurement(path: Path, measurement: Mapping[str, object]) -> None:
    """Store a measurement, if the system lets it be written."""
    write_text(path, json.dumps(measurement))


def write_text(path: Path, text: str) -> None:
    """Write a file of the cache atomically, if the system lets it be written."""
    draft = draft_of(path)
    with suppress(OSError):
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, path)


def draft_of(path: Path) -> Path:
    """Return a temporary path beside a file, unique because other processes may write the same file."""
    return path.with_name(f"{path.name}.{uuid4().hex}")


def cache_folder() -> Path | None:
    """Return a folder that only this user can write to; None if there is none."""
    parent = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        folder = Path(parent).expanduser() / "manyheads"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except (OSError, RuntimeError):
        return None
    foreign = status.st_uid != os.getuid() or bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    return None if foreign or not os.access(folder, os.W_OK) else folder
