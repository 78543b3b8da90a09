"""What an examination found: findings, and the report that holds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

__all__ = ["PAGE", "Finding", "Report", "Severity"]

# error: results are wrong. warning: they will be wrong, or the program will fail, under the conditions it names.
# note: worth knowing; nothing has to be done.
Severity = Literal["error", "warning", "note"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
PAGE = "docs/doctor.md"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        name: of the defect, in the catalogue (`manyheads.doctor.defects`); the same in every version.
        severity: how much it matters.
        evidence: what was seen, a sentence with its numbers.
        cause: what it most likely comes from.
        cure: what to do.
        page: where it is explained.
    """

    name: str
    severity: Severity
    evidence: str
    cause: str
    cure: str
    page: str = PAGE

    def lines(self) -> Iterator[str]:
        """The finding for people."""
        yield f"{self.severity}: {self.name}"
        told = {"seen": self.evidence, "cause": self.cause, "cure": self.cure, "page": self.page}
        for label, text in told.items():
            yield f"  {label:<6}{text}"


@dataclass(frozen=True)
class Report:
    """All findings, and what was looked at.

    Attributes:
        findings: the gravest first.
        asked: the checks that could be made, a sentence each; what is not here has not been looked at.
    """

    findings: Sequence[Finding] = ()
    asked: Sequence[str] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether there are neither errors nor warnings."""
        return not any(finding.severity != "note" for finding in self.findings)

    @property
    def exit_code(self) -> int:
        """0 when all is well, else 1."""
        return 0 if self.ok else 1

    @property
    def names(self) -> list[str]:
        """The defects found, the gravest first."""
        return [finding.name for finding in self.findings]

    def __add__(self, other: Report) -> Report:
        """Both reports in one."""
        return make_report([*self.findings, *other.findings], [*self.asked, *other.asked])

    def __str__(self) -> str:
        """The report for people."""
        return "\n".join(self.lines())

    def to_json(self) -> dict[str, Any]:
        """Plain values under the names of the attributes."""
        return {
            "ok": self.ok,
            "findings": [asdict(finding) for finding in self.findings],
            "asked": list(self.asked),
        }

    def lines(self) -> list[str]:
        """The findings for people, then how many checks there were."""
        told = [line for finding in self.findings for line in finding.lines()]
        checks = f"{len(self.asked)} check{'s' * (len(self.asked) != 1)}"
        return [*told, f"{checks}, {counted(self.findings) or 'nothing found'}"]


def make_report(findings: Sequence[Finding], asked: Sequence[str]) -> Report:
    """A report with its findings in order, and each of them and of the checks once."""
    unique: dict[str, Finding] = {}
    for finding in sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)):
        unique.setdefault(finding.name, finding)
    return Report(tuple(unique.values()), tuple(dict.fromkeys(asked)))


def counted(findings: Sequence[Finding]) -> str:
    """Such as "2 errors, 1 note"."""
    counts = [(sum(finding.severity == severity for finding in findings), severity) for severity in SEVERITIES]
    return ", ".join(f"{count} {severity}{'s' * (count > 1)}" for count, severity in counts if count)
