"""Define the options that all scripts of this folder have, and describe the machine of a measurement.

parser = machine.parser(__doc__)                       # --json, --tiny and --isa
parser.add_argument("--rounds", type=int, default=5)
arguments = machine.parse(parser, tiny={"rounds": 1})
...
print(json.dumps({"unit": "ms", **machine.about("transformers"), "rows": rows}))
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

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


def parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options that all scripts have."""
    result = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    result.add_argument("--json", action="store_true", help="print one JSON document")
    result.add_argument(
        "--tiny",
        action="store_true",
        help="only check that the script runs: made-up data, seconds, no real figures",
    )
    result.add_argument(
        "--isa", choices=["default", *INSTRUCTION_SETS], default="default", help="limit the instruction set"
    )
    return result


def parse(
    parser: argparse.ArgumentParser, *, tiny: Mapping[str, Any], required: Sequence[str] = ()
) -> argparse.Namespace:
    """Parse the command line and limit the instruction set.

    Args:
        parser: see `parser`.
        tiny: defaults with --tiny.
        required: arguments that may only be missing with --tiny.
    """
    if "--tiny" in sys.argv[1:]:
        parser.set_defaults(**tiny)
    arguments = parser.parse_args()
    missing = [name for name in required if getattr(arguments, name) is None]
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
    if instructions_without_limits() not in ("AVX512", isa.upper()):
        raise SystemExit(f"--isa {isa}: the processor here ({processor()}) has no such instructions.")
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | limits)


def instructions_without_limits() -> str:
    """Return the instruction set that torch uses on this processor without the limits."""
    command = [sys.executable, "-c", "import torch; print(torch.backends.cpu.get_cpu_capability())"]
    environment = {name: value for name, value in os.environ.items() if name not in LIMITS}
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def run_counted(command: Sequence[str | Path], **options: Any) -> tuple[float, subprocess.CompletedProcess[Any]]:
    """Run a command; return the processor seconds of all processes that it started, and what `subprocess.run` does.

    Args:
        command: program and arguments.
        options: those of `subprocess.run`.
    """
    before = os.times()
    done = subprocess.run([sys.executable, "-c", RUN_TO_THE_LAST_PROCESS, *command], **options)
    after = os.times()
    user, system = after.children_user - before.children_user, after.children_system - before.children_system
    return user + system, done


def about(*packages: str, threads: int | None = None) -> dict[str, Any]:
    """Describe processor, instruction set, threads and versions, for the JSON document of a script.

    Args:
        packages: further packages whose versions are reported.
        threads: number of threads of the measured processes; None: that of this process.
    """
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
