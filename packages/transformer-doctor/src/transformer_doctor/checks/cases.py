"""Complete findings about attentions: the cause and the cure of the case that was observed, and its line."""

from __future__ import annotations

from dataclasses import replace

from transformer_doctor.places import relative_path
from transformer_doctor.report import Finding, Place
from transformer_doctor.texts import FINDING_TEXTS, LANGUAGES
from transformer_doctor.trace import Attention


def at_line(finding: Finding, attention: Attention) -> Finding:
    """Return a finding with the line that computes an attention, where it is known."""
    if attention.place is None:
        return finding
    file, line = attention.place
    return replace(finding, place=Place(relative_path(file), line))


def in_case(finding: Finding, case: str) -> Finding:
    """Return a finding with the cause and the cure of a case of the catalogue, in every language."""
    texts = {}
    for language in LANGUAGES:
        table = FINDING_TEXTS[language]["cases"][case]
        texts[language] = replace(finding.texts[language], cause=table["cause"], cure=table["cure"])
    return replace(finding, cause=texts["en"].cause, cure=texts["en"].cure, texts=texts)
