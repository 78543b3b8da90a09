"""Every task has its checks; a check that cannot be made is left out, with the reason."""

from __future__ import annotations

from typing import get_args

from manyheads.config.schema import Task
from manyheads.doctor.checks.registry import NEW_TRAINING, TRAINED
from manyheads.doctor.report import Check, make_checks


def test_every_task_has_checks_and_each_sentence_stands_once() -> None:
    assert set(TRAINED) == set(get_args(Task))
    for checks in (NEW_TRAINING, *TRAINED.values()):
        sentences = [check.sentence for check in checks if check.sentence]
        assert sentences
        assert len(sentences) == len(set(sentences))


def test_a_check_that_cannot_be_made_is_left_out_with_its_reason() -> None:
    made: list[str] = []

    def find(subject: str) -> list[None]:
        made.append(subject)
        return []

    checks = [Check("possible", find), Check("impossible", find, lambda subject: f"{subject} has no text")]
    report = make_checks(checks, "the run")
    assert made == ["the run"]
    assert report.asked == ("possible",)
    assert report.left_out == {"impossible": "the run has no text"}
    assert "left_out" not in report.to_json()
    assert (report + report).left_out == report.left_out
