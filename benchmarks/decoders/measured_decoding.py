"""Run the loop of a contender's process: decode for each request that arrives on standard input.

`decode_peers.py` is the measuring side.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from peers.measured_updates import answer_stream
from resident import memory_mib

Rows = list[list[int]]


@dataclass(frozen=True)
class DecodingRequest:
    """A request to decode the text once.

    Attributes:
        mode: "single", one sentence a call; "batch", 64 sentences a call, in the order of the
            text; "file", all in one call.
        beam: beam size; 1 is greedy.
        setting: workers x threads, such as "1x2".
        sentences: number of sentences, from the beginning of the text.
        tokens: maximum length of an output; 0 is twice the length of its source and 20 more.
    """

    mode: str
    beam: int
    setting: str
    sentences: int
    tokens: int = 0

    @property
    def workers(self) -> int:
        return int(self.setting.partition("x")[0])

    @property
    def threads(self) -> int:
        return int(self.setting.partition("x")[2])


Decode = Callable[[Rows, DecodingRequest], Rows]  # sources -> outputs of one call, ids without special symbols

BATCH = 64


def serve(prepare: Callable[[DecodingRequest], Decode], folder: Path) -> None:
    """Answer requests until standard input ends; `prepare` opens the model for a request, and is not timed."""
    answers = answer_stream()
    rows: Rows = json.loads((folder / "sources.json").read_text())
    print(json.dumps({"ready": True}), file=answers)
    for line in sys.stdin:
        request = DecodingRequest(**json.loads(line))
        decode = prepare(request)
        start = time.perf_counter()
        outputs = [output for call in calls(rows[: request.sentences], request) for output in decode(call, request)]
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": seconds, "outputs": outputs, "mebibytes": memory_mib()}), file=answers)


def calls(rows: Rows, request: DecodingRequest) -> list[Rows]:
    size = {"single": 1, "batch": BATCH, "file": len(rows)}[request.mode]
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def serve_torch(translate: Callable[[Rows, int], Rows], folder: Path) -> None:
    """Answer requests by a function of torch that takes a batch and a beam size; see `by_length`."""
    import torch

    def prepare(request: DecodingRequest) -> Decode:
        torch.set_num_threads(request.threads)
        return lambda rows, request: by_length(rows, lambda batch: translate(batch, request.beam))

    with torch.inference_mode():
        serve(prepare, folder)


def by_length(rows: Rows, decode: Callable[[Rows], Rows]) -> Rows:
    """Decode the rows of one call in batches of similar length, longest first; keep the order of the rows."""
    longest_first: Sequence[int] = sorted(range(len(rows)), key=lambda row: -len(rows[row]))
    outputs: Rows = [[] for _ in rows]
    for start in range(0, len(longest_first), BATCH):
        batch = longest_first[start : start + BATCH]
        for row, output in zip(batch, decode([rows[row] for row in batch]), strict=True):
            outputs[row] = output
    return outputs


def before(mark: int, row: list[int]) -> list[int]:
    return row[: row.index(mark)] if mark in row else row
