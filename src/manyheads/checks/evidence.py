"""Parts of the evidence of a finding: shares, quoted lines and lists of names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

_LONGEST_QUOTE = 80  # characters of a line that are shown
_QUOTED = 3  # lines


class Share(float):
    """Part of a whole, 0 where the whole is 0; as text such as "12 of 1,000 (1.2 %)"."""

    part: int
    whole: int

    def __new__(cls, part: int, whole: int) -> Share:
        """Return the share of a part in a whole."""
        share = super().__new__(cls, part / whole if whole else 0.0)
        share.part, share.whole = part, whole
        return share

    def __str__(self) -> str:
        percent = 100 * self
        return f"{self.part:,} of {self.whole:,} ({percent:.{'2g' if percent < 10 else '0f'}} %)"


@dataclass
class QuotedLines:
    """Number of lines that show a defect, and quotations of the first `_QUOTED` of them."""

    count: int = 0
    quotations: list[str] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        """Count a line (from 1 on), and quote the first ones, cut to `_LONGEST_QUOTE` characters."""
        self.count += 1
        if len(self.quotations) < _QUOTED:
            cut = text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 3] + "..."
            self.quotations.append(f'line {line:,}: "{cut}"')

    def __str__(self) -> str:
        """Return the quotations as the end of a sentence; an empty text if there are none."""
        return "".join(f"; {quotation}" for quotation in self.quotations)


def list_first(names: Sequence[str], most: int) -> str:
    """Return the first names, separated by commas, with dots for the others."""
    return ", ".join([*names[:most], *(["..."] if names[most:] else [])])
