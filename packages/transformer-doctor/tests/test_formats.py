"""SARIF, JUnit XML and Markdown hold all content of the report, and follow their standards."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from transformer_doctor.catalogue import model_finding
from transformer_doctor.formats import _to_junit, _to_markdown, _to_sarif
from transformer_doctor.report import Place, Report, make_report
from transformer_doctor.texts import LANGUAGES, Language

FUTURE = "no position depends on later target tokens"


@pytest.fixture
def report() -> Report:
    findings = [
        replace(model_finding("sees-the-future", "by 12 % & more"), place=Place("model.py", 31)),
        model_finding("mask-fill", "with -1e+09", "note"),
        model_finding("position-limit", "of 100 tokens"),
    ]
    checks = [FUTURE, "attention is scaled, masked and projected as in the paper", "scores are numbers"]
    skipped = [("results do not depend on source padding", "pad was not given")]
    return make_report(findings, checks, skipped, ["eos = 2"])


def test_sarif_has_a_rule_and_a_result_with_known_line_for_each_finding(report: Report) -> None:
    run = json.loads(_to_sarif(report))["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == [
        result["ruleId"] for result in run["results"]
    ]
    assert [(result["ruleId"], result["level"]) for result in run["results"]] == [
        ("sees-the-future", "error"),
        ("position-limit", "warning"),
        ("mask-fill", "note"),
    ]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("model.py", 31)
    assert "by 12 % & more" in run["results"][0]["message"]["text"]
    assert "locations" not in run["results"][1]
    for rule in rules:  # required by SARIF 2.1.0, section 3
        assert all(rule[name]["text"] for name in ("shortDescription", "fullDescription", "help"))


def test_junit_fails_the_checks_with_findings_and_passes_the_others(report: Report) -> None:
    suite = ElementTree.fromstring(_to_junit(report))
    cases = {case.get("name"): case for case in suite}
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("5", "2", "1")
    failed = [name for name, case in cases.items() if case.find("failure") is not None]
    assert failed == [FUTURE, "long texts raise a clear error or none"]
    failure = cases[FUTURE].find("failure")
    assert failure is not None
    assert "by 12 % & more" in (failure.text or "")
    assert "model.py:31" in (failure.text or "")
    assert cases["attention is scaled, masked and projected as in the paper"].find("system-out") is not None
    assert len(cases["scores are numbers"]) == 0
    skipped = cases["results do not depend on source padding"].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "pad was not given"


def test_junit_lists_a_check_that_an_exception_ended_once() -> None:
    failed = replace(model_finding("raises-an-error", "score raised KeyError"), check=FUTURE)
    suite = ElementTree.fromstring(_to_junit(make_report([failed], [], [(FUTURE, "the code raised KeyError")])))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("1", "1", "0")


@pytest.mark.parametrize("language", LANGUAGES)
def test_markdown_holds_all_content_of_the_text_report(report: Report, language: Language) -> None:
    text = _to_markdown(report, language)
    for finding in report.findings:
        translated = finding.translate(language)
        parts = (finding.name, finding.evidence, translated.cause, translated.cure, finding.explain)
        assert all(part in text for part in parts)
    assert report.verdict(language) in text
    assert "model.py:31" in text
    assert "eos = 2" in text


def test_a_report_without_findings_passes_in_every_format() -> None:
    report = make_report([], ["scores are numbers"])
    assert json.loads(_to_sarif(report))["runs"][0]["results"] == []
    assert ElementTree.fromstring(_to_junit(report)).get("failures") == "0"
    assert "1 check passed" in _to_markdown(report)
