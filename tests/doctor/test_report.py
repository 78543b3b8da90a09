"""Findings and reports: order, counting, JSON, exit code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import manyheads.doctor
from manyheads.doctor import Report
from manyheads.doctor.defects import CATALOGUE, found
from manyheads.doctor.report import make_report


def test_the_gravest_come_first_and_each_defect_once() -> None:
    findings = [
        found("mask-fill", "a", "note"),
        found("position-limit", "b"),
        found("mask-fill", "c"),
        found("rows-mixed", "d"),
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
    report = make_report([found("pad-row-overwritten", "e")], ["x"])
    assert report.ok
    assert report.exit_code == 0
    worse = report + make_report([found("position-limit", "f")], ["z"])
    assert (worse.exit_code, list(worse.asked)) == (1, ["x", "z"])


def test_the_document_holds_what_the_lines_say() -> None:
    report = make_report([found("rows-mixed", "seen so")], ["x"])
    document = json.loads(json.dumps(report.to_json()))
    assert document["findings"][0]["evidence"] == "seen so"
    assert set(document["findings"][0]) == {"name", "severity", "evidence", "cause", "cure", "page"}
    for value in document["findings"][0].values():
        assert value in str(report)


def test_every_defect_has_a_section_on_its_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text("utf-8")
    anchors = set(re.findall(r"^\(([\w-]+)\)=$", page, re.MULTILINE))
    assert anchors - {"the-machine"} == set(CATALOGUE)


@pytest.mark.parametrize("name", manyheads.doctor.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert callable(vars(manyheads.doctor)["__getattr__"](name))
