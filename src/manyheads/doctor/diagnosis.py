"""What an examination of a configuration or a run comes to: the facts it went by, and the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from manyheads.doctor.report import Report

__all__ = ["Diagnosis"]


@dataclass(frozen=True)
class Diagnosis:
    """See above.

    Attributes:
        subject: what was examined.
        facts: by label, a sentence each.
        report: findings and checks.
    """

    subject: str
    facts: Mapping[str, str]
    report: Report

    @property
    def exit_code(self) -> int:
        """0 when all is well, else 1."""
        return self.report.exit_code

    def to_json(self) -> dict[str, Any]:
        """Plain values under the names of the attributes, those of the report among them."""
        return {"subject": self.subject, "facts": dict(self.facts), **self.report.to_json()}

    def lines(self) -> list[str]:
        """A table for people, then the findings."""
        width = max(map(len, self.facts), default=0)
        table = [f"{label:<{width}}  {fact}" for label, fact in self.facts.items()]
        return [*table, "", *self.report.lines()]
