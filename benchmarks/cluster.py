"""Translate a file with one and two workers of this machine and of a Dask cluster; compare speed and memory.

    python benchmarks/cluster.py --run RUN --text FILE [--lines 20_000] [--short-lines 1_000_000] [--json]

Translates the first lines of FILE greedily: in one process, then with workers of one thread each. If their outputs
differ, the script ends with an error. Printed are seconds of the clock and of the processors, and how many
times as fast two workers are as one by either, with and without the start of the command. On a busy machine only
the processor time counts: 2 x that of one worker / that of two. Then the hours of 10^8 lines, extrapolated from the
shards that were measured. Then `--short-lines` lines of one word are translated with a tiny model on two workers;
the memory of all processes is sampled, and its largest value in the last half is compared with that in the first.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil

from bitext.lines import read_lines
from harness import Document, main, option
from material import WORDS, named, train_run, write


def used_seconds(processes: list[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return sum(used.user + used.system for used in times)


@contextmanager
def dask_cluster(folder: Path, workers: int) -> Iterator[tuple[str, list[psutil.Process]]]:
    """Start a scheduler and workers; yield its address and the processes of the workers."""
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


def translate(
    command: list[str], workers: list[psutil.Process], output: Path, mib: list[float] | None = None
) -> dict[str, float]:
    """Run one command that translates a file; return wall time, and the processor time of it and of all workers.

    Args:
        command: options of `translate`.
        workers: processes that work for it.
        output: file to write.
        mib: gets the memory that belongs to the processes alone (USS), four times a second: sampling costs
            processor time, which two workers on two cores would lack.
    """
    before, start = used_seconds(workers), time.perf_counter()
    process = psutil.Popen([sys.executable, "-m", "manyheads", "-q", "translate", *command, "-o", str(output)])
    while mib is not None and process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        with suppress(psutil.Error):  # one has just ended
            running = [
                each for parent in (process, *workers) for each in (parent, *parent.children(recursive=True))
            ]
            mib.append(sum(each.memory_full_info().uss for each in running) / 2**20)
        time.sleep(0.25)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"translate ended with {os.waitstatus_to_exitcode(status)}")
    used = usage.ru_utime + usage.ru_stime + used_seconds(workers) - before  # and of processes that it has ended
    return {"seconds": round(time.perf_counter() - start, 2), "processor seconds": round(used, 2)}


def measure_speed(run: Path, text: Path, folder: Path) -> Document:
    """Translate a file in every way; exit if outputs differ. The keys "start, ..." are for a file of one line."""
    line = write(folder / "line", itertools.islice(read_lines(text), 1))
    command, outputs, rows = [str(run), "--beam", "1", "--device", "cpu"], set(), {}

    def measure_way(name: str, options: list[str], processes: list[psutil.Process]) -> None:
        short = translate([*command, *options, str(line)], processes, folder / "start")
        rows[name] = translate([*command, *options, str(text)], processes, folder / name)
        rows[name] |= {f"start, {key}": value for key, value in short.items()}
        outputs.add((folder / name).read_bytes())

    measure_way("in this process", [], [])
    for workers in (1, 2):
        measure_way(f"workers {workers}", ["--workers", str(workers)], [])
    for workers in (1, 2, 4):
        with dask_cluster(folder, workers) as (address, processes):
            options = ["--scheduler", address]
            translate([*command, *options, str(text)], processes, folder / "warm")  # loads the model
            measure_way(f"dask {workers}", options, processes)
    if len(outputs) > 1:
        raise SystemExit("the outputs differ")
    return rows


def speedup(rows: dict[str, dict[str, float]], name: str) -> dict[str, float]:
    """Return how many times as fast two workers are as one, by wall time and by processor time."""
    one, two = rows[f"{name} 1"], rows[f"{name} 2"]
    wall, processor = (
        [max(row[key] - row[f"start, {key}"], 0.01) for row in (one, two)]
        for key in ("seconds", "processor seconds")
    )
    return {
        "by the clock, with the start": round(one["seconds"] / two["seconds"], 2),
        "by the clock": round(wall[0] / wall[1], 2),
        "by processor time": round(2 * processor[0] / processor[1], 2),
    }


def measure_memory(lines: int, folder: Path) -> dict[str, float]:
    """Translate many lines of one word with a tiny model on two workers."""
    text = write(folder / "short.de", itertools.islice(itertools.cycle(WORDS["de"]), lines))
    command = [str(train_run(folder)), str(text), "--beam", "1", "--device", "cpu", "--workers", "2"]
    mib: list[float] = []
    row = translate(command, [], folder / "short.en", mib)
    sizes = mib[len(mib) // 10 :] or mib  # without the start
    half = max(1, len(sizes) // 2)
    first, last = max(sizes[:half]), max(sizes[half:] or sizes)
    return {
        **row,
        "lines": lines,
        "largest MiB, first half": round(first, 1),
        "largest MiB, last half": round(last, 1),
        "growth in %": round(100 * (last / first - 1), 2),
    }


def measure(arguments: argparse.Namespace) -> Document:
    folder, lines = arguments.folder, arguments.lines
    text = write(folder / "text", itertools.islice(read_lines(arguments.text), lines))
    rows = measure_speed(arguments.run, text, folder)
    hours = rows["dask 1"]["processor seconds"] / lines * 1e8 / 3600
    (folder / "short").mkdir()
    return {
        "lines": lines,
        "rows": rows,
        "two workers against one": {name: speedup(rows, name) for name in ("workers", "dask")},
        "extrapolated": {"hours of one worker for 10^8 such lines": round(hours, 1)},
        "short lines": measure_memory(arguments.short_lines, folder / "short"),
    }


OPTIONS = {
    "--run": option(Path, "run directory of a translator", tiny=train_run, required=True),
    "--text": option(Path, "lines to translate", tiny=named("train.de"), required=True),
    "--lines": option(20_000, "lines of the text", tiny=40),
    "--short-lines": option(1_000_000, "lines of one word", tiny=100),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="s", packages=["distributed"], threads=1)
