"""Result of the examination of a configuration or a run: the facts that were measured, and the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from manyheads.doctor.report import Report
from manyheads.doctor.texts import Language

__all__ = ["Diagnosis"]


@dataclass(frozen=True)
class Diagnosis:
    """Facts and report of an examination.

    Attributes:
        subject: what was examined.
        facts: by label, a sentence each, in English.
        report: findings and checks.
    """

    subject: str
    facts: Mapping[str, str]
    report: Report

    @property
    def exit_code(self) -> int:
        """Return 0 where there are neither errors nor warnings, else 1."""
        return self.report.exit_code

    def to_json(self, language: Language = "en") -> dict[str, Any]:
        """Return plain values under the names of the attributes, and those of the report beside them."""
        return {"subject": self.subject, "facts": dict(self.facts), **self.report.to_json(language)}

    def lines(self, language: Language = "en") -> list[str]:
        """Return a table of the facts for people, then the findings."""
        width = max(map(len, self.facts), default=0)
        table = [f"{label:<{width}}  {fact}" for label, fact in self.facts.items()]
        return [*table, "", *self.report.lines(language)]
