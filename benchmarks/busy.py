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
import http.client
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import machine

COMMAND = [sys.executable, "-m", "manyheads"]
PARTS = ("training", "scoring", "single", "server")
CLIENTS = 2
SETTINGS = ("training.steps=4", "training.warmup_steps=2", "training.valid_sentences=0", "data.limit=300")
TINY = tuple(part for setting in SETTINGS for part in ("--set", setting))
SENTENCE = "Der kleine Hund schläft heute im Garten."


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Run a number of busy processes of normal priority inside a `with` block."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def run_manyheads(*arguments: str) -> str:
    """Run `manyheads` and return what it prints."""
    completed = subprocess.run([*COMMAND, *arguments, "--quiet"], stdout=subprocess.PIPE, text=True, check=True)
    return completed.stdout


def measured(script: str, *arguments: str) -> dict[str, Any]:
    """Return the JSON document of another script of this folder."""
    command = [sys.executable, str(Path(__file__).with_name(script)), *arguments, "--json"]
    document: dict[str, Any] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return document


def requests_per_second(run: Path, seconds: float) -> float:
    """Start a server, let clients send one request after the other, and return the answers per second."""
    command = [*COMMAND, "serve", str(run), "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        matches = (re.search(r"ready: .*:(\d+)$", line) for line in server.stderr)
        port = next(int(match[1]) for match in matches if match)
        threading.Thread(
            target=server.stderr.read, daemon=True
        ).start()  # empties the pipe, so that the server can log
        count_answers(port, seconds / 5)
        return count_answers(port, seconds) / seconds
    finally:
        server.terminate()
        server.wait()


def count_answers(port: int, seconds: float) -> int:
    """Count the answers that all clients receive in a number of seconds."""
    counts: list[int] = []
    end = time.perf_counter() + seconds

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        body = json.dumps({"q": SENTENCE, "source": "de", "target": "en"})
        count = 0
        while time.perf_counter() < end:
            connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.read()
            assert response.status == 200, response.status
            count += 1
        connection.close()
        counts.append(count)

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counts) == CLIENTS, "a client failed"
    return sum(counts)


def demos_per_second(out: Path) -> float:
    """Run the whole demo, and return 1 / its seconds."""
    start = time.perf_counter()
    run_manyheads("demo", "-o", str(out))
    return 1 / (time.perf_counter() - start)


def measurements(run: Path, arguments: argparse.Namespace, demo: Path) -> dict[str, Callable[[], float]]:
    """Return a function for each part that measures its rate once."""
    training = (
        "training_speed.py",
        "--rounds",
        "1",
        "--updates",
        str(arguments.updates),
        *(TINY if arguments.tiny else ()),
    )
    decoding = ("decoding_speed.py", str(run), "--rounds", "1", "--sentences", str(arguments.sentences))
    return {
        "training": lambda: measured(*training)["median"],
        "scoring": lambda: measured(*decoding, "--batch", "0", "--beam", "3")["rows"][0]["median"],
        "single": lambda: measured(*decoding, "--batch", "1", "--beam", "1")["rows"][0]["median"],
        "server": lambda: requests_per_second(run, arguments.seconds),
        "demo": lambda: demos_per_second(demo),
    }


def table_rows(rates: dict[int, dict[str, float]], cores: int, threads: int) -> list[dict[str, Any]]:
    """Return a row for each part and load: the rate, the fair share, and the rate over the fair one."""
    rows = []
    for part in rates[0]:
        for busy, measured in rates.items():
            share = min(1.0, cores / (threads + busy))
            relative = measured[part] / (rates[0][part] * share)
            rows.append(
                {
                    "part": part, "busy": busy, "rate": round(measured[part], 3), "fair_share": round(share, 3),
                    "of_fair_share": round(relative, 3),
                }
            )  # fmt: skip
    return rows


def main() -> None:
    parser = machine.parser(__doc__)
    parser.add_argument(
        "--busy",
        type=int,
        nargs="+",
        default=[2, 4],
        help="numbers of busy processes to measure beside, after 0 (default 2 4)",
    )
    parser.add_argument("--updates", type=int, default=60, help="updates of training to time (default 60)")
    parser.add_argument("--sentences", type=int, default=500, help="sentences to translate (default 500)")
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds of requests to the server (default 5)")
    parser.add_argument(
        "--parts",
        nargs="+",
        default=PARTS,
        choices=[*PARTS, "demo"],
        help="programs to measure (default: all but demo)",
    )
    parser.add_argument("--run", type=Path, help="finished run of demo-de-en (default: train one first)")
    # without `scoring`, which is the command of `single` with other options
    tiny = {
        "busy": [1],
        "updates": 2,
        "sentences": 10,
        "seconds": 0.5,
        "parts": ["training", "single", "server"],
    }
    arguments = machine.parse(parser, tiny=tiny)
    with tempfile.TemporaryDirectory() as folder:
        run = arguments.run or Path(folder) / "run"
        if arguments.run is None:
            run_manyheads("train", "demo-de-en", "-o", str(run), *(TINY if arguments.tiny else ()))
        rates: dict[int, dict[str, float]] = {}
        for busy in sorted({0, *arguments.busy}):
            part_measurements = measurements(run, arguments, Path(folder) / f"demo-{busy}")
            rates[busy] = {}
            with busy_processes(busy):
                for part in arguments.parts:
                    rates[busy][part] = part_measurements[part]()
                    print(
                        f"{part} beside {busy} busy: {rates[busy][part]:.3f} a second", file=sys.stderr, flush=True
                    )
    about = machine.about()  # after the measurements, as it loads torch
    rows = table_rows(rates, about["cores"], about["threads"])
    if arguments.json:
        print(json.dumps({"unit": "tokens/s, sentences/s, requests/s", **about, "rows": rows}))
        return
    for row in rows:
        print(
            f"{row['part']:9} beside {row['busy']} busy: {row['rate']:10,.4g}   fair share {row['fair_share']:.2f}"
            f"   of the fair share {row['of_fair_share']:.2f}"
        )
    print(machine.describe(about))


if __name__ == "__main__":
    main()
