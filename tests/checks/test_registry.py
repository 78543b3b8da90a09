"""Every task has its checks; a check that cannot be made is skipped."""

from __future__ import annotations

from manyheads.checks.catalogue import config_finding
from manyheads.checks.registry import _TRAINED, NEW_TRAINING
from manyheads.config.schema import TASKS
from transformer_doctor.report import Check, Finding, make_checks


def test_every_task_has_checks_and_each_sentence_occurs_once() -> None:
    assert len(_TRAINED) == len({spec.architecture for spec in TASKS.values()})
    for checks in (NEW_TRAINING, *_TRAINED.values()):
        sentences = [check.sentence for check in checks if check.sentence]
        assert sentences
        assert len(sentences) == len(set(sentences))


def test_a_check_that_cannot_be_made_is_skipped() -> None:
    made: list[str] = []

    def find(subject: str) -> list[Finding]:
        made.append(subject)
        return [config_finding("memory", "too little")]

    checks = [Check("possible", find), Check("impossible", find, lambda subject: subject != "the run")]
    report = make_checks(checks, "the run")
    assert made == ["the run"]
    assert report.asked == ("possible",)
    assert report.names == ["memory"]
