"""The options of a cleaning, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bitext.errors import UsageError

RuleName = Literal[
    "mojibake", "escapes", "access-keys", "typography", "encoding", "copy", "language", "length", "cut",
    "repetition", "numbers", "placeholders", "boilerplate", "duplicate", "lexical",
]  # fmt: skip


@dataclass(frozen=True)
class CleanOptions:
    """Options of a cleaning.

    Attributes:
        off: rules and repairs that are not applied.
        max_ratio: largest ratio of the length of a side to what the other side suggests, in characters and in
            words; the usual ratio of the two languages is learned from the text.
        loss: share of good pairs that each score may remove; the threshold of the score is estimated from it.
    """

    off: tuple[RuleName, ...] = ()
    max_ratio: float = 1.8
    loss: float = 0.03

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            UsageError: a number is out of its range.
        """
        if not self.max_ratio > 1:
            raise UsageError(f"max_ratio = {self.max_ratio} must be more than 1.")
        if not 0 <= self.loss < 1:
            raise UsageError(f"loss = {self.loss} is no share: at least 0 and below 1.")
