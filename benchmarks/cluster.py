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
import hashlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

import machine
import tiny
from bitext.lines import read_lines


def used_seconds(processes: list[psutil.Process]) -> float:
    """Return the processor time of processes so far."""
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


class MeasuredTranslation:
    """Run one command that translates a file, and measure it.

    Attributes:
        seconds: wall time.
        processor_seconds: processor time of the command and of all workers.
        mib: memory that belongs to the processes alone (USS), four times a second if `sampled`: sampling costs
            processor time, which two workers on two cores would lack.
        digest: SHA-256 of the output.
    """

    def __init__(
        self, command: list[str], workers: list[psutil.Process], output: Path, sampled: bool = False
    ) -> None:
        self.mib: list[float] = []
        before, start = used_seconds(workers), time.perf_counter()
        process = psutil.Popen([sys.executable, "-m", "manyheads", "-q", "translate", *command, "-o", str(output)])
        while sampled and process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            self.sample([process, *workers])
            time.sleep(0.25)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"translate ended with {os.waitstatus_to_exitcode(status)}")
        own = usage.ru_utime + usage.ru_stime  # and of the processes that it has ended
        self.seconds = round(time.perf_counter() - start, 2)
        self.processor_seconds = round(own + used_seconds(workers) - before, 2)
        self.digest = hashlib.sha256(output.read_bytes()).hexdigest()

    def sample(self, processes: list[psutil.Process]) -> None:
        """Record the memory of processes and their children."""
        with suppress(psutil.Error):  # one has just ended
            running = [each for process in processes for each in (process, *process.children(recursive=True))]
            self.mib.append(sum(each.memory_full_info().uss for each in running) / 2**20)

    def to_json(self) -> dict[str, float]:
        return {"seconds": self.seconds, "processor seconds": self.processor_seconds}


def measure_speed(run: Path, text: Path, folder: Path) -> dict[str, Any]:
    """Translate a file in every way; exit if outputs differ. The keys "start, ..." are for a file of one line."""
    line = folder / "line"
    with text.open(encoding="utf-8") as file:
        line.write_text(file.readline(), encoding="utf-8")
    options = ["--beam", "1", "--device", "cpu"]
    base, short = [str(run), str(text), *options], [str(run), str(line), *options]
    translations = {"in this process": MeasuredTranslation(base, [], folder / "here")}
    starts = {}
    for workers in (1, 2):
        name, worker_options = f"workers {workers}", ["--workers", str(workers)]
        starts[name] = MeasuredTranslation([*short, *worker_options], [], folder / "start")
        translations[name] = MeasuredTranslation([*base, *worker_options], [], folder / name)
    for workers in (1, 2, 4):
        with dask_cluster(folder, workers) as (address, processes):
            name, worker_options = f"dask {workers}", ["--scheduler", address]
            MeasuredTranslation([*base, *worker_options], processes, folder / "warm")  # loads the model
            starts[name] = MeasuredTranslation([*short, *worker_options], processes, folder / "start")
            translations[name] = MeasuredTranslation([*base, *worker_options], processes, folder / name)
    if len({translation.digest for translation in translations.values()}) > 1:
        raise SystemExit("the outputs differ")
    rows = {name: translation.to_json() for name, translation in translations.items()}
    for name, translation in starts.items():
        rows[name] |= {f"start, {key}": value for key, value in translation.to_json().items()}
    return rows


def speedup(rows: dict[str, dict[str, float]], name: str) -> dict[str, float]:
    """Return how many times as fast two workers are as one, by wall time and by processor time."""
    one_worker, two_workers = rows[f"{name} 1"], rows[f"{name} 2"]
    key = "processor seconds"
    return {
        "by the clock, with the start": round(one_worker["seconds"] / two_workers["seconds"], 2),
        "by the clock": round(without_start(one_worker, "seconds") / without_start(two_workers, "seconds"), 2),
        "by processor time": round(2 * without_start(one_worker, key) / without_start(two_workers, key), 2),
    }


def without_start(row: dict[str, float], key: str) -> float:
    """Return the seconds of a command without those of its start."""
    return max(row[key] - row[f"start, {key}"], 0.01)


def measure_memory(lines: int, folder: Path) -> dict[str, float]:
    """Translate many lines of one word with a tiny model on two workers."""
    run = tiny.train_run(folder)
    text = folder / "short.de"
    words = itertools.cycle(tiny.WORDS["de"])
    with text.open("w", encoding="utf-8") as file:
        file.writelines(f"{next(words)}\n" for _ in range(lines))
    command = [str(run), str(text), "--beam", "1", "--device", "cpu", "--workers", "2"]
    translation = MeasuredTranslation(command, [], folder / "short.en", sampled=True)
    sizes = translation.mib[len(translation.mib) // 10 :] or translation.mib  # without the start
    half = max(1, len(sizes) // 2)
    first, last = max(sizes[:half]), max(sizes[half:] or sizes)
    return {
        **translation.to_json(),
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
    """Measure speed and memory; return the document."""
    (folder / "tiny").mkdir()
    run = arguments.run or tiny.train_run(folder / "tiny")
    source = arguments.text or folder / "tiny" / "train.de"
    text = folder / "text"
    with text.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in itertools.islice(read_lines(source), arguments.lines))
    rows = measure_speed(run, text, folder)
    (folder / "short").mkdir()
    hours = rows["dask 1"]["processor seconds"] / arguments.lines * 1e8 / 3600
    return {
        "unit": "s",
        **machine.about("distributed", threads=1),
        "lines": arguments.lines,
        "rows": rows,
        "two workers against one": {name: speedup(rows, name) for name in ("workers", "dask")},
        "extrapolated": {"hours of one worker for 10^8 such lines": round(hours, 1)},
        "short lines": measure_memory(arguments.short_lines, folder / "short"),
    }


if __name__ == "__main__":
    main()
