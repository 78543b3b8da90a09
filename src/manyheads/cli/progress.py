"""What training tells, on stderr: one live line above which messages pass, or plain lines without a terminal."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol, TextIO

import click
from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.text import Text

from manyheads.cli.verbs import Settings, in_color
from manyheads.training.log import Listener, StepReport, ValidationReport

__all__ = ["LiveProgress", "NoProgress", "PlainProgress", "Progress", "open_progress"]

SECONDS_APART = 5.0  # plain lines: never closer
SECONDS_AT_MOST = 60.0  # plain lines: a sign of life when a tenth of the way takes longer
BAR = 24  # columns
# How scores are shown, and which of them stay in the line (name, format, in the line).
SCORES = {
    "bleu": ("BLEU", ".1f", True),
    "chrf": ("chrF", ".1f", False),
    "accuracy": ("accuracy", ".1%", True),
    "macro_f1": ("macro F1", ".1%", False),
}


class Progress(Listener, Protocol):
    """A listener that can also print a result in between."""

    def write(self, text: str) -> None:
        """Print a line of the result to stdout."""
        ...


@contextmanager
def open_progress(settings: Settings, unit: str = "tokens") -> Iterator[Progress]:
    """The right kind for stderr: none when quiet, live on a terminal, else plain lines; speed is in `unit`."""
    stream = sys.stderr
    if settings.quiet:
        yield NoProgress()
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


class NoProgress:
    """Tells results only."""

    def message(self, text: str) -> None:
        """Nothing."""

    def step(self, report: StepReport) -> None:
        """Nothing."""

    def validation(self, report: ValidationReport) -> None:
        """Nothing."""

    def write(self, text: str) -> None:
        """Print a line of the result to stdout."""
        click.echo(text)


class PlainProgress:
    """Lines at sensible intervals, for files and pipes."""

    def __init__(
        self,
        stream: TextIO,
        *,
        verbose: bool = False,
        unit: str = "tokens",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stream = stream
        self.unit = unit
        self.verbose = verbose
        self.clock = clock
        self.last_time = -math.inf
        self.last_step = -math.inf
        self.score: str | None = None

    def message(self, text: str) -> None:
        """Print the line."""
        click.echo(text, file=self.stream)

    def step(self, report: StepReport) -> None:
        """Print the first report, the last, and those between that are due."""
        now = self.clock()
        waited = now - self.last_time
        tenth = 10 * (report.step - self.last_step) >= report.total_steps
        due = waited >= SECONDS_AT_MOST or (waited >= SECONDS_APART and tenth)
        if due or self.verbose or report.step >= report.total_steps:
            self.last_time, self.last_step = now, report.step
            parts = step_parts(report, self.score, self.unit, verbose=self.verbose)
            self.message("  ".join(part.text for part in parts))

    def validation(self, report: ValidationReport) -> None:
        """Print every one."""
        self.score = headline(report)
        for line in validation_lines(report, verbose=self.verbose):
            self.message(line)

    def write(self, text: str) -> None:
        """Print a line of the result to stdout."""
        click.echo(text)


class LiveProgress:
    """One line of a terminal that is drawn anew at each report; all else passes above it."""

    def __init__(self, console: Console, *, verbose: bool = False, unit: str = "tokens") -> None:
        self.console = console
        self.unit = unit
        self.verbose = verbose
        self.live: Live | None = None
        self.score: str | None = None

    def message(self, text: str) -> None:
        """Print the line above."""
        self.console.print(Text(text), soft_wrap=True)

    def step(self, report: StepReport) -> None:
        """Draw the line anew, as wide as the terminal is now."""
        if self.live is None:
            self.live = Live(console=self.console, auto_refresh=False, transient=True, redirect_stdout=False)
            self.live.start()
        parts = [bar(report), *step_parts(report, self.score, self.unit, verbose=self.verbose)]
        self.live.update(fitted(parts, self.console.width - 1), refresh=True)

    def validation(self, report: ValidationReport) -> None:
        """Print the scores above, and keep BLEU in the line."""
        self.score = headline(report)
        for line in validation_lines(report, verbose=self.verbose):
            self.message(line)

    def write(self, text: str) -> None:
        """Take the line away, then print to stdout."""
        self.pause()
        click.echo(text)

    def pause(self) -> None:
        """Take the line away until the next report."""
        if self.live is not None:
            self.live.stop()
            self.live = None


class Part(NamedTuple):
    """A piece of the line; those of low weight give way in a narrow terminal."""

    weight: int
    text: str
    style: str = ""


def step_parts(report: StepReport, score: str | None, unit: str, *, verbose: bool) -> list[Part]:
    """The pieces of a report, in the order of reading, with a score of the last validation."""
    share = report.step / max(1, report.total_steps)
    parts = [
        Part(9, f"step {report.step:,}/{report.total_steps:,}"),
        Part(5, f"{math.floor(100 * share)}%"),
        Part(8, f"loss {report.loss:.3f}"),
        Part(4, f"{report.target_tokens_per_second:,.0f} {unit}/s"),
        Part(7, f"{duration(report.seconds_left)} left"),
    ]
    if score is not None:
        parts.append(Part(6, score))
    if report.skipped:
        parts.append(Part(6, f"{report.skipped:,} skipped", "yellow"))
    if verbose:
        parts += [
            Part(3, f"epoch {report.epoch:.2f}"),
            Part(3, f"rate {report.learning_rate:.2e}"),
            Part(2, f"norm {report.gradient_norm:.2f}"),
            Part(2, f"padding {report.padding:.0%}"),
        ]
    return parts


def bar(report: StepReport) -> Part:
    """How far, as a bar."""
    done = round(BAR * min(1.0, report.step / max(1, report.total_steps)))
    return Part(1, "━" * done + "─" * (BAR - done), "cyan")


def fitted(parts: list[Part], width: int) -> Text:
    """The pieces in one line of at most `width` columns; the lightest are left out first."""
    kept = list(parts)
    while len(kept) > 1 and cell_len("  ".join(part.text for part in kept)) > width:
        kept.remove(min(kept, key=lambda part: part.weight))
    line = Text("  ").join(Text(part.text, part.style) for part in kept)
    line.truncate(max(1, width))
    return line


def validation_lines(report: ValidationReport, *, verbose: bool) -> Iterator[str]:
    """The scores in one line; when verbose, one sentence with its output."""
    scores = [f"step {report.step:,}", f"valid loss {report.loss:.3f}"]
    scores += [f"perplexity {report.perplexity:.2f}"] if "accuracy" not in report.scores else []
    scores += shown_scores(report)
    yield "  ".join([*scores, *(["best so far"] if report.best else [])])
    if verbose and report.sample:
        for name, text in zip(("source", "reference", "output"), report.sample, strict=True):
            yield f"  {name:<9}  {printable(text)}"


def shown_scores(report: ValidationReport, *, in_line: bool = False) -> list[str]:
    """The scores that were measured, each with its name; or those alone that stay in the line."""
    found = []
    for name, value in report.scores.items():
        title, form, stays = SCORES.get(name, (name, ".3f", False))
        if value is not None and (stays or not in_line):
            found.append(f"{title} {value:{form}}")
    return found


def headline(report: ValidationReport) -> str | None:
    """The score that stays in the line."""
    return next(iter(shown_scores(report, in_line=True)), None)


def printable(text: str) -> str:
    """Text from a corpus without what a terminal would obey."""
    return "".join(symbol if symbol.isprintable() else "�" for symbol in text)


def duration(seconds: float) -> str:
    """Hours, minutes and seconds: 1:02:03, 2:03."""
    if not math.isfinite(seconds):
        return "?"
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
