"""Catalogue of the findings about models: name, severity and texts, from findings.en.toml and findings.ko.toml.

A program that examines more than models reads its own findings with `read_catalogue`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Any

from transformer_doctor.columns import pad_label
from transformer_doctor.errors import UsageError
from transformer_doctor.report import Finding, FindingText, Severity
from transformer_doctor.texts import FINDING_TEXTS, LANGUAGES, Language, placeholders


@dataclass(frozen=True)
class KnownFinding:
    """Entry of a catalogue.

    Attributes:
        subject: subject of the finding: "model", or one of another program.
        name: kebab-case, the same in every version; unique within its subject.
        severity: usual severity.
        exhibit: number of its exhibit in the museum, or None.
        texts: title, cause, cure and meaning by language.
        check: sentence of the check that finds it; empty for other subjects than "model".
        where: the subject in words, by language.
        program: the command that explains it.
    """

    subject: str
    name: str
    severity: Severity
    exhibit: int | None
    texts: Mapping[Language, FindingText]
    check: str
    where: Mapping[Language, str]
    program: str

    @property
    def values(self) -> set[str]:
        """Return the names of the placeholders in its texts."""
        return placeholders(self.texts["en"].cause) | placeholders(self.texts["en"].cure)

    def lines(self, language: Language = "en") -> Iterator[str]:
        """Yield the explanation for people: title, name and severity, meaning, cause and cure."""
        labels = FINDING_TEXTS[language]["report"]
        text = self.texts[language].fill(dict.fromkeys(self.values, "..."))
        yield f"{text.title}"
        yield f"  {self.name}, {labels[self.severity]}, {self.where[language]}"
        paragraphs = {"meaning": text.meaning, "cause": text.cause, "cure": text.cure}
        for label, paragraph in paragraphs.items():
            if paragraph:
                yield f"  {pad_label(labels[label])}{paragraph}"


Catalogue = Mapping[str, KnownFinding]


def read_catalogue(texts: Mapping[Language, Mapping[str, Any]], subject: str, program: str) -> Catalogue:
    """Return the findings about a subject by name, from the texts of `load_texts`."""

    def known(name: str) -> KnownFinding:
        tables = {language: texts[language][subject][name] for language in LANGUAGES}
        words = {
            language: FindingText(table["title"], table["cause"], table["cure"], table.get("meaning", ""))
            for language, table in tables.items()
        }
        where = {language: texts[language]["subjects"][subject] for language in LANGUAGES}
        english = tables["en"]
        severity, exhibit, check = english["severity"], english.get("exhibit"), english.get("check", "")
        return KnownFinding(subject, name, severity, exhibit, words, check, where, program)

    return {name: known(name) for name in texts["en"][subject]}


CATALOGUE = read_catalogue(FINDING_TEXTS, "model", "transformer-doctor")


def explain(
    name: str, catalogues: Sequence[Catalogue] = (CATALOGUE,), program: str = "transformer-doctor"
) -> Sequence[KnownFinding]:
    """Return the findings with a name, at most one of each catalogue; all of them for the name "list".

    Raises:
        UsageError: no finding has this name; the message names similar ones.
    """
    if name == "list":
        return [finding for catalogue in catalogues for finding in catalogue.values()]
    matches = [catalogue[name] for catalogue in catalogues if name in catalogue]
    if not matches:
        near = get_close_matches(name, {known for catalogue in catalogues for known in catalogue})
        raise UsageError(
            f"the doctor has no finding {name!r}"
            + (f"; did you mean {' or '.join(near)}?" if near else f". `{program} --explain list` names all.")
        )
    return matches


def explanation(name: str, known: Sequence[KnownFinding], language: Language) -> Iterator[str]:
    """Yield the lines of findings that `explain` returned for a name; for "list", a name and its title a line."""
    for index, finding in enumerate(known):
        if name == "list":
            yield f"{finding.name:<26}  {finding.texts[language].title}"
        else:
            yield from [""] * bool(index)
            yield from finding.lines(language)


def make_finding(
    catalogue: Catalogue, name: str, evidence: str, severity: Severity | None = None, **values: object
) -> Finding:
    """Return a finding of a catalogue with its evidence; `values` fill the placeholders of its texts."""
    known = catalogue[name]
    texts = {language: text.fill(values) for language, text in known.texts.items()}
    english = texts["en"]
    return Finding(
        name, severity or known.severity, evidence, english.cause, english.cure,
        check=known.check, texts=texts, program=known.program,
    )  # fmt: skip


def in_case(finding: Finding, case: str) -> Finding:
    """Return a finding with the cause and the cure of a case that was observed, in every language."""
    texts = {}
    for language in LANGUAGES:
        table = FINDING_TEXTS[language]["cases"][case]
        texts[language] = replace(finding.texts[language], cause=table["cause"], cure=table["cure"])
    return replace(finding, cause=texts["en"].cause, cure=texts["en"].cure, texts=texts)


# Arguments: name, evidence, severity where it is not the usual one, values of the placeholders.
model_finding: Callable[..., Finding] = partial(make_finding, CATALOGUE)
