"""Compile the C decoder to WebAssembly, for exported pages with a model (src/manyheads/web/html_export.py).

`python -m tools.wasm` writes src/manyheads/web/engine/engine.wasm and its SHA-256; with `--check` it compiles the
code again and compares the bytes. The compiler is that of Debian bookworm, so that the bytes are the same on every
machine: `apt-get install clang-14 lld-14 wasi-libc`.

The module imports nothing. It exports its memory, the address where free memory begins (`__heap_base`), and the
functions in `FUNCTIONS`; the caller allocates the memory.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "manyheads" / "inference" / "native" / "decoder.c"
ENGINE = ROOT / "src" / "manyheads" / "web" / "engine" / "engine.wasm"
CHECKSUM = ENGINE.with_suffix(".wasm.sha256")

COMPILER, LINKER = "clang-14", "wasm-ld-14"
LIBC = Path("/usr/lib/wasm32-wasi/libc.a")  # memcmp, memcpy, memmove and memset
FUNCTIONS = (
    "struct_layout", "panel_width", "workspace_size", "encode", "linear_layer", "decoder_steps", "beam_steps",
    "begin_beam", "skip_prefix", "enlarge_cache", "extend_beam", "read_prefix", "log_sum_exp",
    "sinusoidal_positions", "rotary_positions",
)  # fmt: skip
FLAGS = ("--target=wasm32-wasi", "-O2", "-std=gnu11", "-msimd128", "-mbulk-memory", "-ffp-contract=off",
         "-fno-math-errno", "-nostartfiles", "-nodefaultlibs", "-Wall", "-Wextra", "-Werror")  # fmt: skip
STACK = 65_536  # bytes; the stack is first in memory, so that an overflow traps


def missing_tool() -> str | None:
    """Return the first tool of the build that this machine lacks, or None."""
    for tool in (COMPILER, LINKER):
        if shutil.which(tool) is None:
            return f"{tool} (apt-get install {COMPILER} lld-14 wasi-libc)"
    return None if LIBC.exists() else f"{LIBC} (apt-get install wasi-libc)"


def build(path: Path) -> None:
    """Compile the module to `path`; raise `subprocess.CalledProcessError` if the compiler fails."""
    exported = [f"-Wl,--export={name}" for name in (*FUNCTIONS, "__heap_base")]
    linked = ["-Wl,--no-entry", "-Wl,--strip-all", "-Wl,--stack-first", f"-Wl,-z,stack-size={STACK}", *exported]
    command = [COMPILER, *FLAGS, f"-fuse-ld={shutil.which(LINKER)}", str(SOURCE), "-o", str(path), *linked, "-lc"]
    subprocess.run(command, check=True)


def checksum_line(module: bytes) -> str:
    """Return the line of `sha256sum` for a module."""
    return f"{hashlib.sha256(module).hexdigest()}  {ENGINE.name}\n"


def differences(module: bytes) -> list[str]:
    """Return a message for each committed file that differs from `module`."""
    wrong = []
    if not ENGINE.exists() or ENGINE.read_bytes() != module:
        wrong.append(f"{ENGINE.relative_to(ROOT)} is not what the C code compiles to: run python -m tools.wasm")
    if not CHECKSUM.exists() or CHECKSUM.read_text("ascii") != checksum_line(module):
        wrong.append(f"{CHECKSUM.relative_to(ROOT)} is not the SHA-256 of the module: run python -m tools.wasm")
    return wrong


def main() -> int:
    """Write the module and its SHA-256, or with `--check` compare them; return the exit code."""
    parser = argparse.ArgumentParser(description="Compile the C decoder to WebAssembly.")
    parser.add_argument("--check", action="store_true", help="compare with the committed files instead of writing")
    check = parser.parse_args().check
    if missing := missing_tool():
        print(f"error: needs {missing}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, ENGINE.name)
        build(path)
        module = path.read_bytes()
    if check:
        wrong = differences(module)
        print(*wrong or [f"{ENGINE.name}: {len(module):,} bytes, as committed"], sep="\n")
        return int(bool(wrong))
    ENGINE.write_bytes(module)
    CHECKSUM.write_text(checksum_line(module), encoding="ascii")
    print(f"{ENGINE.relative_to(ROOT)}: {len(module):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
