"""Measure what `transformer_doctor.watch` costs a training of a small language model on the CPU.

    python benchmarks/watch_overhead.py [--threads 1] [--json]

The same training runs with and without the watch, in turn. A figure is the processor time with the watch as a share
of the time without it, less 1: of all updates of a new model, and of the first eight, most of which are examined.
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import torch
from torch import nn
from torch.nn import functional

from harness import Document, in_turn, main, option, spread
from transformer_doctor import watch

VOCABULARY, ROWS, LENGTH, FIRST = 1000, 16, 64, 8
SIZES = {"2 layers of width 64": (2, 64), "4 layers of width 128": (4, 128)}


class Writer(nn.Module):
    """A causal language model."""

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, width), nn.Embedding(LENGTH, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        causal = nn.Transformer.generate_square_subsequent_mask(ids.size(1))
        hidden = self.tokens(ids) + self.positions.weight[: ids.size(1)]
        return self.head(self.layers(hidden, causal, is_causal=True))


def train(layers: int, width: int, updates: int, *, watched: bool) -> None:
    """Make updates of a new model."""
    torch.manual_seed(0)
    model = Writer(layers, width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    watching = watch(model, optimizer)
    if watched:
        watching.start()
    for _ in range(updates):
        ids = torch.randint(VOCABULARY, (ROWS, LENGTH + 1))
        optimizer.zero_grad()
        functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).backward()
        optimizer.step()
    watching.stop()
    assert not watching.findings


def measure(arguments: argparse.Namespace) -> Document:
    """Return the overhead for each size of a model."""
    torch.set_num_threads(arguments.threads)
    rows = {}
    for name, size in SIZES.items():
        for updates in dict.fromkeys((FIRST, arguments.updates)):
            sides = {watched: partial(train, *size, updates, watched=watched) for watched in (False, True)}
            seconds = in_turn(sides, arguments.rounds, clock=time.process_time)
            shares = [slow / fast - 1 for fast, slow in zip(seconds[False], seconds[True], strict=True)]
            rows[f"{name}, {updates} updates"] = spread(shares)
    return {"rows": rows}


OPTIONS = {
    "--updates": option(128, "updates of a training", tiny=FIRST),
    "--rounds": option(9, "trainings of each side", tiny=1),
    "--threads": option(1, "threads of torch"),
}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="share of the time without the watch", packages=["transformer-doctor"])
