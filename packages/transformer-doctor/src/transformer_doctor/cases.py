"""Run a function for many names, each in a process of its own with limits of time and memory.

The function makes rows of plain values from a name. Rows are appended to a file as lines of JSON, so that a stopped
run resumes after its last row.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

Row = dict[str, Any]
_METHOD: Any = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"  # Windows


@dataclass(frozen=True)
class Limits:
    """Seconds and bytes (on Linux) that a case may take, and the number of cases at a time."""

    seconds: float = 300.0
    memory: int = 4 << 30
    jobs: int = 2


def run_cases(
    names: Sequence[str],
    run: Callable[[str], list[Row]],
    limits: Limits,
    store: Path | None = None,
    preload: Sequence[str] = (),
) -> Iterator[Row]:
    """Yield the rows of all cases, those of a file first; a case that ends early has a row with its `failure`.

    The modules of `preload` are imported once, in the process that the others are forked from.
    """
    done: set[str] = set()
    if store is not None and store.exists():
        lines = store.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if line.endswith("}\n")]  # a process that is killed may leave part of a line
        store.write_text("".join(kept), encoding="utf-8")
        for row in map(json.loads, kept):
            done.add(row["case"])
            if row["case"] in names:
                yield row
    for row in _fresh_rows([name for name in names if name not in done], run, limits, preload):
        if store is not None:
            with store.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        yield row


def _fresh_rows(
    names: Sequence[str], run: Callable[[str], list[Row]], limits: Limits, preload: Sequence[str]
) -> Iterator[Row]:
    """Yield the rows of cases in the order in which they end."""
    context = multiprocessing.get_context(_METHOD)
    if _METHOD == "forkserver":
        context.set_forkserver_preload([__name__, *preload])

    def rows_of(name: str) -> list[Row]:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_send_rows, args=(run, name, limits.memory, sender))
        process.start()
        sender.close()
        try:
            rows = [{"failure": f"not done after {limits.seconds:.0f} s"}]
            if receiver.poll(limits.seconds):
                rows = receiver.recv()
        except EOFError:
            rows = [{"failure": "the process ended without a result"}]
        process.kill()
        process.join()
        return [{"case": name, **row} for row in rows]

    threads = ThreadPoolExecutor(limits.jobs)
    try:
        for task in as_completed([threads.submit(rows_of, name) for name in names]):
            yield from task.result()
    finally:
        threads.shutdown(cancel_futures=True)


def _send_rows(run: Callable[[str], list[Row]], name: str, memory: int, sender: Connection) -> None:
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if sys.platform == "linux":  # macOS does not honour the limit, and Windows has none
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    try:
        sender.send(run(name))
    except Exception as error:  # any exception of the model
        sender.send([{"failure": f"{type(error).__name__}: {error}"[:400]}])
