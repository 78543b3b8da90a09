"""Measure how long the command line takes to answer, and how much the core adds to an installation.

    python benchmarks/startup.py [--json]

The size is that of the installed files of manyheads and of all that it needs, without torch, numpy, and what only
those two need.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import time
from importlib import metadata

import machine

COMMANDS = {"--help": ["--help"], "usage error": ["train"], "unknown recipe": ["train", "no-such-recipe"]}


def seconds(arguments: list[str], repeats: int) -> list[float]:
    """Return the wall time of whole processes; the first one warms up and is left out."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "manyheads", *arguments], capture_output=True, check=False)
        times.append(time.perf_counter() - start)
    return times[1:]


def required_packages(name: str) -> set[str]:
    """Return a package and the installed packages that it requires, directly or indirectly, without extras."""
    packages: set[str] = set()
    queue = [name]
    while queue:
        package = re.sub(r"[-_.]+", "-", queue.pop()).lower()
        if package in packages:
            continue
        try:
            requirements = metadata.requires(package) or []
        except metadata.PackageNotFoundError:
            continue
        packages.add(package)
        without_extras = [requirement for requirement in requirements if "extra ==" not in requirement]
        queue += [re.match(r"[\w.-]+", requirement)[0] for requirement in without_extras]
    return packages


def mebibytes(package: str) -> float:
    """Return the size of a package's files on disk in MiB."""
    files = metadata.files(package) or []
    return sum(path.stat().st_size for file in files if (path := file.locate()).is_file()) / 2**20


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    arguments = machine.parse(parser, tiny={"repeats": 1})
    times = {name: seconds(command, arguments.repeats) for name, command in COMMANDS.items()}
    rows = {
        name: {
            "median": round(statistics.median(measured), 3),
            "min": round(min(measured), 3),
            "max": round(max(measured), 3),
        }
        for name, measured in times.items()
    }
    packages = required_packages("manyheads") - required_packages("torch") - required_packages("numpy")
    sizes = {package: round(mebibytes(package), 1) for package in sorted(packages)}
    total = round(sum(sizes.values()), 1)
    about = machine.about()
    if arguments.json:
        print(json.dumps({"unit": "s", **about, "rows": rows, "mebibytes": total, "packages": sizes}))
        return
    print(machine.describe(about))
    for name, row in rows.items():
        print(f"{name:16} {row['median']:.3f} s  [{row['min']:.3f} to {row['max']:.3f}]")
    print(
        f"core beside torch and numpy: {total} MiB ({', '.join(f'{name} {size}' for name, size in sizes.items())})"
    )


if __name__ == "__main__":
    main()
