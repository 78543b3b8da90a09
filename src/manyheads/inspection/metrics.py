"""The lines of `metrics.jsonl` as series of points."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["RunCurves", "Sample", "Series", "read_metrics", "records_of"]

# Name of a series: name in the records of steps, and of validations.
STEP_NAMES = {
    "train_loss": "nll",
    "learning_rate": "learning_rate",
    "gradient_norm": "gradient_norm",
    "tokens_per_second": "target_tokens_per_second",
}
VALIDATION_NAMES = {
    "valid_loss": "loss",
    "perplexity": "perplexity",
    "bleu": "bleu",
    "chrf": "chrf",
    "accuracy": "accuracy",
    "macro_f1": "macro_f1",
}


@dataclass(frozen=True)
class Series:
    """Points of one curve.

    Attributes:
        name: such as "valid_loss", or "attention_entropy/cross/2/0" (kind, layer, head).
        steps: updates, rising.
        values: one for each step.
    """

    name: str
    steps: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Sample:
    """A validation sentence as translated with the weights of a step."""

    step: int
    source: str
    reference: str
    output: str


@dataclass(frozen=True)
class RunCurves:
    """The curves of one run.

    Attributes:
        name: of the run.
        task: of the run, or "" if unknown.
        steps: updates done so far; total_steps: planned updates; 0 if the log has none yet.
        series: those that have a point.
        samples: in the order of steps.
        best_step: of the best validation, None before the first.
        unreadable: number of unreadable lines; the last line of a running training may be half written.
    """

    name: str
    task: str
    steps: int
    total_steps: int
    series: tuple[Series, ...]
    samples: tuple[Sample, ...]
    best_step: int | None
    unreadable: int

    def of(self, name: str) -> Series | None:
        """Return a series by its name."""
        return next((one for one in self.series if one.name == name), None)


class Points:
    """Points by the names of their series, in the order of the first point of each."""

    def __init__(self) -> None:
        self.found: dict[str, dict[int, float]] = {}

    def add(self, name: str, step: int, value: object) -> None:
        """Add a point if it is a finite number; the last value of a step counts."""
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            self.found.setdefault(name, {})[step] = float(value)

    def series(self) -> tuple[Series, ...]:
        """Return all series."""
        return tuple(
            Series(name, tuple(sorted(points)), tuple(points[step] for step in sorted(points)))
            for name, points in self.found.items()
        )


def read_metrics(name: str, task: str, lines: Iterable[bytes]) -> RunCurves:
    """Return the curves of a run from the lines of its `metrics.jsonl`; unreadable lines are counted."""
    points = Points()
    samples: dict[tuple[int, str], Sample] = {}
    steps = total = unreadable = 0
    best: int | None = None
    for record in records_of(lines):
        if record is None:
            unreadable += 1
            continue
        step = record["step"]
        steps = max(steps, step)
        if record.get("kind") == "validation":
            add_validation(record, points, samples)
            best = step if record.get("best") is True else best
        else:
            total = record["total_steps"] if isinstance(record.get("total_steps"), int) else total
            for series, key in STEP_NAMES.items():
                points.add(series, step, record.get(key))
    ordered = tuple(sorted(samples.values(), key=lambda one: one.step))
    return RunCurves(name, task, steps, total, points.series(), ordered, best, unreadable)


def records_of(lines: Iterable[bytes]) -> Iterator[dict[str, Any] | None]:
    """Return the records of a `metrics.jsonl` in order; None for a line without one; blank lines are skipped."""
    return (record_of(line) for line in lines if line.strip())


def record_of(line: bytes) -> dict[str, Any] | None:
    """Return the record of a line, which has a step; None if there is none."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    whole = isinstance(record, dict) and isinstance(record.get("step"), int)
    return record if whole else None


def add_validation(record: dict[str, Any], points: Points, samples: dict[tuple[int, str], Sample]) -> None:
    """Add the numbers and sentences of a validation."""
    step = record["step"]
    for series, key in VALIDATION_NAMES.items():
        points.add(series, step, record.get(key))
    entropy = record.get("attention_entropy")
    for kind, layers in entropy.items() if isinstance(entropy, dict) else ():
        for layer, heads in enumerate(layers if isinstance(layers, list) else ()):
            for head, value in enumerate(heads if isinstance(heads, list) else ()):
                points.add(f"attention_entropy/{kind}/{layer}/{head}", step, value)
    for one in [*(record.get("samples") or ()), *filter(None, [record.get("sample")])]:
        if isinstance(one, list) and len(one) == 3 and all(isinstance(text, str) for text in one):
            samples.setdefault((step, one[0]), Sample(step, *one))
