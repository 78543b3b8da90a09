"""The lines of `metrics.jsonl` as series of points."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

# Name of a series: name in the records of steps, and of validations.
_STEP_NAMES = {
    "train_loss": "nll",
    "learning_rate": "learning_rate",
    "gradient_norm": "gradient_norm",
    "tokens_per_second": "target_tokens_per_second",
}
_VALIDATION_NAMES = {
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
        name: name of the series, such as "valid_loss", or "attention_entropy/cross/2/0" (kind, layer, head).
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
        name: name of the run.
        task: its task, or "" if unknown.
        steps: updates done so far; 0 if the log has none yet.
        total_steps: planned updates; 0 if the log has none yet.
        series: series with at least one point.
        samples: sample translations, in the order of steps.
        best_step: step of the best validation; None before the first validation.
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
        return next((series for series in self.series if series.name == name), None)


_Points = defaultdict[str, dict[int, float]]  # name of a series -> step -> value


def _add_point(points: _Points, name: str, step: int, value: object) -> None:
    """Add a point if its value is a finite number; the last value of a step counts."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        points[name][step] = float(value)


def read_metrics(name: str, task: str, lines: Iterable[bytes]) -> RunCurves:
    """Return the curves of a run from the lines of its `metrics.jsonl`; unreadable lines are counted."""
    points: _Points = defaultdict(dict)
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
            _add_validation(record, points, samples)
            best = step if record.get("best") is True else best
        else:
            total = record["total_steps"] if isinstance(record.get("total_steps"), int) else total
            for series, key in _STEP_NAMES.items():
                _add_point(points, series, step, record.get(key))
    ordered = tuple(sorted(samples.values(), key=lambda sample: sample.step))
    curves = tuple(Series(title, *zip(*sorted(values.items()), strict=True)) for title, values in points.items())
    return RunCurves(name, task, steps, total, curves, ordered, best, unreadable)


def records_of(lines: Iterable[bytes]) -> Iterator[dict[str, Any] | None]:
    """Return the records of a `metrics.jsonl` in order, None for a line without a record; skip blank lines."""
    return (_record_of(line) for line in lines if line.strip())


def _record_of(line: bytes) -> dict[str, Any] | None:
    """Return the record of a line, which has a step; None if there is none."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    valid = isinstance(record, dict) and isinstance(record.get("step"), int)
    return record if valid else None


def _add_validation(record: dict[str, Any], points: _Points, samples: dict[tuple[int, str], Sample]) -> None:
    step = record["step"]
    for series, key in _VALIDATION_NAMES.items():
        _add_point(points, series, step, record.get(key))
    entropy = record.get("attention_entropy")
    for kind, layers in entropy.items() if isinstance(entropy, dict) else ():
        for layer, heads in enumerate(layers if isinstance(layers, list) else ()):
            for head, value in enumerate(heads if isinstance(heads, list) else ()):
                _add_point(points, f"attention_entropy/{kind}/{layer}/{head}", step, value)
    listed = record.get("samples")
    for texts in [*(listed if isinstance(listed, list) else ()), record.get("sample")]:
        if isinstance(texts, list) and len(texts) == 3 and all(isinstance(text, str) for text in texts):
            samples.setdefault((step, texts[0]), Sample(step, *texts))
