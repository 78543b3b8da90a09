"""What shards cost and bring: translate a file in one and two workers of this machine and of a Dask cluster.

    python benchmarks/cluster.py --run RUN --text FILE [--lines 20_000] [--short-lines 1_000_000] [--json]

Translates the first lines of FILE greedily: by the plain path, then with workers of one thread each. All give the
same bytes, or the script ends with an error. Printed are seconds of the clock and of the processors, how many times
as fast two workers are as one by either (on a busy machine only the second counts: 2 x the processor time of one
worker / that of two), and the hours of 10^8 lines, extrapolated from the shards that were measured. Then
`--short-lines` lines of one word are translated with a tiny model on two workers; the memory of all processes is
sampled, and its largest value in the last half is compared with that in the first half.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil

import machine
import tiny
from manyheads.data.lines import read_lines


def used_seconds(processes: list[psutil.Process]) -> float:
    """Return the processor time of processes so far."""
    times = [process.cpu_times() for process in processes]
    return sum(used.user + used.system for used in times)


@contextmanager
def dask(folder: Path, workers: int) -> Iterator[tuple[str, list[psutil.Process]]]:
    """Start a scheduler and workers; yields its address and the processes of the workers."""
    from distributed import Client

    file = folder / f"scheduler-{workers}.json"
    shared = ["--no-dashboard", "--scheduler-file", str(file)]
    commands = [["dask_scheduler", *shared, "--host", "127.0.0.1", "--port", "0"]]
    commands += [
        ["dask_worker", *shared, "--nthreads", "1", "--no-nanny", "--local-directory", str(folder)]
    ] * workers
    with ExitStack() as stack:
        log = stack.enter_context((folder / "dask.log").open("ab"))
        processes = []
        for module, *options in commands:
            command = [sys.executable, "-m", f"distributed.cli.{module}", *options]
            processes.append(subprocess.Popen(command, stdout=log, stderr=log))
            stack.callback(processes[-1].wait)
            stack.callback(processes[-1].kill)
        while not file.exists():
            time.sleep(0.1)
        with Client(scheduler_file=str(file), set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=300)
            address = client.scheduler.address
        yield address, [psutil.Process(process.pid) for process in processes[1:]]


class Translation:
    """One command that translates a file, measured.

    Attributes:
        seconds: of the clock.
        processor_seconds: of the command and all processes that computed.
        mib: memory of all processes that belongs to them alone, sampled twice a second.
    """

    def __init__(self, command: list[str], others: list[psutil.Process], output: Path) -> None:
        self.mib: list[float] = []
        before, start = used_seconds(others), time.perf_counter()
        process = psutil.Popen([sys.executable, "-m", "manyheads", "-q", "translate", *command, "-o", str(output)])
        own = 0.0
        sampler = threading.Event()
        while process.poll() is None:
            own = max(own, self.sample(process, others))
            sampler.wait(0.25)
        if process.returncode:
            raise SystemExit(f"translate ended with {process.returncode}")
        self.seconds = round(time.perf_counter() - start, 2)
        self.processor_seconds = round(own + used_seconds(others) - before, 2)
        self.digest = hashlib.sha256(output.read_bytes()).hexdigest()

    def sample(self, process: psutil.Process, others: list[psutil.Process]) -> float:
        """Note the memory of all processes; returns the processor time of the command and its children."""
        used = total = 0.0
        try:
            own = [process, *process.children(recursive=True)]
            used = used_seconds(own)
            total = sum(one.memory_full_info().uss for one in [*own, *others]) / 2**20
        except psutil.Error:  # it has just ended
            return used
        self.mib.append(total)
        return used

    def to_json(self) -> dict[str, float]:
        return {"seconds": self.seconds, "processor seconds": self.processor_seconds}


def measure_speed(run: Path, text: Path, folder: Path) -> dict[str, Any]:
    """Translate a file by every path; the bytes must be the same."""
    base = [str(run), str(text), "--beam", "1", "--device", "cpu"]
    found = {"in this process": Translation(base, [], folder / "here")}
    for workers in (1, 2):
        found[f"workers {workers}"] = Translation(
            [*base, "--workers", str(workers)], [], folder / f"workers{workers}"
        )
    for workers in (1, 2, 4):
        with dask(folder, workers) as (address, processes):
            name = f"dask {workers}"
            Translation([*base, "--scheduler", address], processes, folder / "warm")  # loads the model
            found[name] = Translation([*base, "--scheduler", address], processes, folder / name)
    if len({one.digest for one in found.values()}) > 1:
        raise SystemExit("the outputs differ")
    return {name: one.to_json() for name, one in found.items()}


def two_against_one(rows: dict[str, dict[str, float]], name: str) -> dict[str, float]:
    """How many times as fast two workers are as one, by the clock and by processor time."""
    one, two = rows[f"{name} 1"], rows[f"{name} 2"]
    return {
        "by the clock": round(one["seconds"] / two["seconds"], 2),
        "by processor time": round(2 * one["processor seconds"] / two["processor seconds"], 2),
    }


def measure_memory(lines: int, folder: Path) -> dict[str, float]:
    """Translate many lines of one word with a tiny model on two workers."""
    run = tiny.train_run(folder)
    text = folder / "short.de"
    words = itertools.cycle(tiny.WORDS["de"])
    with text.open("w", encoding="utf-8") as file:
        file.writelines(f"{next(words)}\n" for _ in range(lines))
    command = [str(run), str(text), "--beam", "1", "--device", "cpu", "--workers", "2"]
    done = Translation(command, [], folder / "short.en")
    sizes = done.mib[len(done.mib) // 10 :] or done.mib  # without the start
    half = max(1, len(sizes) // 2)
    first, last = max(sizes[:half]), max(sizes[half:] or sizes)
    return {
        **done.to_json(),
        "lines": lines,
        "largest MiB, first half": round(first, 1),
        "largest MiB, last half": round(last, 1),
        "growth in %": round(100 * (last / first - 1), 2),
    }


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument("--run", type=Path, help="run directory of a translator")
    parser.add_argument("--text", type=Path, help="lines to translate")
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--short-lines", type=int, default=1_000_000)
    arguments = machine.parse(parser, tiny={"lines": 40, "short_lines": 100}, required=["run", "text"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        document = measure(arguments, folder)
    if arguments.json:
        print(json.dumps(document))
        return
    print(machine.describe(document))
    for part in ("rows", "two workers against one", "short lines", "extrapolated"):
        print(f"{part}: {json.dumps(document[part])}")


def measure(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Measure everything."""
    (folder / "tiny").mkdir()
    run = arguments.run or tiny.train_run(folder / "tiny")
    source = arguments.text or folder / "tiny" / "train.de"
    text = folder / "text"
    with text.open("w", encoding="utf-8") as cut:
        cut.writelines(f"{line}\n" for line in itertools.islice(read_lines(source), arguments.lines))
    rows = measure_speed(run, text, folder)
    (folder / "short").mkdir()
    hours = rows["dask 1"]["processor seconds"] / arguments.lines * 1e8 / 3600
    return {
        "unit": "s",
        **machine.about("distributed", threads=1),
        "lines": arguments.lines,
        "rows": rows,
        "two workers against one": {name: two_against_one(rows, name) for name in ("workers", "dask")},
        "extrapolated": {"hours of one worker for 10^8 such lines": round(hours, 1)},
        "short lines": measure_memory(arguments.short_lines, folder / "short"),
    }


if __name__ == "__main__":
    main()
