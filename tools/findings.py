"""The page of all findings of the doctor, in English and Korean, from the texts of the package.

The book's build writes it (docs/_ext/reference.py and docs/_ext/korean.py); `manyheads doctor --explain`
prints the same texts.
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
WORDS = {"en": ("Museum", "Cause", "Cure"), "ko": ("박물관", "원인", "조치")}


def labels() -> set[str]:
    """Return the labels of the page, to which other pages link as `(#label)`."""
    return {"all-findings", *(name for known in CATALOGUE.values() for name in known)}


def findings_page(language: Language) -> str:
    """Return the page: a section for each finding, by subject."""
    title, introduction = TITLES[language]
    lines = ["(all-findings)=", f"# {title}", "", introduction, ""]
    seen: set[str] = set()
    for subject, known in CATALOGUE.items():
        lines += [f"## {SUBJECTS[language][subject]}", ""]
        for name, finding in known.items():
            # The label of a second finding of this name would be ambiguous.
            lines += [f'<a id="{subject}-{name}"></a>\n' if name in seen else f"({name})="]
            lines += section(finding, language)
            seen.add(name)
    return "\n".join(lines)


def section(finding: KnownFinding, language: Language) -> Iterator[str]:
    """Yield the heading and the paragraphs of a finding."""
    text = finding.texts[language].fill(dict.fromkeys(finding.values, "..."))
    severity = FINDING_TEXTS[language]["report"][finding.severity]
    museum, cause, cure = WORDS[language]
    exhibit = f" {museum}: {finding.exhibit}." if finding.exhibit else ""
    yield f"### {text.title}\n\n`{finding.name}` ({severity}).{exhibit} {text.meaning or text.cause}\n"
    if text.meaning:
        yield f"**{cause}.** {text.cause}\n"
    yield f"**{cure}.** {text.cure}\n"
