"""Train with JoeyNMT's program, on the same tokens, with its own batching.

Needs: pip install joeynmt importlib_metadata.

Its TrainManager calls `_train_step` with the batch of each update. A wrapper around it pauses the TrainManager
between rounds; the batch counts its real target tokens itself. JoeyNMT has one rate of dropout, which also applies
to attention weights and inside the feed-forward layers.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from joeynmt.__main__ import main as joeynmt  # type: ignore[import-not-found]
from joeynmt.training import TrainManager  # type: ignore[import-not-found]

from peers.measured_updates import MeasuredUpdates, write_configuration


def main(folder: Path, precision: str) -> None:
    measured = MeasuredUpdates()
    original = TrainManager._train_step

    def train_step(self: Any, batch: Any) -> Any:
        measured.before_update(batch.ntokens)
        return original(self, batch)

    TrainManager._train_step = train_step
    sys.argv = ["joeynmt", "train", str(write_configuration("joeynmt.yaml", folder)), "--skip-test"]
    joeynmt()
