"""Put the model of a run on a hub, whatever its task, once its card says what it must."""

from __future__ import annotations

import re
from pathlib import Path

from manyheads.checkpoint import RunDirectory, write_atomically
from manyheads.errors import RunError, UsageError
from manyheads.interop.hub import is_hub_name, push_folder
from manyheads.interop.sources import open_run
from manyheads.runs.scoring.scored import test_scores, with_scores
from manyheads.runs.scoring.scored_text import text_scores
from manyheads.training.log import Listener, SilentListener

__all__ = ["push"]

SILENT = SilentListener()
LICENCE = re.compile(r"^license: *([\w.-]+)", re.MULTILINE)


def push(run: Path, name: str, *, private: bool = False, listener: Listener = SILENT) -> str:
    """Send configuration, weights, tokenizers, labels, metrics and card of a run; returns its address.

    Where the text of its test set is at hand, the card is first given the scores on it (`text_scores`).

    Args:
        run: the run directory; it is opened, so that nothing broken goes out.
        name: user/name on the hub.
        private: whether a new repository is the user's alone.
        listener: who is told.

    Raises:
        RunError: it is no run or damaged, its card names no licence, or the hub refuses it.
        DataError: its test set holds labels that it does not know.
        UsageError: the name is none of a hub.
        MissingExtraError: huggingface_hub is not installed.
    """
    if not is_hub_name(name):
        raise UsageError(f"{name} is no name on the hub. Give user/name.")
    task = RunDirectory.existing(run).config().task
    card = run / "README.md"
    if not card.is_file() or LICENCE.search(card.read_text(encoding="utf-8")) is None:
        raise RunError(
            f"{card} names no licence, and without one nobody may use the model. Fill in its line `license:`, such "
            "as `license: apache-2.0`; mind the licence of the text it was trained on."
        )
    listener.message(f"{run}: opening it, and scoring it where its text is at hand")
    scores = test_scores(open_run(run)) if task == "translation" else text_scores(run, listener)
    if scores is not None:
        write_atomically(card, with_scores(card.read_text(encoding="utf-8"), scores).encode())
    listener.message(f"sending it to {name}")
    return push_folder(run, name, private=private)
