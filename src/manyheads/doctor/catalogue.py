"""Catalogue of the findings: name, severity and page; title, cause and cure from findings.en.toml and .ko.toml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from manyheads.doctor.report import Finding, FindingText, Severity
from manyheads.doctor.texts import FINDING_TEXTS, LANGUAGES, Language

__all__ = [
    "CATALOGUE",
    "PAGES",
    "KnownFinding",
    "Subject",
    "config_finding",
    "machine_finding",
    "model_finding",
    "run_finding",
]

# model: any PyTorch model and what surrounds it; machine, config, run: `manyheads doctor`, without or with subject.
Subject = Literal["model", "machine", "config", "run"]
PAGES: Mapping[Subject, str] = {  # in the repository
    "model": "docs/doctor.md#{name}",
    "machine": "docs/doctor.md#the-machine",
    "config": "docs/doctor-findings.md#{name}",
    "run": "docs/doctor-findings.md#{name}",
}


@dataclass(frozen=True)
class KnownFinding:
    """Entry of the catalogue.

    Attributes:
        subject: subject of the finding.
        name: kebab-case, the same in every version; unique within its subject.
        severity: usual severity.
        exhibit: number of its exhibit in the museum, or None.
        texts: title, cause and cure by language.
    """

    subject: Subject
    name: str
    severity: Severity
    exhibit: int | None
    texts: Mapping[Language, FindingText]

    @property
    def page(self) -> str:
        """File and anchor of its section in the documentation."""
        return PAGES[self.subject].format(name=self.name)


def known_finding(subject: Subject, name: str) -> KnownFinding:
    """Return the finding of a name from the tables of both languages."""
    tables = {language: FINDING_TEXTS[language][subject][name] for language in LANGUAGES}
    texts = {
        language: FindingText(table["title"], table["cause"], table["cure"]) for language, table in tables.items()
    }
    return KnownFinding(subject, name, tables["en"]["severity"], tables["en"].get("exhibit"), texts)


CATALOGUE: Mapping[Subject, Mapping[str, KnownFinding]] = {
    subject: {name: known_finding(subject, name) for name in FINDING_TEXTS["en"][subject]} for subject in PAGES
}


def make_finding(
    subject: Subject, name: str, evidence: str, severity: Severity | None = None, **values: object
) -> Finding:
    """Return a finding of the catalogue with its evidence; `values` fill the placeholders of its texts."""
    known = CATALOGUE[subject][name]
    texts = {language: text.fill(values) for language, text in known.texts.items()}
    english = texts["en"]
    return Finding(name, severity or known.severity, evidence, english.cause, english.cure, known.page, texts)


# Arguments: name, evidence, severity where it is not the usual one, values of the placeholders.
model_finding: Callable[..., Finding] = partial(make_finding, "model")
machine_finding: Callable[..., Finding] = partial(make_finding, "machine")
config_finding: Callable[..., Finding] = partial(make_finding, "config")
run_finding: Callable[..., Finding] = partial(make_finding, "run")
