"""Findings about machines, configurations and runs, beside those of transformer_doctor about models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from manyheads.config.schema import Config
from manyheads.evaluation.advice import settings_to_try
from transformer_doctor import catalogue
from transformer_doctor.catalogue import Catalogue, KnownFinding, make_finding, read_catalogue
from transformer_doctor.report import Finding, Report
from transformer_doctor.texts import load_sentences, load_texts

_PROGRAM = "manyheads doctor"
_TEXTS = load_texts(__package__, "findings")
SENTENCES_IN_KOREAN = load_sentences(__package__, "checks", "observations")

# machine, config, run: what `manyheads doctor` examines without an argument, with a configuration, with a run.
CATALOGUE: Mapping[str, Catalogue] = {
    "model": catalogue.CATALOGUE,
    **{subject: read_catalogue(_TEXTS, subject, _PROGRAM) for subject in ("machine", "config", "run")},
}

# Arguments: name, evidence, severity where it is not the usual one, values of the placeholders.
machine_finding: Callable[..., Finding] = partial(make_finding, CATALOGUE["machine"])
config_finding: Callable[..., Finding] = partial(make_finding, CATALOGUE["config"])
run_finding: Callable[..., Finding] = partial(make_finding, CATALOGUE["run"])


def explain(name: str) -> Sequence[KnownFinding]:
    """Return the findings with a name, as `transformer_doctor.catalogue.explain` does."""
    return catalogue.explain(name, [*CATALOGUE.values()], _PROGRAM)


def with_settings(report: Report, config: Config) -> Report:
    """Return a report whose cures name the settings of a configuration that may help, with its checks in Korean."""
    findings = tuple(_with_settings(finding, config) for finding in report.findings)
    return in_korean(replace(report, findings=findings))


def in_korean(report: Report) -> Report:
    """Return a report that knows the Korean sentences of this package."""
    return replace(report, korean={**SENTENCES_IN_KOREAN, **report.korean})


def _with_settings(finding: Finding, config: Config) -> Finding:
    settings = ", ".join(settings_to_try(finding.name, config))
    if not settings:
        return finding
    texts = {
        language: replace(text, cure=_TEXTS[language]["settings"].format(cure=text.cure, settings=settings))
        for language, text in finding.texts.items()
    }
    return replace(finding, cure=texts["en"].cure, texts=texts)
