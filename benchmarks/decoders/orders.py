"""The loop of a contender's process: decode on each order that arrives on standard input.

The other side is `contender.py`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from peers.turns import peak_memory

Rows = list[list[int]]


@dataclass(frozen=True)
class Order:
    """What to do.

    Attributes:
        mode: "single", a sentence a call; "batch", 64 sentences a call, as they stand; "file", all in one call.
        beam: beam size; 1 is greedy.
        setting: workers x threads.
        sentences: how many of the text, its first ones.
    """

    mode: str
    beam: int
    setting: str
    sentences: int

    @property
    def workers(self) -> int:
        """Number of parallel workers."""
        return int(self.setting.partition("x")[0])

    @property
    def threads(self) -> int:
        """Number of threads of each worker."""
        return int(self.setting.partition("x")[2])


Decode = Callable[[Rows, Order], Rows]  # sources -> outputs, in one call, ids without marks

BATCH = 64


def serve(prepare: Callable[[Order], Decode], folder: Path) -> None:
    """Obey until standard input ends.

    Args:
        prepare: opens the model for a kind of order; not timed.
        folder: where the text is.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    rows: Rows = json.loads((folder / "sources.json").read_text())
    print(json.dumps({"ready": True}), file=answers)
    for line in sys.stdin:
        order = Order(**json.loads(line))
        decode = prepare(order)
        start = time.perf_counter()
        outputs = [output for call in calls(rows[: order.sentences], order) for output in decode(call, order)]
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "outputs": outputs, "mebibytes": peak_memory()}), file=answers)


def calls(rows: Rows, order: Order) -> list[Rows]:
    """Return the rows of each call."""
    size = {"single": 1, "batch": BATCH, "file": len(rows)}[order.mode]
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def by_length(rows: Rows, decode: Callable[[Rows], Rows]) -> Rows:
    """Decode the rows of one call in batches of like length, longest first; the outputs stand in their order."""
    order: Sequence[int] = sorted(range(len(rows)), key=lambda row: -len(rows[row]))
    outputs: Rows = [[] for _ in rows]
    for start in range(0, len(order), BATCH):
        places = order[start : start + BATCH]
        for place, output in zip(places, decode([rows[place] for place in places]), strict=True):
            outputs[place] = output
    return outputs
