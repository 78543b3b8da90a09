"""Training progress on stderr: one live line at the bottom of a terminal, or plain lines without a terminal."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TextIO

import click
from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.text import Text

from manyheads.cli.verbs import Settings, in_color
from manyheads.training.log import StepReport, ValidationReport

__all__ = ["LiveProgress", "PlainProgress", "Progress", "open_progress"]

MIN_INTERVAL = 5.0  # seconds between two plain lines, at least
MAX_INTERVAL = 60.0  # seconds between two plain lines, at most, even if less than a tenth of the steps is done
BAR_WIDTH = 24  # columns
# Scores by their name in a report: name to print, format, whether the progress line shows the latest value.
SCORES = {
    "bleu": ("BLEU", ".1f", True),
    "chrf": ("chrF", ".1f", False),
    "accuracy": ("accuracy", ".1%", True),
    "macro_f1": ("macro F1", ".1%", False),
}


@contextmanager
def open_progress(settings: Settings, unit: str = "tokens") -> Iterator[Progress]:
    """Open the progress display for stderr: none if quiet, a live line on a terminal, else plain lines.

    Args:
        settings: verbosity of the command line.
        unit: unit of the speed, "tokens" or "texts" (per second).
    """
    stream = sys.stderr
    if settings.quiet:
        yield Progress()
    elif stream.isatty() and os.environ.get("TERM") != "dumb":
        console = Console(
            file=stream,
            force_terminal=True,
            no_color=not in_color(stream),
            highlight=False,
            markup=False,
            emoji=False,
        )
        live = LiveProgress(console, verbose=settings.verbose, unit=unit)
        try:
            yield live
        finally:
            live.pause()
    else:
        yield PlainProgress(stream, verbose=settings.verbose, unit=unit)


class Progress:
    """A `Listener` of a training that prints results to stdout; this base class ignores all reports.

    Attributes:
        verbose: whether to print every report in full.
        unit: unit of the speed, "tokens" or "texts" (per second).
        score: main score of the last validation.
    """

    def __init__(self, *, verbose: bool = False, unit: str = "tokens") -> None:
        self.verbose = verbose
        self.unit = unit
        self.score: str | None = None

    def message(self, text: str) -> None:
        """Ignore the message; a subclass prints it as a line."""

    def step(self, report: StepReport) -> None:
        """Ignore the report of a step; a subclass shows it."""

    def validation(self, report: ValidationReport) -> None:
        """Print the scores, and show the main score in the reports of the next steps."""
        self.score = main_score(report)
        for line in validation_lines(report, verbose=self.verbose):
            self.message(line)

    def write(self, text: str) -> None:
        """Print a line of the result to stdout."""
        click.echo(text)


class PlainProgress(Progress):
    """Print plain lines at intervals, for files and pipes."""

    def __init__(
        self,
        stream: TextIO,
        *,
        verbose: bool = False,
        unit: str = "tokens",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(verbose=verbose, unit=unit)
        self.stream = stream
        self.clock = clock
        self.last_time = -math.inf
        self.last_step = -math.inf

    def message(self, text: str) -> None:
        """Print the message as a line."""
        click.echo(text, file=self.stream)

    def step(self, report: StepReport) -> None:
        """Print the first report, the last report, and a report whenever the interval has passed."""
        now = self.clock()
        waited = now - self.last_time
        tenth = 10 * (report.step - self.last_step) >= report.total_steps
        due = waited >= MAX_INTERVAL or (waited >= MIN_INTERVAL and tenth)
        if due or self.verbose or report.step >= report.total_steps:
            self.last_time, self.last_step = now, report.step
            segments = step_segments(report, self.score, self.unit, verbose=self.verbose)
            self.message("  ".join(segment.text for segment in segments))


class LiveProgress(Progress):
    """Redraw one line of a terminal at each report; messages are printed above this line.

    By rich's `Live`, not by its `Progress`, whose columns share a narrow terminal where ours leave it by priority.
    """

    def __init__(self, console: Console, *, verbose: bool = False, unit: str = "tokens") -> None:
        super().__init__(verbose=verbose, unit=unit)
        self.console = console
        self.live: Live | None = None

    def message(self, text: str) -> None:
        """Print the message above the live line."""
        self.console.print(Text(text), soft_wrap=True)

    def step(self, report: StepReport) -> None:
        """Redraw the line at the current width of the terminal."""
        if self.live is None:
            self.live = Live(console=self.console, auto_refresh=False, transient=True, redirect_stdout=False)
            self.live.start()
        segments = [bar(report), *step_segments(report, self.score, self.unit, verbose=self.verbose)]
        self.live.update(fit_to_width(segments, self.console.width - 1), refresh=True)

    def write(self, text: str) -> None:
        """Remove the live line, then print to stdout."""
        self.pause()
        super().write(text)

    def pause(self) -> None:
        """Remove the live line until the next report."""
        if self.live is not None:
            self.live.stop()
            self.live = None


class Segment(NamedTuple):
    """A segment of the progress line; a narrow terminal omits the segments of lowest priority."""

    priority: int
    text: str
    style: str = ""


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


def bar(report: StepReport) -> Segment:
    """Return the share of finished steps as a progress bar."""
    done = round(BAR_WIDTH * min(1.0, report.step / max(1, report.total_steps)))
    return Segment(1, "━" * done + "─" * (BAR_WIDTH - done), "cyan")


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
    scores += score_texts(report)
    yield "  ".join([*scores, *(["best so far"] if report.best else [])])
    if verbose and report.sample:
        for name, text in zip(("source", "reference", "output"), report.sample, strict=True):
            yield f"  {name:<9}  {printable(text)}"


def score_texts(report: ValidationReport, *, in_line: bool = False) -> list[str]:
    """Return each measured score with its name; with `in_line` only the scores that the progress line shows."""
    texts = []
    for name, value in report.scores.items():
        title, number_format, shown_in_line = SCORES.get(name, (name, ".3f", False))
        if value is not None and (shown_in_line or not in_line):
            texts.append(f"{title} {value:{number_format}}")
    return texts


def main_score(report: ValidationReport) -> str | None:
    """Return the score that the progress line shows; None if it was not measured."""
    return next(iter(score_texts(report, in_line=True)), None)


def printable(text: str) -> str:
    """Replace the control characters of a text, such as terminal escape sequences."""
    return "".join(character if character.isprintable() else "�" for character in text)


def duration(seconds: float) -> str:
    """Format seconds as hours, minutes and seconds: 1:02:03, 2:03."""
    if not math.isfinite(seconds):
        return "?"
    minutes, remainder = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{remainder:02}" if hours else f"{minutes}:{remainder:02}"
