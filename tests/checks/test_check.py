"""Checks that can be made are made one by one, and their findings of one name are one."""

from __future__ import annotations

from contextlib import AbstractContextManager

from manyheads.checks.catalogue import config_finding
from manyheads.checks.check import Check, make_checks, merge_findings
from transformer_doctor.progress import Advance, SilentListener
from transformer_doctor.report import Finding


def test_a_check_that_cannot_be_made_is_skipped() -> None:
    made: list[str] = []

    def find(subject: str) -> list[Finding]:
        made.append(subject)
        return [config_finding("memory", "too little")]

    checks = [
        Check("possible", find),
        Check("impossible", find, lambda subject: subject != "the run", "of a reason"),
    ]
    report = make_checks(checks, "the run")
    assert made == ["the run"]
    assert report.asked == ("possible",)
    assert (report.names, report.findings[0].check) == (["memory"], "possible")
    assert report.skipped == (("impossible", "of a reason"),)


def test_findings_of_a_name_are_merged_with_the_evidence_of_all() -> None:
    parts = [config_finding("memory", "train: 1"), config_finding("memory", "test: 2", "error")]
    (merged,) = merge_findings(parts)
    assert (merged.severity, merged.evidence) == ("error", "train: 1; test: 2")


def test_the_running_check_is_shown() -> None:
    shown: list[str] = []

    class PhaseRecorder(SilentListener):
        def phase(self, name: str, total: int | None = None, unit: str = "") -> AbstractContextManager[Advance]:
            shown.append(name)
            return super().phase(name, total, unit)

    make_checks([Check("the source is read", lambda subject: [])], None, PhaseRecorder())
    assert shown == ["checking: the source is read"]
