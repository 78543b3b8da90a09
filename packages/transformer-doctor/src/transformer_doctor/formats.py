"""Write a report for other programs: SARIF for code hosts, JUnit XML for test runners, Markdown for summaries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal
from xml.etree import ElementTree

from transformer_doctor import __version__
from transformer_doctor.report import Finding, Report
from transformer_doctor.texts import Language

Format = Literal["sarif", "junit", "markdown"]
_CLASS = {"classname": "transformer_doctor"}


def _to_sarif(report: Report, language: Language = "en") -> str:
    findings = report.findings_in(language)
    rules = {
        finding.name: {
            "id": finding.name,
            "shortDescription": {"text": finding.title(language)},
            "fullDescription": {"text": finding.cause},
            "help": {"text": f"{finding.cure}\n{finding.explain}"},
            "defaultConfiguration": {"level": finding.severity},
        }
        for finding in findings
    }
    driver = {"name": "transformer-doctor", "version": __version__, "rules": [*rules.values()]}
    results = [_sarif_result(finding, [*rules].index(finding.name), language) for finding in findings]
    document = {
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _sarif_result(finding: Finding, index: int, language: Language) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.name,
        "ruleIndex": index,
        "level": finding.severity,
        "message": {"text": f"{finding.title(language)}: {finding.evidence}"},
    }
    if finding.place is not None:
        place = {
            "artifactLocation": {"uri": finding.place.path, "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": finding.place.line},
        }
        result["locations"] = [{"physicalLocation": place}]
    return result


def _to_junit(report: Report, language: Language = "en") -> str:
    """Return the report as JUnit XML: a test case per check; errors and warnings are failures, notes are output."""
    suite = ElementTree.Element("testsuite", name="transformer-doctor")
    by_check: dict[str, list[Finding]] = {check: [] for check in report.asked}
    for finding in report.findings_in(language):
        by_check.setdefault(finding.check or finding.title(), []).append(finding)
    for check, findings in by_check.items():
        case = ElementTree.SubElement(suite, "testcase", _CLASS, name=report.sentence(check, language))
        text = "\n".join(line for finding in findings for line in finding.lines(language))
        names = [finding.name for finding in findings if finding.severity != "note"]
        if names:
            ElementTree.SubElement(case, "failure", message=", ".join(names)).text = text
        elif findings:
            ElementTree.SubElement(case, "system-out").text = text
    for check, reason in report.skipped:
        if check in by_check:  # of a check that an exception ended
            continue
        case = ElementTree.SubElement(suite, "testcase", _CLASS, name=report.sentence(check, language))
        ElementTree.SubElement(case, "skipped", message=report.sentence(reason, language))
    for attribute, path in {"tests": "testcase", "failures": "*/failure", "skipped": "*/skipped"}.items():
        suite.set(attribute, str(len(suite.findall(path))))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def _to_markdown(report: Report, language: Language = "en") -> str:
    return "".join(f"{line}\n" for line in _markdown_lines(report, language))


def _markdown_lines(report: Report, language: Language) -> Iterator[str]:
    labels = report.labels(language)
    yield f"**transformer-doctor**: {report.verdict(language)}"
    for finding in report.findings_in(language):
        yield f"\n### {labels[finding.severity]}: `{finding.name}`, {finding.title(language)}\n"
        texts = {"seen": finding.evidence, "at": finding.place and f"`{finding.place}`"}
        texts |= {"cause": finding.cause, "cure": finding.cure}
        yield from (f"- **{labels[label]}** {text}" for label, text in texts.items() if text)
        yield f"- `{finding.explain}`"
    for label, sentences in report.lists(language).items():
        yield f"\n<details><summary>{label} {len(sentences)}</summary>\n"
        yield from (f"- {sentence}" for sentence in sentences)
        yield "\n</details>"


FORMATS: Mapping[Format, Callable[[Report, Language], str]] = {
    "sarif": _to_sarif,
    "junit": _to_junit,
    "markdown": _to_markdown,
}
