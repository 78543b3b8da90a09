"""Our C code, compiled for each instruction set by gcc and clang, computes the same numbers.

    python -m tests.native.processors

`driver.c` runs natively, or under QEMU as a processor that has no other instructions; on ARM also under QEMU.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.portable import processor_flags

from manyheads.native import build

DRIVER = Path(__file__).with_name("driver.c")
QEMU = ("qemu-x86_64", "-cpu")
CLOSE = 2e-4  # how far logits may be apart


@dataclass(frozen=True)
class Target:
    """A compiler, its flags, and what runs the program."""

    name: str
    compiler: str
    flags: tuple[str, ...] = ()
    emulator: tuple[str, ...] = ()
    machine: str = "x86_64"
    needs: str = ""  # a flag of /proc/cpuinfo

    def missing(self) -> str:
        """What this machine lacks, or nothing."""
        for tool in (self.compiler, *self.emulator[:1]):
            if shutil.which(tool) is None:
                return f"the program {tool}"
        if self.machine != platform.machine():
            return f"a processor of the kind {self.machine}"
        return f"a processor with {self.needs}" if self.needs and self.needs not in processor_flags() else ""


def targets() -> list[Target]:
    """The first one is what the others are compared with."""
    found = [Target("this machine", "cc", machine=platform.machine())]
    for compiler in ("gcc", "clang"):
        found += [
            Target(f"SSE, {compiler}, Nehalem", compiler, (), (*QEMU, "Nehalem")),
            Target(f"AVX2, {compiler}, Haswell", compiler, build.VECTORS["AVX2"], (*QEMU, "Haswell")),
            Target(f"AVX-512, {compiler}", compiler, build.VECTORS["AVX512"], needs="avx512vl"),
        ]
    arm = Target("ARM, gcc", "aarch64-linux-gnu-gcc", ("-static",), ("qemu-aarch64",), platform.machine())
    return [*found, arm]


def output_of(target: Target, folder: Path) -> list[str]:
    """The words that the driver prints.

    Raises:
        subprocess.CalledProcessError: it does not compile, uses an instruction that is not there, or found that
            neighbours or threads change bits.
    """
    program = folder / "driver"
    flags = [flag for flag in build.FLAGS if flag not in ("-shared", "-fPIC")]
    include = f"-I{Path(build.__file__).parent}"
    command = [target.compiler, *flags, *target.flags, include, str(DRIVER), "-o", str(program), "-lm"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    run = subprocess.run([*target.emulator, str(program)], check=True, capture_output=True, text=True)
    return run.stdout.split()


def difference(found: list[str], expected: list[str]) -> float:
    """How far numbers are apart; infinite where tokens or words differ."""
    if len(found) != len(expected):
        return float("inf")
    numbers = [(one, other) for one, other in zip(found, expected, strict=True) if one != other]
    if any("." not in one or "." not in other for one, other in numbers):
        return float("inf")
    return max((abs(float(one) - float(other)) for one, other in numbers), default=0.0)


def main() -> None:
    expected: list[str] = []
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for target in targets():
            begun, missing = time.perf_counter(), target.missing()
            try:
                found = [] if missing else output_of(target, Path(folder))
                expected = expected or found
                far = difference(found, expected)
                result = f"not run: needs {missing}" if missing else f"logits differ by {far:.1e}"
                failed |= not missing and not far < CLOSE
            except subprocess.CalledProcessError as error:
                result, failed = f"FAILED with {error.returncode}: {error.stderr.strip()[-300:]}", True
            print(f"{target.name:24}  {time.perf_counter() - begun:5.1f} s  {result}", flush=True)
    sys.exit("C code differs between processors" if failed else 0)


if __name__ == "__main__":
    main()
