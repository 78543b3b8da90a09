"""Train with Eole's program, on the same tokens, with its own batching. Needs: pip install eole aiohttp.

Its Trainer calls `_train_step` with the batches of each update. A wrapper around it pauses the Trainer between
rounds, and counts the real target tokens in the tensors that it trains on. Two settings are not its defaults, and
both reduce its work: no dropout on attention weights, as in the other models, and no entropy of attention in its
log.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from eole.bin.main import main as eole  # type: ignore[import-not-found]
from eole.trainer import Trainer  # type: ignore[import-not-found]

from peers.measured_updates import MeasuredUpdates, write_configuration


def main(folder: Path, precision: str) -> None:
    measured = MeasuredUpdates()
    original = Trainer._train_step

    def train_step(self: Any, batches: list[dict[str, Any]], *args: Any, **kwargs: Any) -> Any:
        pad = self.train_loss.padding_idx
        measured.before_update(sum(int(batch["tgt"][:, 1:].ne(pad).sum()) for batch in batches))
        return original(self, batches, *args, **kwargs)

    Trainer._train_step = train_step
    shared = json.loads((folder / "settings.json").read_text())
    sentences = len((folder / "train.en").read_text().splitlines())
    beta2 = shared["training"]["betas"][1]
    path = write_configuration("eole.yaml", folder, precision=precision, sentences=sentences, beta2=beta2)
    sys.argv = ["eole", "train", "-config", str(path)]
    eole()
