"""Average the last checkpoints of a run into a new run directory."""

from __future__ import annotations

import shutil
from pathlib import Path

from manyheads.checkpoint import RunDirectory, average_tensors
from manyheads.config.schema import Config
from manyheads.errors import RunError
from manyheads.model.encoder_only import MaskedLanguageModel
from manyheads.tasks.classification import LABELS, Classifier
from manyheads.tasks.language_modeling import Generator

__all__ = ["average"]


def average(run: Path, *, last: int | None = None, out: Path | None = None) -> Path:
    """Average the weights of the last checkpoints; write them as a new run directory without checkpoints.

    Args:
        run: run directory.
        last: number of checkpoints (default: all).
        out: new run directory (default: RUN-averaged).

    Raises:
        RunError: there are fewer checkpoints, or `out` exists.
    """
    source = RunDirectory.existing(run)
    steps = source.checkpoints.steps()
    if not steps or (last is not None and last > len(steps)):
        raise RunError(
            f"{run} keeps {len(steps)} checkpoints, {last or 1} are wanted. "
            "Train with a larger training.keep_checkpoints."
        )
    out = out or run.with_name(f"{run.name}-averaged")
    if out.exists():
        raise RunError(f"{out} exists. Choose another --out.")
    mean = average_tensors([source.checkpoints.weights(step) for step in steps[-last if last else 0 :]])
    config = source.config()
    out.mkdir(parents=True)
    for path in [*run.glob("tokenizer.*"), *run.glob("environment.json"), *run.glob(LABELS)]:
        shutil.copy2(path, out / path.name)
    RunDirectory(out).publish(mean)
    shutil.copy2(run / "config.json", out / "config.json")  # last: now it is a run
    check_opens(out, config)
    return out


def check_opens(out: Path, config: Config) -> None:
    """Check that the written run can be opened."""
    match config.task:
        case "translation":
            RunDirectory(out).model(config, RunDirectory(out).tokenizers(config))
        case "classification":
            Classifier.load(out, device="cpu")
        case "language-modeling":
            Generator.load(out, device="cpu")
        case "masked-lm":
            size = RunDirectory(out).tokenizers(config).source.size
            RunDirectory(out).fill(MaskedLanguageModel(config.model, size))
