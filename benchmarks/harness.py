"""Run the scripts of this folder: options, the machine of a measurement, timing in turn, processes, tables.

A script names its options by their defaults, and has a function that measures and returns a document:

    OPTIONS = {"run": option(Path, "run directory", tiny=train_run, required=True), "--rounds": option(3, "rounds")}

    def measure(arguments):
        return {"rows": {"greedy": {"median": 1_009.0}}}

    if __name__ == "__main__":
        main(measure, __doc__, OPTIONS, unit="sentences/s")

`main` gives it an empty folder, `arguments.folder`, and prints the document with the machine, as JSON or as tables.
What `measure` prints is progress, and goes to standard error. This module imports the standard library alone.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
INSTRUCTION_SETS = {  # environment variables that torch, oneDNN, MKL and CTranslate2 read when they are loaded
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "CT2_FORCE_CPU_ISA": "AVX2",
    },
    "avx512": {
        "ATEN_CPU_CAPABILITY": "avx512",
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16",
        "MKL_ENABLE_INSTRUCTIONS": "AVX512",
        "CT2_FORCE_CPU_ISA": "AVX512",
    },
}
LIMITS = tuple(INSTRUCTION_SETS["avx2"])
# Program that runs a command, and ends when all processes have ended that the command started. On Linux, a process
# whose parent ends first, such as the fork server of multiprocessing, becomes a child of this program.
RUN_TO_THE_LAST_PROCESS = """
import contextlib, ctypes, os, subprocess, sys
PR_SET_CHILD_SUBREAPER = 36
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
code = subprocess.call(sys.argv[1:])
with contextlib.suppress(ChildProcessError):
    while True:
        os.wait()
sys.exit(code)
"""
Document = dict[str, Any]
Option = dict[str, Any]


# --- options ---


def option(default: Any, help: str, /, *, tiny: Any = None, required: bool = False, **settings: Any) -> Option:
    """Describe an option, as `add_argument` of argparse takes it, by its default.

    Args:
        default: a value, a list of values, False for a flag, or a type if there is none.
        help: text of --help, without the default.
        tiny: default with --tiny if it is another one; a function is called with the empty folder.
        required: whether it must be given, but with --tiny.
        settings: further ones of argparse.
    """
    common = {"help": help, "tiny": tiny, "required": required, **settings}
    if default is False:
        return {"action": "store_true", **common}
    if isinstance(default, type):
        return {"type": default, **common}
    several = isinstance(default, list)
    common["help"] += f" (default {' '.join(map(str, default)) if several else default})"
    kind = {"type": type(default[0]), "nargs": "+"} if several else {"type": type(default)}
    return {"default": default, **kind, **common}


def settings(tiny: Any = ()) -> Option:
    """Describe the option --set."""
    names = {"dest": "overrides", "metavar": "SECTION.KEY=VALUE", "action": "append", "default": []}
    return {**names, "help": "a setting", "tiny": tiny if callable(tiny) else [*tiny], "required": False}


COMMON = {
    "--json": option(False, "print one JSON document"),
    "--tiny": option(False, "only check that the script runs: made-up data, seconds, no real figures"),
    "--isa": option("default", "limit the instruction set", choices=["default", *INSTRUCTION_SETS]),
}


def parse(description: str | None, options: Mapping[str, Option]) -> argparse.Namespace:
    """Parse the command line, and limit the instruction set; options without dashes are arguments."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    required = []
    for name, values in {**options, **COMMON}.items():
        described = {key: value for key, value in values.items() if key not in ("tiny", "required")}
        action = parser.add_argument(name, **({} if name.startswith("-") else {"nargs": "?"}), **described)
        if values["required"]:
            required.append(action)
        if values["tiny"] is not None and "--tiny" in sys.argv[1:]:
            action.default = values["tiny"]
    arguments = parser.parse_args()
    missing = [action.dest for action in required if getattr(arguments, action.dest) is None]
    if missing and not arguments.tiny:
        parser.error(f"the following arguments are required: {', '.join(missing)}")
    if arguments.isa != "default":
        limit_instructions(arguments.isa)
    return arguments


def limit_instructions(isa: str) -> None:
    """Limit this process and those that it starts to an instruction set.

    Libraries read the variables when they are loaded, so the script is started again with them.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        raise SystemExit(f"--isa {isa} is for x86-64 processors, and this one is {platform.machine()}.")
    limits = INSTRUCTION_SETS[isa]
    if all(os.environ.get(name) == value for name, value in limits.items()):
        return
    command = [sys.executable, "-c", "import torch; print(torch.backends.cpu.get_cpu_capability())"]
    unlimited = {name: value for name, value in os.environ.items() if name not in LIMITS}
    if subprocess.check_output(command, env=unlimited, text=True).strip() not in ("AVX512", isa.upper()):
        raise SystemExit(f"--isa {isa}: the processor here ({processor()}) has no such instructions.")
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | limits)


def main(
    measure: Callable[[argparse.Namespace], Document],
    description: str | None,
    options: Mapping[str, Option],
    *,
    unit: str,
    packages: Sequence[str] = (),
    threads: int | None = None,
) -> Document:
    """Parse the command line, measure, and print the document with the machine; return it.

    Args:
        measure: takes the arguments; `versions` of its document are added to those of the machine.
        description: text of --help.
        options: see `parse`.
        unit: of the figures.
        packages: further packages whose versions are reported.
        threads: number of threads of the measured processes; None: --threads, or that of this process.
    """
    arguments = parse(description, options)
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(sys.stderr):
        arguments.folder = Path(folder)
        for name, value in vars(arguments).items():
            if callable(value):
                setattr(arguments, name, value(arguments.folder))
        result = measure(arguments)
    machine = about(*packages, threads=threads or getattr(arguments, "threads", None))
    machine["versions"] |= result.pop("versions", {})
    if arguments.tiny:
        machine["tiny"] = True
    document = {"unit": unit, **machine, **result}
    if arguments.json:
        print(json.dumps(document))
    else:
        print(describe(document), *tables(result), sep="\n")
    return document


# --- the machine ---


def about(*packages: str, threads: int | None = None) -> Document:
    """Describe processor, instruction set, threads of the measured processes, and versions of packages."""
    import torch

    names = ("manyheads", "torch", *packages)
    return {
        "device": processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "limited by": {name: os.environ[name] for name in LIMITS if name in os.environ},
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": threads or torch.get_num_threads(),
        "date": date.today().isoformat(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in names}},
    }


def describe(about: Mapping[str, Any]) -> str:
    """Format the result of `about` as one line."""
    limits = f" (limited by {', '.join(about['limited by'])})" if about["limited by"] else ""
    versions = ", ".join(f"{name} {value}" for name, value in about["versions"].items())
    return (
        f"{about['device']}, {about['instructions']}{limits}, {about['cores']} cores, {about['threads']} threads, "
        f"{about['date']}; {versions}"
    )


def processor() -> str:
    """Return the model name of the processor."""
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        names = [
            line.partition(":")[2].strip() for line in listing.read_text().splitlines() if "model name" in line
        ]
        if names:
            return names[0]
    if sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    return platform.processor() or platform.machine()


# --- processes ---


def output_of(*command: str | Path | int, **options: Any) -> Any:
    """Run a command, and return the JSON document that it prints; options are those of `subprocess.run`."""
    done = subprocess.run([*map(str, command)], check=True, stdout=subprocess.PIPE, text=True, **options)
    return json.loads(done.stdout)


def manyheads(*arguments: str | Path, **options: Any) -> Any:
    """Run the program, and return the JSON document that it prints."""
    return output_of(sys.executable, "-m", "manyheads", *arguments, "--json", **options)


def script(name: str, *arguments: str | Path | int) -> Any:
    """Run another script of this folder, and return its document."""
    return output_of(sys.executable, FOLDER / f"{name}.py", *arguments, "--json")


def with_settings(overrides: Sequence[str]) -> list[str]:
    """Return the command-line options that set these settings."""
    return [part for override in overrides for part in ("--set", override)]


def in_own_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of a module in a new process, and return its result; what it prints is progress."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_call, (function, arguments))


def _call(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    with redirect_stdout(sys.stderr):
        return function(*arguments)


def environment(folder: Path, *requirements: str, beside: Path | None = None) -> Path:
    """Return the Python of an environment with some packages, which is made unless it is there.

    Args:
        folder: its folder.
        requirements: packages, and options of `pip install`.
        beside: a folder of packages that are seen too.

    Raises:
        subprocess.CalledProcessError: a package cannot be installed.
    """
    python, complete = folder / "bin" / "python", folder / "complete"
    if not complete.exists() or complete.read_text() != f"{sys.executable} {requirements}":
        subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", folder], check=True)
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", str(python)]
        if beside is not None:
            line = f"import site; site.addsitedir({str(beside)!r})\n"
            (site_packages(python) / "beside.pth").write_text(line, encoding="utf-8")
        install = [*pip, "install", *requirements]
        subprocess.run(install, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        complete.write_text(f"{sys.executable} {requirements}")
    return python


def site_packages(python: Path) -> Path:
    """Return the folder of the packages of an environment."""
    return next((python.parents[1] / "lib").glob("python*/site-packages"))


def run_counted(command: Sequence[str | Path], **options: Any) -> tuple[float, subprocess.CompletedProcess[Any]]:
    """Run a command; return the processor seconds of all processes that it started, and the completed process."""
    before = os.times()
    done = subprocess.run([sys.executable, "-c", RUN_TO_THE_LAST_PROCESS, *command], **options)
    after = os.times()
    user, system = after.children_user - before.children_user, after.children_system - before.children_system
    return user + system, done


# --- figures ---


def in_turn(
    sides: Mapping[Any, Callable[[], object]],
    rounds: int,
    *,
    warm_up: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[Any, list[float]]:
    """Call all sides in turn in each round; return the seconds of each, rounds of warm-up left out."""
    seconds: dict[Any, list[float]] = {side: [] for side in sides}
    for number in range(warm_up + rounds):
        for side, run in sides.items():
            start = clock()
            run()
            if number >= warm_up:
                seconds[side].append(clock() - start)
    return seconds


def spread(values: Sequence[float], digits: int = 3) -> dict[str, float]:
    """Return median and range, rounded."""
    figures = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {name: round(value, digits or None) for name, value in figures.items()}


def over_seeds(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the mean of each number of the rows, and its standard deviation."""
    names = [name for name, value in rows[0].items() if isinstance(value, int | float) and name != "seed"]
    columns = {name: [row[name] for row in rows] for name in names}
    return {
        "mean": {name: round(statistics.mean(values), 4) for name, values in columns.items()},
        "deviation": {
            name: round(statistics.stdev(values), 4) if len(rows) > 1 else 0.0 for name, values in columns.items()
        },
    }


# --- tables ---


def tables(document: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield a document as text: a Markdown table for each group of rows, and a line for each other value."""
    for name, value in document.items():
        label = f"{above}, {name}" if above else str(name)
        if isinstance(value, Mapping) and value and all(map(is_row, value.values())):
            yield from table([{label: key, **row} for key, row in value.items()])
        elif is_row(value) and value:
            yield from table([{label: key, "": entry} for key, entry in value.items()])
        elif isinstance(value, Mapping):
            yield from tables(value, label)
        elif isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
            yield f"\n{label}"
            yield from table(value)
        else:
            yield f"{label}: {cell(value)}"


def is_row(value: Any) -> bool:
    """Return whether a value is a mapping without mappings inside."""
    parts = value.values() if isinstance(value, Mapping) else [{}]
    return not any(
        isinstance(part, Mapping) or (isinstance(part, list) and any(map(is_row, part))) for part in parts
    )


def table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a Markdown table, with a column for each name that a row has."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    yield f"\n| {' | '.join(names)} |\n|{' --- |' * len(names)}"
    for row in rows:
        yield f"| {' | '.join(cell(row.get(name)) for name in names)} |"


def cell(value: Any) -> str:
    """Format a value: numbers with four digits or whole, True and False as words, None as nothing."""
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "**no**"}[value]
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return ", ".join(map(cell, value)) if isinstance(value, list | tuple) else str(value)
