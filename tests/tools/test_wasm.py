"""The committed module of the browser engine is the compiled C code, and imports nothing."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from manyheads.web.scripts import ENGINE
from tools import wasm

ROOT = Path(__file__).parent.parent.parent


def sections(module: bytes) -> dict[int, bytes]:
    """Return the sections of a WebAssembly module by their ids (the specification, 5.5)."""
    found, position = {}, 8
    while position < len(module):
        section, size, shift = module[position], 0, 0
        while True:
            position += 1
            size |= (module[position] & 0x7F) << shift
            shift += 7
            if module[position] < 0x80:
                break
        found[section] = module[position + 1 : position + 1 + size]
        position += 1 + size
    return found


def test_the_checksum_is_that_of_the_module() -> None:
    module = wasm.ENGINE.read_bytes()
    assert wasm.ENGINE == ENGINE
    assert wasm.CHECKSUM.read_text() == f"{hashlib.sha256(module).hexdigest()}  engine.wasm\n"


def test_the_module_imports_nothing_and_is_small() -> None:
    module = wasm.ENGINE.read_bytes()
    assert module[:8] == b"\0asm\1\0\0\0"
    found = sections(module)
    assert 2 not in found, "imports"
    assert 0 not in found, "custom sections, such as names or the compiler's version"
    assert all(name.encode() in found[7] for name in (*wasm.FUNCTIONS, "memory", "__heap_base"))
    assert len(module) < 100_000


def test_the_check_is_skipped_with_a_message_without_its_tools(tmp_path: Path) -> None:
    """Run it as on another distribution. The exit code says that nothing was compared (.ci/run)."""
    command = [sys.executable, "-m", "tools.wasm", "--check"]
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "needs clang-14 (apt-get install clang-14 lld-14 wasi-libc)" in done.stderr
