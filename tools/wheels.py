"""Put the compiled decoder into the wheel of manyheads, for each system that has one.

    python -m tools.wheels dist    needs the packages ziglang and wheel

Reads dist/manyheads-*-py3-none-any.whl, and writes a wheel for each row of `SYSTEMS` beside it. Each holds the
library of `decoder.c` once for each instruction set; `manyheads.inference.native.build` opens the right one. The
compiler is zig's, which makes libraries for every system on any of them. A library for this machine is opened as a
check; QEMU opens that for Linux on ARM. On other systems pip takes the wheel without a library, and the decoder is
compiled there.
"""

from __future__ import annotations

import argparse
import ctypes
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from manyheads.inference.native import build
from manyheads.inference.native.interface import check_interface

SOURCE = Path(build.__file__).with_name("decoder.c")
COMPILER = (sys.executable, "-m", "ziglang", "cc")
SYSTEMS = {  # platform tag of the wheel -> target of zig
    "manylinux_2_17_x86_64": "x86_64-linux-gnu.2.17",
    "manylinux_2_17_aarch64": "aarch64-linux-gnu.2.17",
    "macosx_11_0_x86_64": "x86_64-macos.11.0",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
}
# Opens a library and calls a function of it.
OPENER = """
#include <dlfcn.h>
#include <stdint.h>
int main(int count, char **names) {
    void *library = count == 2 ? dlopen(names[1], RTLD_NOW) : 0;
    int64_t (*panel_width)(void) = library ? (int64_t(*)(void))dlsym(library, "panel_width") : 0;
    return panel_width && panel_width() > 0 ? 0 : 1;
}
"""


def instruction_sets(target: str) -> dict[str, Sequence[str]]:
    """Return name -> flags of the compiler, for each instruction set of a target that gets its own library."""
    return {"DEFAULT": (), **(build._VECTORS if target.startswith("x86_64") else {})}


def compile_library(target: str, flags: Sequence[str], path: Path, source: Path = SOURCE) -> None:
    """Compile a source for a target; raise `subprocess.CalledProcessError` if the compiler fails."""
    # The scheduler of instructions needs one register more than x86-64 has (design/decoding-on-a-cpu.md).
    scheduling = ("-mllvm", "-enable-misched=false") if target.startswith("x86_64") else ()
    command = [
        *COMPILER,
        "-target",
        target,
        *build._FLAGS,
        *scheduling,
        "-s",
        *flags,
        str(source),
        "-o",
        str(path),
        "-lm",
    ]
    subprocess.run(command, check=True)


def check_library(target: str, level: str, path: Path) -> str:
    """Open a library where that is possible; return how it was checked.

    Raises:
        InterfaceError: the library has another interface than this version of manyheads.
        OSError: it cannot be opened.
        subprocess.CalledProcessError: it cannot be opened under QEMU.
    """
    machine, system = target.split("-")[:2]
    here = (platform.machine().replace("arm64", "aarch64"), platform.system().lower().replace("darwin", "macos"))
    if (machine, system) == here:
        if level in build.supported_instruction_sets():
            check_interface(ctypes.CDLL(str(path)))
            return "opened"
    elif (machine, system) == ("aarch64", "linux") and shutil.which("qemu-aarch64"):
        opener = path.with_name("opener")
        opener.with_suffix(".c").write_text(OPENER, encoding="utf-8")
        command = ["aarch64-linux-gnu-gcc", str(opener.with_suffix(".c")), "-o", str(opener), "-ldl"]
        subprocess.run(command, check=True)
        subprocess.run(["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", str(opener), str(path)], check=True)
        return "opened under QEMU"
    return "not opened: no such processor or system here"


def write_wheel(pure: Path, tag: str, libraries: Mapping[str, Path]) -> Path:
    """Write a copy of a wheel with libraries, for the systems of a platform tag; return its path.

    Args:
        pure: a wheel with the tag `py3-none-any`.
        tag: the platform tag.
        libraries: name of an instruction set -> the library for it.
    """
    with tempfile.TemporaryDirectory() as temporary:
        subprocess.run([sys.executable, "-m", "wheel", "unpack", "--dest", temporary, str(pure)],
                       check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        (tree,) = Path(temporary).iterdir()
        folder = tree / SOURCE.parent.relative_to(SOURCE.parents[3]) / build.SHIPPED
        folder.mkdir()
        for level, library in libraries.items():
            shutil.copyfile(library, folder / build.shipped_name(level, library.read_bytes()))
        (about,) = tree.glob("*.dist-info/WHEEL")
        text = about.read_text(encoding="utf-8").replace("py3-none-any", f"py3-none-{tag}")
        about.write_text(text.replace("Root-Is-Purelib: true", "Root-Is-Purelib: false"), encoding="utf-8")
        subprocess.run([sys.executable, "-m", "wheel", "pack", "--dest-dir", str(pure.parent), str(tree)],
                       check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    return pure.with_name(pure.name.replace("-none-any", f"-none-{tag}"))


def main() -> None:
    """Write the wheels, and print for each library how it was checked."""
    parser = argparse.ArgumentParser(description="Put the compiled decoder into the wheel of manyheads.")
    parser.add_argument("folder", type=Path, help="the folder of the wheel without a library")
    (pure,) = parser.parse_args().folder.glob("manyheads-*-py3-none-any.whl")
    for tag, target in SYSTEMS.items():
        with tempfile.TemporaryDirectory() as temporary:
            libraries = {level: Path(temporary, f"{level}.so") for level in instruction_sets(target)}
            for level, path in libraries.items():
                compile_library(target, instruction_sets(target)[level], path)
                size, checked = path.stat().st_size / 1000, check_library(target, level, path)
                print(f"{tag:24} {level:8} {size:5.0f} kB  {checked}", flush=True)
            print(write_wheel(pure, tag, libraries).name)


if __name__ == "__main__":
    main()
