"""Parts of the evidence of a finding: quoted lines and shares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Example", "share", "shown"]

LONGEST_QUOTE = 80  # characters of a line that are shown


@dataclass(frozen=True)
class Example:
    """Line of a file that is quoted: its number, from 1 on, and its text."""

    line: int
    text: str

    def __str__(self) -> str:
        """Return the line as it is quoted, cut to `LONGEST_QUOTE` characters."""
        cut = self.text if len(self.text) <= LONGEST_QUOTE else self.text[: LONGEST_QUOTE - 3] + "..."
        return f'line {self.line:,}: "{cut}"'


def shown(examples: Iterable[Example]) -> str:
    """Return examples to stand behind a sentence; an empty text where there are none."""
    quoted = "; ".join(map(str, examples))
    return f"; {quoted}" if quoted else ""


def share(part: int, whole: int) -> float:
    """Return part / whole, 0 where the whole is 0."""
    return part / whole if whole else 0.0
