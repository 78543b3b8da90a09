"""The page of the findings holds the texts of the package."""

from __future__ import annotations

import re

import pytest
from tools.findings import findings_page

from manyheads.checks.catalogue import CATALOGUE
from transformer_doctor.texts import LANGUAGES, Language


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_has_a_section_with_the_title_and_the_cure_of_each_finding(language: Language) -> None:
    sections = re.split("\n### ", "\n".join(findings_page(language)))[1:]
    findings = [finding for known in CATALOGUE.values() for finding in known.values()]
    for finding, section in zip(findings, sections, strict=True):
        text = finding.texts[language].fill(dict.fromkeys(finding.values, "..."))
        assert section.startswith(f"{finding.name}\n\n**{text.title}** (")
        assert text.cause in section
        assert text.cure in section
