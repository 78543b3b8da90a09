"""Upload a run to the Hugging Face hub, once its model card is complete."""

from __future__ import annotations

import re
from pathlib import Path

from manyheads.checkpoint import RunDirectory, write_atomically
from manyheads.errors import RunError, UsageError
from manyheads.interop.hub import is_hub_name, push_folder
from manyheads.interop.sources import open_run
from manyheads.runs.test_set_scores import test_scores, text_scores, with_scores
from manyheads.training.log import Listener, SilentListener

__all__ = ["push"]

NO_LISTENER = SilentListener()
LICENCE = re.compile(r"^license: *([\w.-]+)", re.MULTILINE)


def push(run: Path, name: str, *, private: bool = False, listener: Listener = NO_LISTENER) -> str:
    """Upload configuration, weights, tokenizers, labels, metrics and card of a run; return its address.

    If the text of its test set is available, the scores on it are added to the card (`text_scores`).

    Args:
        run: run directory; it is opened first, so that a damaged run is not uploaded.
        name: user/name on the hub.
        private: whether a new repository is private.
        listener: receives messages.

    Raises:
        RunError: the run is missing or damaged, its card names no licence, or the hub refuses the upload.
        DataError: the test set has labels that the run does not know.
        UsageError: the name is not of the form user/name.
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
