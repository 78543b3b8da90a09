"""C of ours as a library: compiled once on a machine, kept in the user's cache.

Where there is no compiler there is no library, and torch computes everything.
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
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from manyheads.decoding.native.interface import InterfaceError, check_interface

__all__ = [
    "SWITCH",
    "compiled",
    "instruction_set",
    "library",
    "load_measurement",
    "measurement_path",
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
LONGEST = 120  # seconds for a compiler


def library() -> ctypes.CDLL | None:
    """The library of `decoder.c`, compiled if this machine has not yet; None where that cannot be done."""
    if os.environ.get(SWITCH) == "0" or sys.platform == "win32":
        return None
    return load()[0]


def why_none() -> str:
    """Return the reason why there is no library, for people."""
    if os.environ.get(SWITCH) == "0":
        return f"{SWITCH}=0"
    if sys.platform == "win32":
        return "not supported on Windows"
    if compiler() is None:
        return f"no C compiler ({', '.join(COMPILERS)})"
    return load()[1]


@functools.cache
def load() -> tuple[ctypes.CDLL | None, str]:
    """Return the library, compiled and checked, or None and the reason."""
    source = Path(__file__).with_name("decoder.c")
    sources = b"".join(path.read_bytes() for path in sorted(source.parent.glob("*.[ch]")))
    vectors = VECTORS.get(instruction_set(), ())
    asked = "\0".join((platform.platform(), platform.machine(), *FLAGS, *vectors)).encode()
    name = f"decoder-{hashlib.sha256(asked + sources).hexdigest()[:20]}.so"
    if (folder := cache()) is not None:
        path = folder / name
        return opened(path) if path.exists() or compiled(source, path, vectors) else (None, cannot_compile())
    with TemporaryDirectory() as temporary:  # a library that is open needs its file no more
        path = Path(temporary) / name
        return opened(path) if compiled(source, path, vectors) else (None, cannot_compile())


def cannot_compile() -> str:
    """Return the reason why there is no library where a compiler fails."""
    return f"{compiler()} cannot compile it"


def instruction_set() -> str:
    """The vector instructions that are compiled for, as torch names them; `ATEN_CPU_CAPABILITY` lowers them."""
    return torch.backends.cpu.get_cpu_capability()


def compiler() -> str | None:
    """The C compiler: that of `CC`, or the first that is installed."""
    return os.environ.get("CC") or next(filter(None, map(shutil.which, COMPILERS)), None)


def measurement_path(code: ctypes.CDLL) -> Path | None:
    """Where the measurement of a library is kept: beside it in the cache; None outside of the cache."""
    path = Path(code._name)
    return path.with_suffix(".json") if path.exists() else None


def load_measurement(path: Path) -> Any:
    """Read a measurement; None where there is none that can be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def store_measurement(path: Path, measurement: Mapping[str, object]) -> None:
    """Keep a measurement, if the system lets it be written."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):
        draft.write_text(json.dumps(measurement), encoding="utf-8")
        os.replace(draft, path)  # other processes may be measuring too


def opened(path: Path) -> tuple[ctypes.CDLL | None, str]:
    """Open a library and check its interface; None and the reason if either fails."""
    try:
        library = ctypes.CDLL(str(path))
        check_interface(library)
    except (OSError, InterfaceError) as error:
        return None, str(error)
    return library, ""


def compiled(source: Path, path: Path, vectors: tuple[str, ...] = ()) -> bool:
    """Compile a source to a library at `path`; whether that could be done."""
    if (program := compiler()) is None:
        return False
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    command = [*shlex.split(program), *FLAGS, *vectors, str(source), "-o", str(draft), "-lm"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=LONGEST)
    except (OSError, subprocess.SubprocessError):
        draft.unlink(missing_ok=True)
        return False
    os.replace(draft, path)  # other processes may be compiling it too
    return True


def cache() -> Path | None:
    """A folder that only this user can write to; None where there is none."""
    place = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        folder = Path(place).expanduser() / "manyheads"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except (OSError, RuntimeError):
        return None
    foreign = found.st_uid != os.getuid() or bool(found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    return None if foreign or not os.access(folder, os.W_OK) else folder
