"""Findings and reports: order, counting, JSON, exit code."""

from __future__ import annotations

import json

import pytest

import transformer_doctor
from transformer_doctor import Report
from transformer_doctor.catalogue import CATALOGUE, model_finding
from transformer_doctor.report import Severity, make_report, report_on
from transformer_doctor.texts import LANGUAGES


def test_findings_are_sorted_by_severity_and_each_defect_is_listed_once() -> None:
    findings = [
        model_finding("mask-fill", "a", "note"),
        model_finding("position-limit", "b"),
        model_finding("mask-fill", "c"),
        model_finding("rows-mixed", "d"),
    ]
    report = make_report(findings, ["x", "y", "x"])
    assert [(finding.name, finding.evidence) for finding in report.findings] == [
        ("mask-fill", "c"),
        ("rows-mixed", "d"),
        ("position-limit", "b"),
    ]
    assert str(report).splitlines()[-1] == (
        "2 checks, 2 errors, 1 warning: correct the errors first, because results are wrong"
    )


def test_a_check_with_a_finding_is_not_listed_as_one_that_holds() -> None:
    report = make_report([model_finding("unseeded-split", "seen")], ["the split is the same at every run"])
    report += make_report([], ["the vocabulary is used"])
    for language in LANGUAGES:
        damaged, used = report.asked_lines(language)
        assert "unseeded-split" in damaged
        assert damaged in str("\n".join(report.lines(language)))
        assert used == "the vocabulary is used"


def test_a_report_of_notes_alone_is_ok() -> None:
    assert Report().ok
    report = make_report([model_finding("pad-row-overwritten", "e")], ["x"])
    assert report.ok
    assert report.exit_code == 0
    worse = report + make_report([model_finding("position-limit", "f")], ["z"])
    assert (worse.exit_code, list(worse.asked)) == (1, ["x", "z"])


def test_the_json_document_holds_the_text_of_the_report() -> None:
    report = make_report([model_finding("rows-mixed", "seen so")], ["x"])
    document = json.loads(json.dumps(report.to_json()))
    assert document["findings"][0]["evidence"] == "seen so"
    assert set(document["findings"][0]) == {"name", "severity", "evidence", "cause", "cure", "place", "explain"}
    for value in document["findings"][0].values():
        assert value is None or value in str(report)


def test_a_report_lists_the_checks_made_and_the_skipped_checks_with_the_reason() -> None:
    reason = "the model computes in half precision"
    report = make_report([], ["scores are numbers"], [("scores depend on the source", reason)])
    assert report.lines() == [
        "checked:",
        "  - scores are numbers",
        "not checked:",
        f"  - scores depend on the source ({reason})",
        "1 check passed, 1 not made: nothing has to be corrected in what was checked",
    ]
    assert report.brief_lines() == report.lines()[-1:]
    document = report.to_json()
    assert document["skipped"] == [{"check": "scores depend on the source", "reason": reason}]
    assert document["verdict"] == report.lines()[-1]
    assert report.lines("ko")[1:4] == [
        "  - 점수가 유한한 수임",
        "검사하지 못한 항목:",
        "  - 점수가 소스에 따라 달라짐 (모델이 반정밀도로 계산함)",
    ]


def test_checks_that_need_an_argument_are_counted_in_the_verdict_and_fail_a_strict_report() -> None:
    skipped = [
        *((f"check {number}", "train_step was not given") for number in range(4)),
        ("last", "pad was not given"),
    ]
    report = make_report([], ["scores are numbers"], skipped)
    assert report.missing == {"train_step": 4, "pad": 1}
    assert report.verdict() == (
        "1 check passed, 5 not made: nothing has to be corrected in what was checked; "
        "for more checks, give train_step (4), pad (1)"
    )
    assert report.lines() == ["checked:", "  - scores are numbers", report.verdict()]
    assert len(report.to_json()["skipped"]) == 5
    assert (report.exit_code, report.strict_exit_code) == (0, 1)
    assert report.verdict("ko").endswith("train_step (4), pad (1)")


def test_a_later_report_neither_replaces_the_reason_of_an_earlier_one_nor_what_was_tried() -> None:
    report = make_report([], [], [("a", "first")]) + make_report([], [], [("a", "second")])
    assert report.skipped == (("a", "first"),)
    tried = report_on("a", tried="13 tokens") + report_on("a", tried="130 tokens") + report_on("b")
    assert [*tried.asked_lines()] == ["a (13 tokens)", "b"]


def test_merged_reports_know_the_korean_names_of_both() -> None:
    other = Report(asked=("few lines are empty",), korean={"few lines are empty": "빈 줄이 적다"})
    report = make_report([], ["scores are numbers"]) + other
    assert [*report.asked_lines("ko")] == ["점수가 유한한 수임", "빈 줄이 적다"]


def test_a_check_made_in_one_of_two_merged_reports_is_not_skipped() -> None:
    assert (make_report([], [], [("a", "no text")]) + make_report([], ["a"])).skipped == ()


@pytest.mark.parametrize(
    ("severity", "advice"),
    [
        ("error", "1 error: correct the errors first, because results are wrong"),
        ("warning", "1 warning: correct what the warnings name, or make sure that it does not matter here"),
        ("note", "1 note: nothing has to be corrected"),
    ],
)
def test_the_last_line_gives_advice_for_the_severity(severity: Severity, advice: str) -> None:
    assert str(make_report([model_finding("mask-fill", "a", severity)], ["x"])).endswith(f"1 check, {advice}")


def test_a_report_in_korean_keeps_its_names_and_the_evidence_that_has_no_korean_form() -> None:
    report = make_report([model_finding("rows-mixed", "seen so"), model_finding("mask-fill", "b", "note")], ["x"])
    lines = report.lines("ko")
    text = CATALOGUE["rows-mixed"].texts["ko"]
    assert lines[:5] == [
        f"오류: rows-mixed ({text.title})",
        "  관찰  seen so",
        f"  원인  {text.cause}",
        f"  조치  {text.cure}",
        "  설명  transformer-doctor --explain rows-mixed",
    ]
    assert lines[-1] == "검사 1개, 오류 1개, 참고 1개: 결과가 틀리므로 오류부터 고치세요"
    assert Report().lines("ko") == ["검사 0개 통과: 고칠 것이 없습니다"]
    assert (report + Report()).lines("ko") == lines


def test_the_json_document_in_korean_has_the_same_keys() -> None:
    report = make_report([model_finding("rows-mixed", "seen so")], ["x"])
    english, korean = (report.to_json(language)["findings"][0] for language in LANGUAGES)
    assert list(english) == list(korean)
    assert {key for key in english if english[key] != korean[key]} == {"cause", "cure"}
    assert report.to_json() == report.to_json("en")


@pytest.mark.parametrize("name", transformer_doctor.__all__)
def test_every_public_name_is_callable(name: str) -> None:
    assert callable(vars(transformer_doctor)["__getattr__"](name))
