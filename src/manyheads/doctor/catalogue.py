"""Catalogue of the findings: name, severity and texts, from findings.en.toml and findings.ko.toml."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Literal, get_args

from rich.cells import set_cell_size

from manyheads.doctor.report import LABEL_COLUMNS, Finding, FindingText, Severity
from manyheads.doctor.texts import FINDING_TEXTS, LANGUAGES, Language, placeholders
from manyheads.errors import UsageError

# model: any PyTorch model, its data and its training; machine, config, run: `manyheads doctor` without an argument,
# with a configuration, with a run.
Subject = Literal["model", "machine", "config", "run"]
_SUBJECTS: tuple[Subject, ...] = get_args(Subject)


@dataclass(frozen=True)
class KnownFinding:
    """Entry of the catalogue.

    Attributes:
        subject: subject of the finding.
        name: kebab-case, the same in every version; unique within its subject.
        severity: usual severity.
        exhibit: number of its exhibit in the museum, or None.
        texts: title, cause, cure and meaning by language.
        check: sentence of the check that finds it; empty for other subjects than "model".
    """

    subject: Subject
    name: str
    severity: Severity
    exhibit: int | None
    texts: Mapping[Language, FindingText]
    check: str

    @property
    def values(self) -> set[str]:
        """Return the names of the placeholders in its texts."""
        return placeholders(self.texts["en"].cause) | placeholders(self.texts["en"].cure)

    def lines(self, language: Language = "en") -> Iterator[str]:
        """Yield the explanation for people: title, name and severity, meaning, cause and cure."""
        labels = FINDING_TEXTS[language]["report"]
        text = self.texts[language].fill(dict.fromkeys(self.values, "..."))
        yield f"{text.title}"
        yield f"  {self.name}, {labels[self.severity]}, {labels['subjects'][self.subject]}"
        paragraphs = {"meaning": text.meaning, "cause": text.cause, "cure": text.cure}
        for label, paragraph in paragraphs.items():
            if paragraph:
                yield f"  {set_cell_size(labels[label], LABEL_COLUMNS)}{paragraph}"


def _known_finding(subject: Subject, name: str) -> KnownFinding:
    tables = {language: FINDING_TEXTS[language][subject][name] for language in LANGUAGES}
    texts = {
        language: FindingText(table["title"], table["cause"], table["cure"], table.get("meaning", ""))
        for language, table in tables.items()
    }
    english = tables["en"]
    return KnownFinding(subject, name, english["severity"], english.get("exhibit"), texts, english.get("check", ""))


CATALOGUE: Mapping[Subject, Mapping[str, KnownFinding]] = {
    subject: {name: _known_finding(subject, name) for name in FINDING_TEXTS["en"][subject]} for subject in _SUBJECTS
}


def explain(name: str) -> Sequence[KnownFinding]:
    """Return the findings with a name, at most one for each subject.

    Raises:
        UsageError: no finding has this name; the message names similar ones.
    """
    matches = [findings[name] for findings in CATALOGUE.values() if name in findings]
    if not matches:
        near = get_close_matches(name, {known for findings in CATALOGUE.values() for known in findings})
        raise UsageError(
            f"the doctor has no finding {name!r}"
            + (f"; did you mean {' or '.join(near)}?" if near else ". `manyheads doctor --explain list` names all.")
        )
    return matches


def _make_finding(
    subject: Subject, name: str, evidence: str, severity: Severity | None = None, **values: object
) -> Finding:
    """Return a finding of the catalogue with its evidence; `values` fill the placeholders of its texts."""
    known = CATALOGUE[subject][name]
    texts = {language: text.fill(values) for language, text in known.texts.items()}
    english = texts["en"]
    return Finding(
        name, severity or known.severity, evidence, english.cause, english.cure, check=known.check, texts=texts
    )


# Arguments: name, evidence, severity where it is not the usual one, values of the placeholders.
model_finding: Callable[..., Finding] = partial(_make_finding, "model")
machine_finding: Callable[..., Finding] = partial(_make_finding, "machine")
config_finding: Callable[..., Finding] = partial(_make_finding, "config")
run_finding: Callable[..., Finding] = partial(_make_finding, "run")
