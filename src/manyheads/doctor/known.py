"""What may be wrong with a corpus, a configuration or a run: the entries of a catalogue, and their page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from manyheads.doctor.report import Finding, Severity

__all__ = ["PAGE", "Example", "Known", "finder", "share", "shown"]

PAGE = "docs/doctor-findings.md"
LONGEST_QUOTE = 80  # characters of a line that are shown


@dataclass(frozen=True)
class Known:
    """A known fault.

    Attributes:
        name: kebab-case, stable; its section on the page has it as anchor.
        severity: usual.
        cause: what it most likely comes from.
        cure: what to do.
    """

    name: str
    severity: Severity
    cause: str
    cure: str

    def found(self, evidence: str, severity: Severity | None = None) -> Finding:
        """A finding of it."""
        return Finding(self.name, severity or self.severity, evidence, self.cause, self.cure, f"{PAGE}#{self.name}")


Found = Callable[..., Finding]


def finder(catalogue: Iterable[Known]) -> Found:
    """A function of a name, the evidence and perhaps another severity, that gives the finding."""
    known = {one.name: one for one in catalogue}

    def found(name: str, evidence: str, severity: Severity | None = None) -> Finding:
        return known[name].found(evidence, severity)

    return found


@dataclass(frozen=True)
class Example:
    """A line that shows something: its number in its file, and its text."""

    line: int
    text: str

    def __str__(self) -> str:
        """As it is quoted."""
        cut = self.text if len(self.text) <= LONGEST_QUOTE else self.text[: LONGEST_QUOTE - 3] + "..."
        return f'line {self.line:,}: "{cut}"'


def shown(examples: Iterable[Example]) -> str:
    """Examples behind a sentence; nothing where there are none."""
    quoted = "; ".join(map(str, examples))
    return f"; {quoted}" if quoted else ""


def share(part: int, whole: int) -> float:
    """A part of a whole, 0 of nothing."""
    return part / whole if whole else 0.0
