"""Findings and reports: order, counting, JSON, exit code."""

from __future__ import annotations

import json

import pytest

import manyheads.doctor
from manyheads.doctor import Report
from manyheads.doctor.catalogue import CATALOGUE, model_finding
from manyheads.doctor.report import make_report
from manyheads.doctor.texts import LANGUAGES


def test_the_gravest_come_first_and_each_defect_once() -> None:
    findings = [
        model_finding("mask-fill", "a", "note"),
        model_finding("position-limit", "b"),
        model_finding("mask-fill", "c"),
        model_finding("rows-mixed", "d"),
    ]
    report = make_report(findings, ["x", "y", "x"])
    assert [(one.name, one.evidence) for one in report.findings] == [
        ("mask-fill", "c"),
        ("rows-mixed", "d"),
        ("position-limit", "b"),
    ]
    assert str(report).splitlines()[-1] == "2 checks, 2 errors, 1 warning"


def test_notes_alone_are_well() -> None:
    assert Report().ok
    report = make_report([model_finding("pad-row-overwritten", "e")], ["x"])
    assert report.ok
    assert report.exit_code == 0
    worse = report + make_report([model_finding("position-limit", "f")], ["z"])
    assert (worse.exit_code, list(worse.asked)) == (1, ["x", "z"])


def test_the_document_holds_what_the_lines_say() -> None:
    report = make_report([model_finding("rows-mixed", "seen so")], ["x"])
    document = json.loads(json.dumps(report.to_json()))
    assert document["findings"][0]["evidence"] == "seen so"
    assert set(document["findings"][0]) == {"name", "severity", "evidence", "cause", "cure", "page"}
    for value in document["findings"][0].values():
        assert value in str(report)


def test_a_report_in_korean_keeps_its_names_and_its_evidence() -> None:
    report = make_report([model_finding("rows-mixed", "seen so"), model_finding("mask-fill", "b", "note")], ["x"])
    lines = report.lines("ko")
    text = CATALOGUE["model"]["rows-mixed"].texts["ko"]
    assert lines[:5] == [
        f"오류: rows-mixed ({text.title})",
        "  관찰  seen so",
        f"  원인  {text.cause}",
        f"  조치  {text.cure}",
        "  설명  docs/doctor.md#rows-mixed",
    ]
    assert lines[-1] == "검사 1개, 오류 1개, 참고 1개"
    assert Report().lines("ko") == ["검사 0개, 찾은 문제 없음"]
    assert (report + Report()).lines("ko") == lines


def test_the_document_in_korean_has_the_same_keys() -> None:
    report = make_report([model_finding("rows-mixed", "seen so")], ["x"])
    english, korean = (report.to_json(language)["findings"][0] for language in LANGUAGES)
    assert list(english) == list(korean)
    assert {key for key in english if english[key] != korean[key]} == {"cause", "cure"}
    assert report.to_json() == report.to_json("en")


@pytest.mark.parametrize("name", manyheads.doctor.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert callable(vars(manyheads.doctor)["__getattr__"](name))
