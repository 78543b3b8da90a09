"""The curves of one or several trainings, side by side.

Their JSON is described in docs/inspecting.md; `VERSION` changes as that of an inspection does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from manyheads.errors import UsageError
from manyheads.inspection.charts import Chart, Line, Lines, Table
from manyheads.inspection.codec import plain, rebuilt
from manyheads.inspection.metrics import RunCurves
from manyheads.inspection.shown import Shown
from manyheads.inspection.views import Look

__all__ = ["FORMAT", "VERSION", "Curves"]

FORMAT = "manyheads-curves"
VERSION = 1

# Each view: its title, what its values are, and the series in it.
VIEWS = {
    "loss": ("Loss", "nats a token", ("train_loss", "valid_loss")),
    "perplexity": ("Perplexity of the validation text", "perplexity", ("perplexity",)),
    "scores": ("Scores of the validation text", "score", ("bleu", "chrf", "accuracy", "macro_f1")),
    "learning-rate": ("Learning rate", "learning rate", ("learning_rate",)),
    "gradient-norm": ("Norm of the gradient before clipping", "norm", ("gradient_norm",)),
    "speed": ("Target tokens a second", "tokens/s", ("tokens_per_second",)),
}
ENTROPY = "attention_entropy"
MOST_POINTS = 400  # of a curve that is drawn; more are thinned out evenly, the last one kept


@dataclass(frozen=True)
class Curves(Shown):
    """The curves of one or several runs."""

    runs: tuple[RunCurves, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {"format": FORMAT, "version": VERSION, **plain(self)}

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """What `to_dict` gave; raises `UsageError` when it is something else."""
        if not isinstance(document, Mapping) or document.get("format") != FORMAT:
            raise UsageError(f'these are no curves: "format" is not "{FORMAT}".')
        if document.get("version") != VERSION:
            raise UsageError(
                f"these curves are of version {document.get('version')}; this program reads version {VERSION}."
            )
        found: Self = rebuilt(cls, dict(document), "the curves")
        return found

    @property
    def title(self) -> str:
        """The runs."""
        return "Training of " + ", ".join(run.name for run in self.runs)

    @property
    def views(self) -> tuple[str, ...]:
        """Those of which a run has told something."""
        names = {one.name.partition("/")[0] for run in self.runs for one in run.series}
        found = [name for name, (_, _, series) in VIEWS.items() if names & set(series)]
        found += ["attention-entropy"] * (ENTROPY in names)
        found += ["samples"] * any(run.samples for run in self.runs)
        return tuple(found) or ("loss",)

    def view(self, name: str, look: Look) -> list[Chart]:
        """See `Shown.view`."""
        if name == "samples":
            return [sample_chart(run) for run in self.runs if run.samples]
        if name == "attention-entropy":
            return list(self.entropy_charts())
        title, unit, series = VIEWS[name]
        return [self.chart(title, unit, [(one, one) for one in series])]

    def entropy_charts(self) -> Iterator[Lines]:
        """A chart for each run and kind of attention, a curve for each head."""
        for run in self.runs:
            names = [one.name for one in run.series if one.name.startswith(f"{ENTROPY}/")]
            for kind in dict.fromkeys(name.split("/")[1] for name in names):
                of_kind = [name for name in names if name.split("/")[1] == kind]
                series = [(name, "layer {} head {}".format(*name.split("/")[2:])) for name in of_kind]
                title = f"Entropy of the {kind} attention of {run.name}"
                yield Curves((run,)).chart(title, "nats", series)

    def chart(self, title: str, unit: str, series: list[tuple[str, str]]) -> Lines:
        """Some series of all runs: (name, what it is called)."""
        lines = []
        rows: list[tuple[str | int | float | None, ...]] = []
        for run in self.runs:
            for name, called in series:
                one = run.of(name)
                if one is None:
                    continue
                whole = called if len(self.runs) == 1 else f"{run.name}: {called}"
                rows += [(run.name, called, step, value) for step, value in zip(one.steps, one.values, strict=True)]
                lines.append(thinned(whole, one.steps, one.values))
        note = "; ".join(told(run) for run in self.runs)
        data = Table(title, note, ("run", "curve", "step", "value"), tuple(rows))
        return Lines(title, note, tuple(lines), "step", unit, data)


def thinned(name: str, steps: tuple[int, ...], values: tuple[float, ...]) -> Line:
    """A curve of not too many points."""
    every = max(1, -(-len(steps) // MOST_POINTS))
    places = sorted({*range(0, len(steps), every), len(steps) - 1})
    return Line(name, tuple(float(steps[place]) for place in places), tuple(values[place] for place in places))


def told(run: RunCurves) -> str:
    """How far a run is, in a few words."""
    parts = [f"{run.name}: step {run.steps:,} of {run.total_steps:,}"]
    if run.best_step is None:
        parts.append("no validation yet")
    else:
        parts.append(f"best validation at step {run.best_step:,}")
    if run.unreadable:
        parts.append(f"{run.unreadable} unreadable line{'s' * (run.unreadable > 1)} left out")
    return ", ".join(parts)


def sample_chart(run: RunCurves) -> Table:
    """The validation sentences that were recorded, each in the order of steps."""
    sources = list(dict.fromkeys(one.source for one in run.samples))
    ordered = sorted(run.samples, key=lambda one: (sources.index(one.source), one.step))
    return Table(
        f"Sample translations of {run.name}",
        "Validation sentences as the weights of each step translated them, sentence by sentence.",
        ("source", "reference", "step", "output"),
        tuple((one.source, one.reference, one.step, one.output) for one in ordered),
    )
