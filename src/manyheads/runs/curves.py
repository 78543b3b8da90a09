"""Reads what runs told of their training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from manyheads.checkpoint import RunDirectory
from manyheads.errors import DataError, RunError, UsageError
from manyheads.inspection.curves import Curves
from manyheads.inspection.metrics import RunCurves, read_metrics

__all__ = ["curves", "last_total_steps"]


def curves(runs: Sequence[str | Path]) -> Curves:
    """The curves of runs, also of one that is still training.

    Raises:
        RunError: a directory is missing, none of ours, or has told nothing yet.
        UsageError: there is none.
    """
    if isinstance(runs, str | Path) or not runs:
        raise UsageError("curves takes a list of run directories.")
    paths = [Path(run) for run in runs]
    return Curves(tuple(map(curves_of, paths, names_of(paths))))


def names_of(paths: Sequence[Path]) -> list[str]:
    """A name for each: its folder's, or all of its path where two have the same."""
    short = [path.resolve().name for path in paths]
    return [name if short.count(name) == 1 else str(path) for name, path in zip(short, paths, strict=True)]


def curves_of(path: Path, name: str) -> RunCurves:
    """Those of one run."""
    directory = RunDirectory.existing(path)
    if not directory.metrics_path.is_file():
        raise RunError(f"{path} has no {directory.metrics_path.name} yet. It is written from the first updates on.")
    try:
        with directory.metrics_path.open("rb") as file:
            return read_metrics(name, directory.config().task, file)
    except OSError as error:
        raise DataError(f"{directory.metrics_path} cannot be read: {error.strerror}.") from error


def last_total_steps(path: Path) -> int | None:
    """How many updates a run was to have, if it has told."""
    try:
        return curves_of(path, "").total_steps or None
    except RunError:
        return None
