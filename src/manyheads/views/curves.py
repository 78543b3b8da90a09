"""The training curves of one or several runs.

Their JSON is described in docs/inspecting.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from manyheads.views.base import Document, ViewFunction
from manyheads.views.charts import Axis, HeatMap, Line, Lines, Table
from manyheads.views.metrics import RunCurves
from manyheads.views.picture import KIND_TITLES
from manyheads.views.words import localize, names_of

# View: its title, the meaning of its values with their unit, its series.
_VIEWS = {
    "loss": ("Loss", "cross-entropy (nats per token), logarithmic", ("train_loss", "valid_loss")),
    "perplexity": ("Perplexity of the validation text", "perplexity, logarithmic", ("perplexity",)),
    "scores": ("Scores of the validation text", "score", ("bleu", "chrf", "accuracy", "macro_f1")),
    "learning-rate": ("Learning rate", "learning rate", ("learning_rate",)),
    "gradient-norm": ("Norm of the gradient before clipping", "norm", ("gradient_norm",)),
    "speed": ("Training speed", "target tokens per second", ("tokens_per_second",)),
}
_CURVE_NAMES = {
    "train_loss": "training loss",
    "valid_loss": "validation loss",
    "perplexity": "validation perplexity",
    "bleu": "validation BLEU (greedy)",
    "chrf": "validation chrF",
    "accuracy": "validation accuracy",
    "macro_f1": "validation macro F1",
    "learning_rate": "learning rate",
    "gradient_norm": "gradient norm",
    "tokens_per_second": "training speed",
}
_LOGARITHMIC = ("train_loss", "perplexity")  # the high values of the first updates would flatten the rest
_STEP = "training step"
_ENTROPY = "attention_entropy"
_MAX_POINTS = 400  # a longer curve is thinned evenly, and keeps its last point


@dataclass(frozen=True)
class Curves(Document):
    """The curves of one or several runs."""

    format = "manyheads-curves"
    noun = "curves"

    runs: tuple[RunCurves, ...]

    def view_functions(self) -> dict[str, ViewFunction]:
        """Return the views for which a run has values; see `Document.view_functions`."""
        names = {series.name.partition("/")[0] for run in self.runs for series in run.series}
        views = {
            name: self.series_view(title, unit, series)
            for name, (title, unit, series) in _VIEWS.items()
            if names & set(series)
        }
        if _ENTROPY in names:
            views["attention-entropy"] = lambda _: list(self.entropy_charts())
        if any(run.samples for run in self.runs):
            views["samples"] = lambda _: [_sample_chart(run) for run in self.runs if run.samples]
        return views or {"loss": self.series_view(*_VIEWS["loss"])}

    def series_view(self, title: str, unit: str, series: tuple[str, ...]) -> ViewFunction:
        """Return the view of some series, each under its readable name."""
        return lambda _: [
            self.chart(localize(title), localize(unit), [(name, localize(_CURVE_NAMES[name])) for name in series])
        ]

    def entropy_charts(self) -> Iterator[HeatMap]:
        """Yield a heat map for each run and kind of attention, with a row for each head."""
        for run in self.runs:
            heads = [series for series in run.series if series.name.startswith(f"{_ENTROPY}/")]
            for kind in dict.fromkeys(series.name.split("/")[1] for series in heads):
                of_kind = [series for series in heads if series.name.split("/")[1] == kind]
                steps = sorted({step for series in of_kind for step in series.steps})
                values = np.zeros((len(of_kind), len(steps)), np.float32)
                missing = np.ones(values.shape, np.bool_)
                for row, series in enumerate(of_kind):
                    columns = np.searchsorted(steps, series.steps)
                    values[row, columns], missing[row, columns] = series.values, False
                yield HeatMap(
                    localize("Entropy of the {kind} of {run}", kind=localize(KIND_TITLES[kind]), run=run.name),
                    localize("Mean over the validation text: 0 is attention to one token alone, more is wider."),
                    Axis(localize("head"), [_head_name(series.name) for series in of_kind]),
                    Axis(localize(_STEP), [f"{step:,}" for step in steps]),
                    values,
                    legend=localize("entropy of the attention (nats)"),
                    high=float(max(1e-6, values.max())),
                    hidden=missing if missing.any() else None,
                    hidden_title=localize("no value"),
                )

    def chart(self, title: str, unit: str, series: list[tuple[str, str]]) -> Lines:
        """Return a chart of some series of all runs: (name, label)."""
        lines = []
        rows: list[tuple[str | int | float | None, ...]] = []
        for run in self.runs:
            for name, label in series:
                curve = run.of(name)
                if curve is None:
                    continue
                points = zip(curve.steps, curve.values, strict=True)
                rows += [(run.name, label, step, value) for step, value in points]
                full_label = label if len(self.runs) == 1 else f"{run.name}: {label}"
                lines.append(_thin(full_label, curve.steps, curve.values))
        note = "; ".join(_progress(run) for run in self.runs)
        data = Table(title, note, names_of("run", "curve", "step", "value"), tuple(rows))
        return Lines(data, tuple(lines), localize(_STEP), unit, logarithmic=series[0][0] in _LOGARITHMIC)


def _head_name(series: str) -> str:
    """Return the name of the head of a series, such as "attention_entropy/cross/2/0"."""
    layer, head = series.split("/")[2:]
    return localize("layer {layer} head {head}", layer=layer, head=head)


def _thin(name: str, steps: tuple[int, ...], values: tuple[float, ...]) -> Line:
    """Return a curve of at most `_MAX_POINTS` points, plus the last point."""
    every = max(1, -(-len(steps) // _MAX_POINTS))
    drawn = sorted({*range(0, len(steps), every), len(steps) - 1})
    return Line(name, tuple(float(steps[index]) for index in drawn), tuple(values[index] for index in drawn))


def _progress(run: RunCurves) -> str:
    counts = {"run": run.name, "steps": run.steps, "total": run.total_steps}
    parts = [localize("{run}: step {steps:,} of {total:,}", **counts)]
    if run.best_step is None:
        parts.append(localize("no validation yet"))
    else:
        parts.append(localize("best validation at step {step:,}", step=run.best_step))
    if run.unreadable:
        parts.append(localize("unreadable lines left out: {count}", count=run.unreadable))
    return ", ".join(parts)


def _sample_chart(run: RunCurves) -> Table:
    """Return the recorded validation sentences, each in the order of steps."""
    sources = list(dict.fromkeys(sample.source for sample in run.samples))
    ordered = sorted(run.samples, key=lambda sample: (sources.index(sample.source), sample.step))
    return Table(
        localize("Sample translations of {run}", run=run.name),
        localize("Validation sentences as the weights of each step translated them, sentence by sentence."),
        names_of("source", "reference", "step", "output"),
        tuple((sample.source, sample.reference, sample.step, sample.output) for sample in ordered),
    )
