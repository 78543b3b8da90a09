"""The text of a progress line: its segments, and which of them a narrow terminal leaves out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from manyheads.reports import StepReport, ValidationReport

_BAR_WIDTH = 24  # columns
# Scores by their name in a report: name to print, format, whether the progress line shows the latest value.
_SCORES = {
    "bleu": ("BLEU", ".1f", True),
    "chrf": ("chrF", ".1f", False),
    "accuracy": ("accuracy", ".1%", True),
    "macro_f1": ("macro F1", ".1%", False),
}


class Segment(NamedTuple):
    """A segment of the progress line; a narrow terminal omits the segments of lowest priority."""

    priority: int
    text: str
    style: str = ""


@dataclass(eq=False)
class Phase:
    """The progress of a phase (`Listener.phase`)."""

    name: str
    total: int | None
    unit: str
    clock: Callable[[], float]
    done: int = 0

    def __post_init__(self) -> None:
        self.start = self.clock()

    def advance(self, count: int) -> None:
        """Count finished items."""
        self.done += count

    @property
    def seconds(self) -> float:
        """Seconds since the phase began."""
        return self.clock() - self.start

    def segments(self, *, with_bar: bool = True) -> list[Segment]:
        """Return the segments of the phase from left to right; without a known total there is no bar."""
        done, total, seconds = self.done, self.total, self.seconds
        segments = [Segment(9, self.name)]
        if total:
            share = min(1.0, done / total)
            drawn = [bar(share)] if with_bar else []
            segments = [*drawn, *segments, Segment(5, f"{math.floor(100 * share)}%")]
        if done or total:
            of_total = f"/{total:,}" if total else ""
            segments.append(Segment(8, f"{done:,}{of_total} {self.unit}".rstrip()))
        left = f"{duration(seconds * (total - done) / done)} left" if total and done else duration(seconds)
        return [*segments, Segment(7, left)]


def step_segments(report: StepReport, score: str | None, unit: str, *, verbose: bool) -> list[Segment]:
    """Return the segments of a report from left to right, with the main score of the last validation."""
    share = report.step / max(1, report.total_steps)
    segments = [
        Segment(9, f"step {report.step:,}/{report.total_steps:,}"),
        Segment(5, f"{math.floor(100 * share)}%"),
        Segment(8, f"loss {report.loss:.3f}"),
        Segment(4, f"{report.target_tokens_per_second:,.0f} {unit}/s"),
        Segment(7, f"{duration(report.seconds_left)} left"),
    ]
    if score is not None:
        segments.append(Segment(6, score))
    if report.skipped:
        segments.append(Segment(6, f"{report.skipped:,} skipped", "yellow"))
    if verbose:
        segments += [
            Segment(3, f"epoch {report.epoch:.2f}"),
            Segment(3, f"rate {report.learning_rate:.2e}"),
            Segment(2, f"norm {report.gradient_norm:.2f}"),
            Segment(2, f"padding {report.padding:.0%}"),
        ]
    return segments


def bar(share: float) -> Segment:
    """Return the share that is done, 0 to 1, as a progress bar."""
    done = round(_BAR_WIDTH * min(1.0, share))
    return Segment(1, "━" * done + "─" * (_BAR_WIDTH - done), "cyan")


def fit_to_width(segments: list[Segment], width: int) -> Text:
    """Join the segments to a line of at most `width` columns; the lowest priority is omitted first."""
    visible = list(segments)
    while len(visible) > 1 and cell_len("  ".join(segment.text for segment in visible)) > width:
        visible.remove(min(visible, key=lambda segment: segment.priority))
    line = Text("  ").join(Text(segment.text, segment.style) for segment in visible)
    line.truncate(max(1, width))
    return line


def validation_lines(report: ValidationReport, *, verbose: bool) -> Iterator[str]:
    """Yield the scores as one line; if verbose, also a sample sentence with its reference and output."""
    scores = [f"step {report.step:,}", f"valid loss {report.loss:.3f}"]
    scores += [f"perplexity {report.perplexity:.2f}"] if "accuracy" not in report.scores else []
    scores += _score_texts(report)
    scores += [f"(greedy, {report.decoded:,} sentences)"] if report.scores.get("bleu") is not None else []
    yield "  ".join([*scores, *(["best so far"] if report.best else [])])
    if verbose and report.sample:
        for name, text in zip(("source", "reference", "output"), report.sample, strict=True):
            yield f"  {name:<9}  {_printable(text)}"


def _score_texts(report: ValidationReport, *, in_line: bool = False) -> list[str]:
    """Return each measured score with its name; with `in_line` only the scores that the progress line shows."""
    texts = []
    for name, value in report.scores.items():
        metric, _, direction = name.partition(" ")  # "bleu de-en" is that of one direction
        title, number_format, shown_in_line = _SCORES.get(metric, (metric, ".3f", False))
        if direction:
            title, shown_in_line = f"{direction} {title}", False
        if value is not None and (shown_in_line or not in_line):
            texts.append(f"{title} {value:{number_format}}")
    return texts


def main_score(report: ValidationReport) -> str | None:
    """Return the score that the progress line shows; None if it was not measured."""
    return next(iter(_score_texts(report, in_line=True)), None)


def _printable(text: str) -> str:
    """Replace the control characters of a text, such as terminal escape sequences."""
    return "".join(character if character.isprintable() else "�" for character in text)


def duration(seconds: float) -> str:
    """Format seconds as hours, minutes and seconds: 1:02:03, 2:03."""
    if not math.isfinite(seconds):
        return "?"
    minutes, remainder = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{remainder:02}" if hours else f"{minutes}:{remainder:02}"
