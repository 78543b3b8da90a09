"""Parts of the evidence of a finding: quoted lines and shares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

__all__ = ["Example", "QuotedLines", "describe_share", "quote", "share"]

LONGEST_QUOTE = 80  # characters of a line that are shown
QUOTED = 3  # lines


@dataclass(frozen=True)
class Example:
    """Line of a file that is quoted: its number, from 1 on, and its text."""

    line: int
    text: str

    def __str__(self) -> str:
        """Return the line as it is quoted, cut to `LONGEST_QUOTE` characters."""
        cut = self.text if len(self.text) <= LONGEST_QUOTE else self.text[: LONGEST_QUOTE - 3] + "..."
        return f'line {self.line:,}: "{cut}"'


@dataclass
class QuotedLines:
    """Number of lines that show a defect, and the first `QUOTED` of them."""

    count: int = 0
    examples: list[Example] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        """Count a line, and store it if it is among the first."""
        self.count += 1
        if len(self.examples) < QUOTED:
            self.examples.append(Example(line, text))


def quote(examples: Iterable[Example]) -> str:
    """Return examples to stand behind a sentence; an empty text where there are none."""
    quoted = "; ".join(map(str, examples))
    return f"; {quoted}" if quoted else ""


def share(part: int, whole: int) -> float:
    """Return part / whole, 0 where the whole is 0."""
    return part / whole if whole else 0.0


def describe_share(part: int, whole: int) -> str:
    """Return such as "12 of 1,000 (1.2 %)"."""
    percent = 100 * share(part, whole)
    return f"{part:,} of {whole:,} ({percent:.{'2g' if percent < 10 else '0f'}} %)"
