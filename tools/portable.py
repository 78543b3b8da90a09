"""Run the tests for every kind of processor: instruction sets, compilers, numbers of threads, and busy programs.

    python -m tools.portable            the whole matrix: under 30 minutes on two cores
    python -m tools.portable --short    under two minutes
    python -m tools.portable --list     the rows

A row is a configuration and the tests that run in it. Instruction sets are limited by the switches of torch,
oneDNN, MKL and CTranslate2 (our C code is compiled for the one that torch uses), or emulated by QEMU, which refuses
every instruction that the named processor lacks. A row that cannot run here names its requirements; a failed
row does not stop the others, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path

Environment = Mapping[str, str]

LOGS = Path("build/portable")
BUSY_PROCESSES = 4  # busy processes beside a row that asks for them
MINUTES = 25  # limit of a row
COMPILERS = re.compile(r"(.*-)?(cc|gcc|g\+\+|c\+\+|clang|clang\+\+|tcc)(-[\d.]+)?")

# Instruction sets, and the flags of /proc/cpuinfo that a processor needs for them.
SSE = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
       "CT2_FORCE_CPU_ISA": "GENERIC"}  # fmt: skip
AVX2 = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "CT2_FORCE_CPU_ISA": "AVX2"}  # fmt: skip
AVX512 = {"ATEN_CPU_CAPABILITY": "avx512", "CT2_FORCE_CPU_ISA": "AVX512"}
NO_C = {"MANYHEADS_NATIVE": "0"}
ROUNDING = {"MANYHEADS_TEST_ROUNDING": "1"}  # tests/rounding.py


def files(names: str) -> tuple[str, ...]:
    """Return paths of files and folders of tests."""
    return tuple(f"tests/{name}" for name in names.split())


DOCTOR = "packages/transformer-doctor/tests"


# Tests whose results depend on kernels or on timing, by topic.
NUMBERS = files("model decoding inference golden")
DECODING = files("decoding inference")
SEARCH = files("decoding inference/test_engines.py inference/test_batching.py inference/test_parity.py")
SUMS = files(
    "model/test_attention.py model/test_layers.py model/test_encoder_decoder.py golden training/test_loss.py"
)
QUICK = ("-m", "not slow")  # sanitizers and warnings of compilers: `make test-slow`, and rows of the long form
THREADING = files("inference/native/test_model.py decoding/test_continuous.py inference/test_threads.py")
TRAINING = files("training/test_trainer.py tensors/test_devices.py training/test_loss.py runs/test_train.py")
NUMERICAL = (
    *files(
        "model tensors decoding inference golden tasks training inspection interop evaluation checks runs devices"
    ), DOCTOR
)  # fmt: skip
EXPORTS = files("interop/test_ctranslate2.py interop/test_huggingface.py runs/test_export.py")
ENCODER_DECODER = files("model/test_encoder_decoder.py")
PROCESSORS = "tests.inference.native.processors"
LEARNING = ("-m", "learning", *files("model training runs"), f"{DOCTOR}/checks/test_training.py")
TIMING = ("-k", "not compile", *files(
    "serving/test_batching.py serving/test_connections.py serving/test_server.py serving/test_safety.py "
    "system/test_interruption.py training/test_batches.py training/test_distributed.py "
    "inference/test_threads.py"
))  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A configuration and the tests that run in it.

    Attributes:
        name: the name of the configuration.
        tests: arguments of pytest; or of Python, where `emulator` or `module` is given.
        environment: variables to set.
        flags: required flags of the processor, as in /proc/cpuinfo.
        tools: required programs.
        threads: threads of torch and of our C code; 0: one in each test process.
        compiler: whether a C compiler is found on the path.
        busy: whether four busy processes run at the same time.
        emulator: the command of an emulator that runs Python.
        module: whether `tests` names a Python module.
        short: whether the short form has this row.
    """

    name: str
    tests: tuple[str, ...]
    environment: Environment = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    threads: int = 0
    compiler: bool = True
    busy: bool = False
    emulator: tuple[str, ...] = ()
    module: bool = False
    short: bool = False

    def missing(self) -> list[str]:
        """Return what this machine lacks for the row."""
        lacking = [f"a processor with {flag}" for flag in self.flags if flag not in processor_flags()]
        return lacking + [f"the program {tool}" for tool in self.tools if shutil.which(tool) is None]

    def command(self) -> list[str]:
        """Return the command line of the row."""
        python = [*self.emulator, sys.executable]
        if self.module:
            return [*python, "-m", *self.tests]
        workers = ["-n", "auto", "--maxprocesses", "4", "--dist", "loadfile"] if not self.threads else []
        return [*python, "-m", "pytest", "-p", "no:cacheprovider", "-rf", "--tb=short", *workers, *self.tests]


def emulated(processor: str, *, short: bool = False) -> Row:
    """Return a row that runs the program under QEMU with the instructions of a processor alone."""
    return Row(f"{processor}, emulated: the program", ("tests.system.smoke",), tools=("qemu-x86_64",), threads=1,
               emulator=("qemu-x86_64", "-cpu", processor), module=True, flags=("lm",), short=short)  # fmt: skip


ROWS = [
    Row("C code of gcc, once for each instruction set", (PROCESSORS, "gcc", "--short"), tools=("gcc",), module=True,
        short=True),
    Row("C code of gcc on every instruction set", (PROCESSORS, "gcc"), tools=("gcc",), module=True),
    Row("C code of clang on every instruction set", (PROCESSORS, "clang"), tools=("clang",), module=True),
    Row("1,000 sentences in int8 on every instruction set", (PROCESSORS, "gcc", "--sentences", "1000"),
        tools=("gcc",), module=True),
    Row("AVX2, no compiler: all but the book and slow tests",
        ("tests", DOCTOR, "--ignore=tests/docs", "-m", "not slow"), AVX2, ("avx2",), compiler=False),
    Row("AVX2: learning", LEARNING, AVX2, ("avx2",)),
    Row("AVX2: decoding, 8 threads", (*DECODING, *QUICK), AVX2, ("avx2",), threads=8),
    Row("AVX2: numbers and exports, 2 threads", (*NUMBERS, *EXPORTS), AVX2, ("avx2",), threads=2),
    Row("SSE: numbers, training, exports", (*NUMBERS, *TRAINING, *EXPORTS), SSE, ("sse4_2",)),
    Row("SSE, no compiler: search, learning", (*SEARCH, *ENCODER_DECODER, *QUICK), SSE, ("sse4_2",), compiler=False,
        short=True),
    Row("SSE, no compiler: decoding", (*DECODING, *QUICK), SSE, ("sse4_2",), compiler=False),
    Row("SSE, C switched off: numbers, 1 thread", NUMBERS, SSE | NO_C, ("sse4_2",), threads=1),
    Row("AVX-512: numbers, 1 thread", NUMBERS, AVX512, ("avx512f",), threads=1),
    Row("AVX-512, no compiler: numbers, exports", (*NUMBERS, *EXPORTS), AVX512, ("avx512f",), compiler=False),
    Row("AVX-512: decoding, training, 8 threads", (*DECODING, *TRAINING), AVX512, ("avx512f",), threads=8),
    Row("rounding mode: sums of the model and of the loss", (*SUMS, *QUICK), ROUNDING, short=True),
    Row("rounding mode: all numerical packages", (*NUMERICAL, *QUICK), ROUNDING),
    Row("this processor, beside 4 busy processes: clocks", TIMING, busy=True),
    Row("this processor, beside 4 busy processes: decoding, 2 threads", THREADING, threads=2, busy=True),
    emulated("Nehalem"),
    emulated("Haswell"),
]  # fmt: skip


def processor_flags() -> set[str]:
    """Return the flags of this machine's processor, as in /proc/cpuinfo."""
    path = Path("/proc/cpuinfo")
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", path.read_text() if path.exists() else "", re.MULTILINE)
    return set(found[1].split()) if found else set()


@contextmanager
def without_compiler() -> Iterator[str]:
    """Yield a PATH with all programs except compilers."""
    with tempfile.TemporaryDirectory() as folder:
        for directory in filter(os.path.isdir, os.environ["PATH"].split(os.pathsep)):
            for program in os.scandir(directory):
                link = Path(folder, program.name)
                if not COMPILERS.fullmatch(program.name) and not link.is_symlink():
                    link.symlink_to(os.path.abspath(program.path))
        yield folder


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Run a number of busy processes inside the context."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def variables(row: Row, path: str, cache: str) -> dict[str, str]:
    """Return the environment of a row, without other variables for instruction sets, compilers or threads."""
    chosen = {*SSE, *AVX2, *NO_C, *ROUNDING, "OMP_NUM_THREADS", "MKL_NUM_THREADS", "CC", "CXX"}
    found = {name: value for name, value in os.environ.items() if name not in chosen} | dict(row.environment)
    if not row.compiler:
        found |= {"PATH": path, "XDG_CACHE_HOME": cache}  # an empty cache, without compiled libraries
    if row.threads:
        found["OMP_NUM_THREADS"] = str(row.threads)
    return found


def run(row: Row, log: Path) -> str:
    """Run a row with its output in a file; return "passed" or "FAILED" with the counts."""
    with (
        log.open("w", encoding="utf-8") as output,
        busy_processes(BUSY_PROCESSES if row.busy else 0),
        tempfile.TemporaryDirectory() as cache,
        without_compiler() as path,
    ):
        try:
            done = subprocess.run(row.command(), env=variables(row, path, cache), stdout=output,
                                  stderr=subprocess.STDOUT, timeout=60 * MINUTES, check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"FAILED: not done after {MINUTES} minutes"
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() or [""]
    counts = re.sub(r" in [\d.]+s.*| \(\d+:.*", "", lines[-1].strip("= ")) if not row.module else ""
    failed = done.returncode != 0
    return f"{'FAILED' if failed else 'passed'} {counts or failed * lines[-1]}".strip()


def report(row: Row, width: int) -> str:
    """Run a row, and return the lines of its report."""
    start, missing = time.perf_counter(), row.missing()
    log = LOGS / (re.sub(r"\W+", "-", row.name) + ".txt")
    result = f"not run: needs {', '.join(missing)}" if missing else run(row, log)
    lines = [f"{row.name:{width}}  {time.perf_counter() - start:5.0f} s  {result}"]
    for line in [] if missing else log.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith(("FAILED ", "ERROR ")) or "not run: needs" in line:
            lines.append(f"    {line[:150]}")
    return "\n".join(lines)


def main() -> None:
    """Run the chosen rows, and exit with 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="Run only the rows of the short form.")
    parser.add_argument("--list", action="store_true", help="Print the rows and run nothing.")
    parser.add_argument("--only", default="", help="Run the rows whose name contains this text.")
    arguments = parser.parse_args()
    rows = [row for row in ROWS if (row.short or not arguments.short) and arguments.only in row.name]
    width = max(len(row.name) for row in rows)
    if arguments.list:
        print(*(f"{row.name:{width}}  {' '.join(row.tests)}" for row in rows), sep="\n")
        return
    print(f"{platform.machine()}, {os.cpu_count()} cores; outputs are in {LOGS}", flush=True)
    print(f"{'configuration: tests':{width}}     wall  result", flush=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    failed, started = False, time.perf_counter()
    for exclusive in (True, False):  # rows of one thread run two at a time, the others one after the other
        with ThreadPoolExecutor(1 if exclusive else 2) as pool:
            for printed in pool.map(
                report, [row for row in rows if (row.threads != 1) is exclusive], repeat(width)
            ):
                print(printed, flush=True)
                failed |= "FAILED" in printed
    print(f"{'all':{width}}  {time.perf_counter() - started:5.0f} s", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
