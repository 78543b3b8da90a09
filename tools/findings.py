"""The page of all findings of the doctor, in English and Korean, from the texts of the package.

`tools/reference.py` writes it; `manyheads doctor --explain` prints the same texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from manyheads.checks.catalogue import CATALOGUE
from transformer_doctor.catalogue import KnownFinding
from transformer_doctor.texts import FINDING_TEXTS, Language

TITLES: Mapping[Language, tuple[str, str]] = {
    "en": ("What the doctor finds", "`manyheads doctor --explain NAME` prints a section of this page."),
    "ko": ("닥터가 찾는 것", "`manyheads doctor --explain NAME --lang ko`는 이 페이지의 항목 하나를 출력합니다."),
}
SUBJECTS: Mapping[Language, Mapping[str, str]] = {
    "en": {"model": "Any PyTorch model", "machine": "This machine", "config": "A configuration", "run": "A run"},
    "ko": {"model": "모든 PyTorch 모델", "machine": "컴퓨터", "config": "설정과 텍스트", "run": "학습한 모델"},
}
SWITCHES = {"en": "[한국어](../ko/findings.md)", "ko": "[English](../reference/findings.md)"}
WORDS = {"en": ("Museum", "Cause", "Cure"), "ko": ("박물관", "원인", "조치")}


def findings_page(language: Language) -> Iterator[str]:
    """Yield the page: a section for each finding, by subject; its name is the heading, so that links lead to it."""
    title, introduction = TITLES[language]
    yield from (f"# {title}", "", SWITCHES[language], "", introduction, "")
    for subject, known in CATALOGUE.items():
        yield from (f"## {SUBJECTS[language][subject]}", "")
        for finding in known.values():
            yield from section(finding, language)


def section(finding: KnownFinding, language: Language) -> Iterator[str]:
    """Yield the heading and the paragraphs of a finding."""
    text = finding.texts[language].fill(dict.fromkeys(finding.values, "..."))
    severity = FINDING_TEXTS[language]["report"][finding.severity]
    museum, cause, cure = WORDS[language]
    exhibit = f" {museum}: {finding.exhibit}." if finding.exhibit else ""
    yield from (f"### {finding.name}", "")
    yield from (f"**{text.title}** ({severity}).{exhibit} {text.meaning or text.cause}", "")
    if text.meaning:
        yield from (f"**{cause}.** {text.cause}", "")
    yield from (f"**{cure}.** {text.cure}", "")
