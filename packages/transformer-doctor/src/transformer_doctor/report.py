"""Findings, the checks that make them, and the report on them: as lines in English or Korean, and as JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from transformer_doctor.columns import column_width, pad_label
from transformer_doctor.errors import describe_error, is_for_users
from transformer_doctor.texts import FINDING_TEXTS, SENTENCES_IN_KOREAN, Language, translate

# error: results are wrong. warning: they will be wrong, or the program will fail, under the conditions it names.
# note: worth knowing; nothing has to be done.
Severity = Literal["error", "warning", "note"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

_NOT_GIVEN = re.compile(r"(\w+) was not given")  # reason of a check that needs an argument


@dataclass(frozen=True)
class FindingText:
    """Texts of a finding in one language.

    Attributes:
        title: what is wrong, a sentence without its full stop.
        cause: the most likely cause.
        cure: instructions for mending it.
        meaning: what was measured and from which threshold on; empty where the cause says it.
    """

    title: str
    cause: str
    cure: str
    meaning: str = ""

    def fill(self, values: Mapping[str, object]) -> FindingText:
        """Return the texts with their placeholders replaced."""
        return replace(self, cause=self.cause.format(**values), cure=self.cure.format(**values))


@dataclass(frozen=True)
class Place:
    """Line of a source file, counted from 1; the path is relative to the working directory where it is below it."""

    path: str
    line: int

    def __str__(self) -> str:
        """Return path and line, as editors read them: "model.py:41"."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Finding:
    """A defect, or something worth knowing.

    Attributes:
        name: name in the catalogue (`transformer_doctor.catalogue`); the same in every version.
        severity: error, warning or note.
        evidence: the observation, a sentence with its numbers.
        cause: the most likely cause.
        cure: instructions for mending it.
        place: the line of the examined code that shows it, None where it is unknown.
        check: the check that found it, as the report lists it; empty where it belongs to none.
        texts: title, cause and cure by language; not part of the JSON.
        program: the command that explains it.
    """

    name: str
    severity: Severity
    evidence: str
    cause: str
    cure: str
    place: Place | None = None
    check: str = ""
    texts: Mapping[Language, FindingText] = field(default_factory=dict, repr=False, compare=False)
    program: str = field(default="transformer-doctor", repr=False)

    @property
    def explain(self) -> str:
        """Return the command that explains the finding."""
        return f"{self.program} --explain {self.name}"

    def title(self, language: Language = "en") -> str:
        """Return the defect in a few words."""
        return self.texts[language].title if language in self.texts else self.name

    def at(self, place: Place | None) -> Finding:
        """Return the finding with the line that shows it, unchanged where the line is unknown."""
        return self if place is None else replace(self, place=place)

    def translate(self, language: Language) -> Finding:
        """Return the finding with cause and cure in another language, where they are known in it."""
        text = self.texts.get(language)
        return self if text is None or language == "en" else replace(self, cause=text.cause, cure=text.cure)

    def to_json(self) -> dict[str, str | None]:
        """Return plain values under the names of the attributes, and the command that explains the finding."""
        plain = {name: getattr(self, name) for name in ("name", "severity", "evidence", "cause", "cure")}
        return {**plain, "place": None if self.place is None else str(self.place), "explain": self.explain}

    def lines(self, language: Language = "en") -> Iterator[str]:
        """Yield the finding for people; the name is English, and in other languages the title follows it."""
        labels, finding = FINDING_TEXTS[language]["report"], self.translate(language)
        title = f" ({self.title(language)})" if language != "en" and language in self.texts else ""
        yield f"{labels[self.severity]}: {self.name}{title}"
        texts = {"seen": finding.evidence, "at": self.place, "cause": finding.cause, "cure": finding.cure}
        for label, text in (texts | {"more": self.explain}).items():
            if text is not None:
                yield f"  {pad_label(labels[label])}{text}"


@dataclass(frozen=True)
class Report:
    """All findings of an examination, and the checks that were made.

    Attributes:
        findings: errors first, notes last.
        asked: the checks that were made, a sentence each.
        skipped: the checks that were not made, each with its reason. "pad was not given" names an argument: with it
            the check can be made. Any other reason means that it cannot be made of this subject.
        tried: what a check that was made has tried, such as "13 tokens"; not every check says it.
        remarks: what was assumed about the subject, or done to it, a sentence each, in English.
        korean: Korean forms of English sentences: checks, reasons, remarks and evidence; see `texts.translate`.
    """

    findings: Sequence[Finding] = ()
    asked: Sequence[str] = ()
    skipped: Sequence[tuple[str, str]] = ()
    remarks: Sequence[str] = ()
    tried: Mapping[str, str] = field(default_factory=dict)
    korean: Mapping[str, str] = field(default_factory=lambda: SENTENCES_IN_KOREAN, repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """Return whether there are neither errors nor warnings."""
        return not any(finding.severity != "note" for finding in self.findings)

    @property
    def exit_code(self) -> int:
        """Return 0 where there are neither errors nor warnings, else 1."""
        return 0 if self.ok else 1

    @property
    def strict_exit_code(self) -> int:
        """Return 0 where `exit_code` is 0 and no check needs an argument that was not given, else 1."""
        return self.exit_code or int(bool(self.missing))

    @property
    def missing(self) -> Mapping[str, int]:
        """Return the number of checks that need an argument that was not given, by argument."""
        names = [found[1] for _, reason in self.skipped if (found := _NOT_GIVEN.fullmatch(reason))]
        return dict(Counter(names).most_common())

    @property
    def names(self) -> list[str]:
        """Return the names of the findings, errors first."""
        return [finding.name for finding in self.findings]

    def __add__(self, other: Report) -> Report:
        report = make_report(
            [*self.findings, *other.findings],
            [*self.asked, *other.asked],
            [*self.skipped, *other.skipped],
            [*self.remarks, *other.remarks],
        )
        return replace(report, tried={**other.tried, **self.tried}, korean={**self.korean, **other.korean})

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_json(self, language: Language = "en") -> dict[str, Any]:
        """Return plain values under the names of the attributes; findings and verdict are in the given language."""
        return {
            "ok": self.ok,
            "findings": [finding.to_json() for finding in self.findings_in(language)],
            "asked": list(self.asked),
            "tried": dict(self.tried),
            "skipped": [{"check": check, "reason": reason} for check, reason in self.skipped],
            "remarks": list(self.remarks),
            "verdict": self.verdict(language),
        }

    def lines(self, language: Language = "en") -> list[str]:
        """Return the findings for people, remarks, the checks that were made and not made, and the verdict."""
        *lines, verdict = self.brief_lines(language)
        for label, sentences in self.lists(language).items():
            lines += [label, *(f"  - {sentence}" for sentence in sentences)]
        return [*lines, verdict]

    def lists(self, language: Language = "en") -> Mapping[str, Sequence[str]]:
        """Return remarks, checks that were made, and checks that were not made, by heading; no empty lists."""
        remarks = [self.sentence(remark, language) for remark in self.remarks]
        skipped = [
            f"{self.sentence(check, language)} ({self.sentence(reason, language)})"
            for check, reason in self.skipped
            if not _NOT_GIVEN.fullmatch(reason)
        ]
        lists = {"remarks": remarks, "asked": [*self.asked_lines(language)], "skipped": skipped}
        return {self.labels(language)[label]: sentences for label, sentences in lists.items() if sentences}

    def sentence(self, text: str, language: Language) -> str:
        """Return a check, reason, remark, fact or evidence in a language; in English where it has no other form."""
        return translate(text, self.korean) if language == "ko" else text

    def findings_in(self, language: Language) -> list[Finding]:
        """Return the findings with evidence, cause and cure in a language."""
        return [
            replace(finding.translate(language), evidence=self.sentence(finding.evidence, language))
            for finding in self.findings
        ]

    def asked_lines(self, language: Language = "en") -> Iterator[str]:
        """Yield the checks that were made, and what they tried; one that does not hold names its findings."""
        for check in self.asked:
            names = ", ".join(finding.name for finding in self.findings if finding.check == check)
            failed = self.labels(language)["failed"].format(names=names) if names else ""
            tried = f" ({self.sentence(self.tried[check], language)})" if check in self.tried else ""
            yield f"{self.sentence(check, language)}{tried}{failed}"

    def brief_lines(self, language: Language = "en") -> list[str]:
        """Return the findings for people and the verdict."""
        findings = self.findings_in(language)
        return [*(line for finding in findings for line in finding.lines(language)), self.verdict(language)]

    def labels(self, language: Language) -> Mapping[str, Any]:
        """Return the words of a report in a language: severities, headings and counts."""
        return FINDING_TEXTS[language]["report"]

    def verdict(self, language: Language = "en") -> str:
        """Return the number of checks and of findings, whether anything has to be corrected, and what to give."""
        labels = self.labels(language)
        checks = _with_count("check" if self.findings else "passed", len(self.asked), language)
        skipped = _with_count("skipped", len(self.skipped), language) if self.skipped else ""
        counts = ", ".join(filter(None, (checks, skipped, _count_severities(self.findings, language))))
        severity = self.findings[0].severity if self.findings else "note"
        advice = labels["advice"]["unchecked" if severity == "note" and self.skipped else severity]
        wanted = ", ".join(f"{name} ({count})" for name, count in self.missing.items())
        return f"{counts}: {advice}" + (labels["wanted"].format(names=wanted) if wanted else "")


def make_report(
    findings: Iterable[Finding],
    asked: Sequence[str],
    skipped: Iterable[tuple[str, str]] = (),
    remarks: Sequence[str] = (),
) -> Report:
    """Return a report with its findings in order of severity, and each finding, check and remark once.

    A finding without a check belongs to the check that was made, if that was a single one.
    """
    unique: dict[str, Finding] = {}
    for finding in sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)):
        single = asked[0] if len(asked) == 1 else ""
        unique.setdefault(finding.name, finding if finding.check else replace(finding, check=single))
    left_out: dict[str, str] = {}
    for check, reason in skipped:
        if check not in asked:
            left_out.setdefault(check, reason)
    return Report(
        tuple(unique.values()), tuple(dict.fromkeys(asked)), tuple(left_out.items()), tuple(dict.fromkeys(remarks))
    )


def report_on(check: str, findings: Iterable[Finding] = (), reason: str = "", tried: str = "") -> Report:
    """Return the report on a check that was made, perhaps with what it tried, or not made for a reason."""
    if reason:
        return make_report(findings, [], [(check, reason)])
    return replace(make_report(findings, [check]), tried={check: tried} if tried else {})


def attempt(checks: Sequence[str], make: Callable[[], Report]) -> Report:
    """Return the report on checks; if the observed code raises an error, list them as not made, with the error.

    A message that is written for users is the reason itself. An error of what the user gave is a finding too.
    """
    try:
        return make()
    except Exception as error:  # any exception of the user's code
        return failure_report(checks, error)


def failure_report(checks: Sequence[str], error: Exception, severity: Severity | None = None) -> Report:
    """Return the report on checks that an error ended, with the finding that it holds; see `checks.calls`."""
    skipped = [(check, reason_of(error)) for check in checks]
    found: Finding | None = getattr(error, "finding", None)
    if found is None:
        return make_report([], [], skipped)
    return make_report([replace(found, check=checks[0], severity=severity or found.severity)], [], skipped)


def reason_of(error: Exception) -> str:
    """Return why a check that raised an error was not made."""
    return str(error) if is_for_users(error) else f"the code raised {describe_error(error)}"


@dataclass(frozen=True)
class Diagnosis:
    """Result of the examination of a machine, a configuration or a run.

    Attributes:
        facts: measured figures by label, a sentence each, in English.
        report: findings and checks.
        document: further values of the JSON.
        table: lines of a table for people, printed first.
    """

    facts: Mapping[str, str]
    report: Report
    document: Mapping[str, Any]
    table: Sequence[str] = ()

    @property
    def exit_code(self) -> int:
        """Return 0 where there are neither errors nor warnings, else 1."""
        return self.report.exit_code

    def to_json(self, language: Language = "en") -> dict[str, Any]:
        """Return plain values; findings and verdict are in the given language."""
        return {**self.document, **self.report.to_json(language)}

    def lines(self, language: Language = "en") -> list[str]:
        """Return the table and the facts for people, then the findings."""
        said = {self.report.sentence(label, language): fact for label, fact in self.facts.items()}
        width = max(map(column_width, said), default=0)
        facts = [
            f"{pad_label(label, width)}  {self.report.sentence(fact, language)}" for label, fact in said.items()
        ]
        return [*self.table, *[""] * bool(self.table), *facts, "", *self.report.lines(language)]


def _count_severities(findings: Sequence[Finding], language: Language) -> str:
    counts = {severity: sum(finding.severity == severity for finding in findings) for severity in SEVERITIES}
    return ", ".join(_with_count(severity, count, language) for severity, count in counts.items() if count)


def _with_count(noun: str, count: int, language: Language) -> str:
    """Return a noun of the report with its count: "1 check", "2 checks"."""
    form = "one" if count == 1 else "many"
    return FINDING_TEXTS[language]["report"][form][noun].format(count=count)
