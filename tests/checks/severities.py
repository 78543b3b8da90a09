"""Findings as the tests of checks compare them."""

from __future__ import annotations

from collections.abc import Iterable

from transformer_doctor.report import Finding


def severities(findings: Iterable[Finding]) -> dict[str, str]:
    """Return the severity of each finding by its name."""
    return {finding.name: finding.severity for finding in findings}
