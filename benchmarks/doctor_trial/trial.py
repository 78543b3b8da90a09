"""Run the cases of the doctor's trial, each in a process of its own with limits of time and memory.

A case is a name, from which a function makes rows of plain values. Rows are appended to a file as lines of JSON, so
that a stopped run resumes after its last row.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

Row = dict[str, Any]
PRELOADED = [
    "transformers.models.auto.modeling_auto",
    "transformers.models.bert.modeling_bert",  # with the modules that each model imports
    "transformer_doctor.examination",
    "sacrebleu",
]


@dataclass(frozen=True)
class Limits:
    """Seconds and bytes that a case may take, and the number of cases at a time."""

    seconds: float = 300.0
    memory: int = 4 << 30
    jobs: int = 2


def run_cases(
    names: Sequence[str], run: Callable[[str], list[Row]], limits: Limits, store: Path | None = None
) -> Iterator[Row]:
    """Yield the rows of all cases, those of a file first; a case that ends early has a row with its `failure`."""
    done: set[str] = set()
    if store is not None and store.exists():
        for line in store.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            done.add(row["case"])
            yield row
    for row in fresh_rows([name for name in names if name not in done], run, limits):
        if store is not None:
            with store.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row) + "\n")
        yield row


def fresh_rows(names: Sequence[str], run: Callable[[str], list[Row]], limits: Limits) -> Iterator[Row]:
    """Yield the rows of cases in the order in which they end."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, run.__module__, *PRELOADED])

    def rows_of(name: str) -> list[Row]:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=send_rows, args=(run, name, limits.memory, sender))
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

    with ThreadPoolExecutor(limits.jobs) as threads:
        for task in as_completed([threads.submit(rows_of, name) for name in names]):
            yield from task.result()


def send_rows(run: Callable[[str], list[Row]], name: str, memory: int, sender: Connection) -> None:
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    try:
        sender.send(run(name))
    except Exception as error:  # any exception of the model
        sender.send([{"failure": f"{type(error).__name__}: {error}"[:400]}])
