"""Our C code, compiled for each instruction set by gcc and clang, computes the same numbers; in int8 the same bits.

    python -m tests.inference.native.processors [COMPILER...] [--sentences N] [--short]    by default gcc and clang

`driver.c` runs natively, or under QEMU as a processor that has no other instructions; on ARM also under QEMU. With
--sentences, N sentences in int8 are compared, greedily and with beam 5.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.portable import processor_flags

from manyheads.inference.native import build

DRIVER = Path(__file__).with_name("driver.c")
QEMU = ("qemu-x86_64", "-cpu")
TOLERANCE = 2e-4  # the largest allowed difference of logits


@dataclass(frozen=True)
class Target:
    """A compiler, its flags, and the emulator that runs the program, if any."""

    name: str
    compiler: str
    flags: tuple[str, ...] = ()
    emulator: tuple[str, ...] = ()
    machine: str = "x86_64"
    needs: str = ""  # a flag of /proc/cpuinfo

    def missing(self) -> str:
        """Return what this machine lacks to run the target; an empty string if it lacks nothing."""
        for tool in (self.compiler, *self.emulator[:1]):
            if shutil.which(tool) is None:
                return f"the program {tool}"
        if self.machine != platform.machine():
            return f"a processor of the kind {self.machine}"
        return f"a processor with {self.needs}" if self.needs and self.needs not in processor_flags() else ""

    @property
    def program(self) -> tuple[str, tuple[str, ...]]:
        """Return the file of the compiler, which may have two names, and the flags."""
        return os.path.realpath(shutil.which(self.compiler) or self.compiler), self.flags


def targets(compilers: Sequence[str]) -> list[Target]:
    """Return the targets of some compilers; the first is the reference that the others are compared with."""
    found = [Target("this machine", "cc", machine=platform.machine())]
    for compiler in compilers:
        found += [
            Target(f"SSE2, {compiler}, Nehalem", compiler, (), (*QEMU, "Nehalem")),
            Target(f"SSSE3, {compiler}, Nehalem", compiler, build._VECTORS["SSSE3"], (*QEMU, "Nehalem")),
            Target(f"AVX2, {compiler}, Haswell", compiler, build._VECTORS["AVX2"], (*QEMU, "Haswell")),
            Target(f"AVX2, {compiler}, as compiled", compiler, build._VECTORS["AVX2"], needs="avx2"),
            Target(f"AVX-512, {compiler}", compiler, build._VECTORS["AVX512"], needs="avx512vl"),
            Target(
                f"AVX-512, {compiler}, no VNNI",
                compiler,
                (*build._VECTORS["AVX512"], "-DNO_DOT_PRODUCTS"),
                needs="avx512vl",
            ),
        ]
    for processor in ("cortex-a53", "max"):  # without and with `sdot`
        arm = ("qemu-aarch64", "-cpu", processor)
        found.append(
            Target(f"ARM, gcc, {processor}", "aarch64-linux-gnu-gcc", ("-static",), arm, platform.machine())
        )
    return found


def compile_driver(compiler: str, folder: Path, flags: Sequence[str] = ()) -> str:
    """Compile the driver in a folder; return the path of the program.

    Raises:
        subprocess.CalledProcessError: the driver does not compile.
    """
    program = str(folder / "driver")
    default = [flag for flag in build._FLAGS if flag not in ("-shared", "-fPIC")]
    include = f"-I{Path(build.__file__).parent}"
    command = [compiler, *default, *flags, include, str(DRIVER), "-o", program, "-lm"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return program


def output_of(target: Target, program: Future[str], arguments: Sequence[str] = ()) -> list[str]:
    """Return the words that the compiled driver prints.

    Raises:
        subprocess.CalledProcessError: the driver does not compile, uses an instruction that the processor lacks, or
            found that the other sentences of a batch or the number of threads change bits.
    """
    command = [*target.emulator, program.result(), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def difference(found: list[str], expected: list[str]) -> float:
    """Return the largest difference of two lists of numbers; infinity where tokens, words or bits differ."""
    if len(found) != len(expected):
        return float("inf")
    numbers = [(word, other) for word, other in zip(found, expected, strict=True) if word != other]
    if any("." not in word or "." not in other for word, other in numbers):
        return float("inf")
    return max((abs(float(word) - float(other)) for word, other in numbers), default=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("compilers", nargs="*", default=("gcc", "clang"))
    parser.add_argument("--sentences", type=int)
    parser.add_argument("--short", action="store_true", help="Run each compiled program on one processor.")
    options = parser.parse_args()
    arguments = [] if options.sentences is None else [str(options.sentences)]
    failed = False
    chosen = targets(options.compilers)
    if options.short:
        chosen = [*{(target.compiler, target.flags): target for target in chosen}.values()]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        runnable = [target for target in chosen if not target.missing()]
        programs = {  # some processors run the same program
            (compiler, flags): pool.submit(compile_driver, compiler, Path(tempfile.mkdtemp(dir=folder)), flags)
            for compiler, flags in dict.fromkeys(target.program for target in runnable)
        }
        outputs = [
            (target, pool.submit(output_of, target, programs[target.program], arguments)) for target in runnable
        ]
        for target in chosen:
            if missing := target.missing():
                print(f"{target.name:24}  not run: needs {missing}")
        for target, output in outputs:
            try:
                far = difference(output.result(), outputs[0][1].result())
                result = f"{len(output.result()):,} numbers and words differ by {far:.1e}"
                failed = failed or not far < TOLERANCE
            except subprocess.CalledProcessError as error:
                result, failed = f"FAILED with {error.returncode}: {error.stderr.strip()[-300:]}", True
            print(f"{target.name:24}  {result}", flush=True)
    raise SystemExit("C code differs between processors" if failed else 0)


if __name__ == "__main__":
    main()
