"""Progress on stderr: one live line at the bottom of a terminal, or plain lines without a terminal."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from manyheads.cli.progress_line import (
    Phase,
    bar,
    fit_to_width,
    main_score,
    step_segments,
    validation_lines,
)
from manyheads.cli.verbs import Settings, in_color
from manyheads.errors import printable
from manyheads.reports import Advance, StepReport, ValidationReport, no_advance

_MIN_PHASE_SECONDS = 2.0  # seconds of a phase before it is shown
_PHASE_INTERVAL = 10.0  # seconds between two plain lines of phases, at least
_MIN_INTERVAL = 5.0  # seconds between two plain lines of steps, at least
_MAX_INTERVAL = 60.0  # seconds between two plain lines, at most, even if less than a tenth of the steps is done


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
        live = _LiveProgress(console, verbose=settings.verbose, unit=unit)
        try:
            yield live
        finally:
            live.pause()
    else:
        yield _PlainProgress(stream, verbose=settings.verbose, unit=unit)


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

    def interrupted(self, text: str) -> None:
        """Ignore the answer to a signal; a subclass prints it as a line."""

    @contextmanager
    def phase(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """Ignore the progress of a phase; a subclass shows it."""
        yield no_advance

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


def _write_line(stream: TextIO, line: str) -> None:
    """Write a line from a signal handler, without the buffer of the stream, which may be in use."""
    with suppress(OSError):  # the stream is closed
        os.write(stream.fileno(), f"{line}\n".encode())


class _PlainProgress(Progress):
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
        self.last_phase = -math.inf

    def message(self, text: str) -> None:
        click.echo(printable(text), file=self.stream)

    def interrupted(self, text: str) -> None:
        _write_line(self.stream, text)

    @contextmanager
    def phase(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """Print the progress of a long phase whenever the interval has passed."""
        phase = Phase(name, total, unit, self.clock)

        def advance(count: int) -> None:
            phase.advance(count)
            now = self.clock()
            if phase.seconds >= _MIN_PHASE_SECONDS and now - self.last_phase >= _PHASE_INTERVAL:
                self.last_phase = now
                self.message("  ".join(segment.text for segment in phase.segments(with_bar=False)))

        yield advance

    def step(self, report: StepReport) -> None:
        """Print the first report, the last report, and a report whenever the interval has passed."""
        now = self.clock()
        waited = now - self.last_time
        tenth = 10 * (report.step - self.last_step) >= report.total_steps
        due = waited >= _MAX_INTERVAL or (waited >= _MIN_INTERVAL and tenth)
        if due or self.verbose or report.step >= report.total_steps:
            self.last_time, self.last_step = now, report.step
            segments = step_segments(report, self.score, self.unit, verbose=self.verbose)
            self.message("  ".join(segment.text for segment in segments))


class _LiveProgress(Progress):
    """Redraw one line of a terminal at each report; messages are printed above this line.

    Built on rich's `Live`, because its `Progress` shrinks all columns in a narrow terminal; here the segments of
    lowest priority are omitted.
    """

    def __init__(self, console: Console, *, verbose: bool = False, unit: str = "tokens") -> None:
        super().__init__(verbose=verbose, unit=unit)
        self.console = console
        self.live: Live | None = None
        self.report: StepReport | None = None
        self.phases: list[Phase] = []

    def message(self, text: str) -> None:
        self.console.print(Text(printable(text)), soft_wrap=True)

    def interrupted(self, text: str) -> None:
        """Print the answer in place of the live line, which the next drawing puts below it."""
        _write_line(self.console.file, f"\r\x1b[2K{text}")  # type: ignore[arg-type]

    @contextmanager
    def phase(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """Show the progress of a long phase in place of the last step; an inner phase hides an outer one."""
        phase = Phase(name, total, unit, time.monotonic)
        self.phases.append(phase)
        self.draw()
        try:
            yield phase.advance
        finally:
            self.phases.remove(phase)
            if self.phases or self.report is not None:
                self.draw()
            else:
                self.pause()

    def step(self, report: StepReport) -> None:
        """Redraw the line at the current width of the terminal."""
        self.report = report
        self.draw()

    def draw(self) -> None:
        """Draw the line; from then on it is redrawn twice a second, as phases show the time."""
        if self.live is None:
            self.live = Live(
                console=self.console,
                get_renderable=self.line,
                refresh_per_second=2,
                transient=True,
                redirect_stdout=False,
            )
            self.live.start()
        self.live.refresh()

    def line(self) -> Text:
        """Return the line for the present width of the terminal: the running phase or the last step."""
        phase, width = self.phases[-1] if self.phases else None, self.console.width - 1
        if phase is not None and phase.seconds >= _MIN_PHASE_SECONDS:
            return fit_to_width(phase.segments(), width)
        if self.report is None:
            return Text()
        share = self.report.step / max(1, self.report.total_steps)
        steps = step_segments(self.report, self.score, self.unit, verbose=self.verbose)
        return fit_to_width([bar(share), *steps], width)

    def write(self, text: str) -> None:
        """Remove the live line, then print to stdout."""
        self.pause()
        super().write(text)

    def pause(self) -> None:
        """Remove the live line until the next report."""
        self.report = None
        if self.live is not None:
            self.live.stop()
            self.live = None
