"""Measure training, scoring and the server beside busy processes, against a fair share of the processor.

    python benchmarks/busy.py [--parts training server] [--busy 2 4] [--run RUN] [--tiny] [--json]

Starts the busy processes itself, at normal priority. For each number of them:
    training    target tokens/s of the recipe `demo-de-en`
    scoring     sentences/s of its test text, all in one call, with the beam of the recipe
    single      sentences/s, one a call, greedily
    server      requests/s of two clients, one sentence a request
    demo        1 / seconds of `manyheads demo`, from start to end; measured only if --parts names it
Each figure is the mean over its whole time. With C cores, T threads of ours and N busy processes, a fair share is
C / (T + N) of a core for each thread, at most one; the last column is rate / (idle rate x fair share).
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count, takewhile
from pathlib import Path

from harness import Document, about, in_turn, main, option, script, settings, with_settings
from serve import ConnectionPool, serving

PARTS = ("training", "scoring", "single", "server")
TINY_PARTS = ["training", "single", "server"]  # `scoring` is the command of `single` with other options
CLIENTS = 2
TINY = ("training.steps=4", "training.warmup_steps=2", "training.valid_sentences=0", "data.limit=300")
SENTENCE = "Der kleine Hund schläft heute im Garten."


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def run_manyheads(*arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "manyheads", *arguments, "--quiet"], stdout=sys.stderr, check=True)


def requests_per_second(run: Path, seconds: float) -> float:
    """Start a server, let clients send one request after the other, and return the answers per second."""
    with serving(run) as server:

        async def count_answers(duration: float) -> int:
            pool, end = ConnectionPool(server, ("de", "en")), time.perf_counter() + duration
            numbers = takewhile(lambda _: time.perf_counter() < end, count())
            answers = await pool.closed_loop([SENTENCE], CLIENTS, 1, numbers)
            pool.close()
            assert all(answer.status == 200 for answer in answers)
            return len(answers)

        asyncio.run(count_answers(seconds / 5))
        return asyncio.run(count_answers(seconds)) / seconds


def measurements(
    run: Path, arguments: argparse.Namespace, demo: Callable[[], None]
) -> dict[str, Callable[[], float]]:
    """Return a function for each part that measures its rate once."""
    training = [
        "training_speed",
        "--rounds",
        1,
        "--updates",
        arguments.updates,
        *with_settings(arguments.overrides),
    ]
    decoding = ["decoding_speed", run, "--rounds", 1, "--sentences", arguments.sentences]
    return {
        "training": lambda: script(*training)["median"],
        "scoring": lambda: script(*decoding, "--batch", 0, "--beam", 3)["rows"][0]["median"],
        "single": lambda: script(*decoding, "--batch", 1, "--beam", 1)["rows"][0]["median"],
        "server": lambda: requests_per_second(run, arguments.seconds),
        "demo": lambda: 1 / in_turn({"demo": demo}, 1, warm_up=0)["demo"][0],
    }


def compared_rates(rates: dict[int, dict[str, float]], cores: int, threads: int) -> list[Document]:
    """Return a row for each part and load: the rate, the fair share, and the rate over the fair one."""
    rows = []
    for part in rates[0]:
        for busy, measured in rates.items():
            share = min(1.0, cores / (threads + busy))
            figures = {
                "rate": measured[part],
                "fair_share": share,
                "of_fair_share": measured[part] / (rates[0][part] * share),
            }
            rows.append({"part": part, "busy": busy, **{name: round(value, 3) for name, value in figures.items()}})
    return rows


def measure(arguments: argparse.Namespace) -> Document:
    """Measure all parts without busy processes, then beside each number of them."""
    run = arguments.run or arguments.folder / "run"
    if arguments.run is None:
        run_manyheads("train", "demo-de-en", "-o", run, *with_settings(arguments.overrides))
    rates: dict[int, dict[str, float]] = {}
    for busy in sorted({0, *arguments.busy}):
        parts = measurements(
            run, arguments, partial(run_manyheads, "demo", "-o", arguments.folder / f"demo-{busy}")
        )
        rates[busy] = {}
        with busy_processes(busy):
            for part in arguments.parts:
                rates[busy][part] = parts[part]()
                print(f"{part} beside {busy} busy: {rates[busy][part]:.3f} a second")
    machine = about()  # after the measurements, as it loads torch
    return {"rows": compared_rates(rates, machine["cores"], machine["threads"])}


OPTIONS = {
    "--busy": option([2, 4], "numbers of busy processes to measure beside, after 0", tiny=[1]),
    "--updates": option(60, "updates of training to time", tiny=2),
    "--sentences": option(500, "sentences to translate", tiny=10),
    "--seconds": option(5.0, "seconds of requests to the server", tiny=0.5),
    "--parts": option([*PARTS], "programs to measure", choices=[*PARTS, "demo"], tiny=TINY_PARTS),
    "--run": option(Path, "finished run of demo-de-en (default: train one first)"),
    "--set": settings(TINY),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="tokens/s, sentences/s, requests/s")
