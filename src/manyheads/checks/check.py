"""Checks of a subject, made one after another into a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from manyheads.reports import NO_LISTENER, Listener
from transformer_doctor.report import SEVERITIES, Finding, Report, make_report

_Subject = TypeVar("_Subject")


@dataclass(frozen=True)
class Check(Generic[_Subject]):
    """Check of an examination.

    Attributes:
        sentence: statement that is true where the check finds nothing, as the report lists it; None for a check
            that is not listed by itself.
        find: function that observes a subject and yields the findings.
        possible: function that returns whether a subject can be observed.
        reason: why a subject cannot be observed.
    """

    sentence: str | None
    find: Callable[[_Subject], Iterable[Finding]]
    possible: Callable[[_Subject], bool] = lambda subject: True
    reason: str = ""


def make_checks(checks: Iterable[Check[_Subject]], subject: _Subject, listener: Listener = NO_LISTENER) -> Report:
    """Make the checks of a subject that can be made; the listener shows which one is running."""
    report = Report()
    for check in checks:
        listed = [check.sentence] if check.sentence else []
        if check.possible(subject):
            with listener.phase(f"checking: {check.sentence or 'attention heads'}"):
                findings = merge_findings(check.find(subject))
                findings = [replace(finding, check=check.sentence or "") for finding in findings]
                report += make_report(findings, listed)
        else:
            report += make_report([], [], [(sentence, check.reason) for sentence in listed])
    return report


def name_direction(report: Report, name: str) -> Report:
    """Return a report whose findings say the direction of a translator of several languages; "" says none."""
    findings = [replace(finding, evidence=f"{name}: {finding.evidence}") for finding in report.findings]
    return replace(report, findings=findings) if name else report


def merge_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings of the same name as one, with the evidence of all and the worst severity."""
    merged: dict[str, Finding] = {}
    for finding in findings:
        first = merged.setdefault(finding.name, finding)
        if finding is not first:
            merged[finding.name] = replace(
                first,
                evidence=f"{first.evidence}; {finding.evidence}",
                severity=min(first.severity, finding.severity, key=SEVERITIES.index),
            )
    return list(merged.values())
