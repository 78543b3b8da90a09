"""The command `transformer-doctor scan`: examine every text model of transformers, or all models that a file makes.

Each model is examined in a process of its own. A baseline is a TOML file of known findings: tables `finding` with
`model` (a class or function; * stands for any letters), `name` (of the finding) and `why`.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path

import click

from transformer_doctor.cases import Limits, Row, run_cases
from transformer_doctor.command import FILE, report_options, write_report
from transformer_doctor.errors import DoctorError, UsageError, require
from transformer_doctor.loading import load_arguments, maker_names
from transformer_doctor.report import SEVERITIES, Diagnosis, Finding, FindingText, Place, Report, reason_of
from transformer_doctor.texts import Language

_PRELOADED = (  # with the modules that each model of the library imports
    "transformers.models.auto.modeling_auto",
    "transformers.models.bert.modeling_bert",
)
Entry = Mapping[str, str]


@click.command("scan")
@click.argument("subject", metavar="transformers|FILE.py|MODULE")
@click.option("--class", "patterns", metavar="NAME", multiple=True, help="Class to examine; * for any letters.")
@click.option("--baseline", metavar="FILE", type=FILE, help="TOML file of known findings, each with a reason.")
@click.option("--write-baseline", is_flag=True, help="Append the new findings to that file.")
@click.option("--rows", metavar="FILE", type=FILE, help="File of results, from which an interrupted scan resumes.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Classes at a time.")
@click.option("--seconds", type=float, default=120.0, show_default=True, help="Time limit of a class.")
@report_options
@click.pass_context
def scan(
    context: click.Context,
    subject: str,
    patterns: Sequence[str],
    baseline: Path | None,
    write_baseline: bool,
    rows: Path | None,
    jobs: int,
    seconds: float,
    language: Language,
    form: str,
    output: Path | None,
) -> None:
    """Examine many models; exit with code 1 if there are new errors or warnings.

    `transformers` stands for the classes of its text models, each made small from its configuration. In a FILE.py
    or a MODULE, each public function without arguments makes a model, or a dictionary of arguments of `examine`.
    """
    try:
        if write_baseline and baseline is None:
            raise UsageError("--write-baseline appends to the file that --baseline names: give it too.")
        entries = [] if baseline is None else read_baseline(baseline)
        models = _find_models(subject, patterns)
        preload = (*(_PRELOADED if subject == "transformers" else ()), "transformer_doctor.examination")
        examined = run_cases([*models], examine_one, Limits(seconds, jobs=jobs), rows, preload)
        with click.progressbar(
            examined, len(models), f"{len(models)} models of {subject}", file=sys.stderr
        ) as shown:
            report, gone = scan_report(shown, models, entries)
        for entry in gone:
            click.echo(f"{baseline}: no longer found: {entry['name']} in {entry['model']}", err=True)
        if write_baseline and baseline is not None:
            _add_to_baseline(baseline, report.findings)
        write_report(Diagnosis({}, report, {"subject": subject}), form, language, output)
        context.exit(report.exit_code)
    except DoctorError as error:
        click.echo(f"error: {error}", err=True)
        context.exit(error.exit_code)


def _find_models(subject: str, patterns: Sequence[str]) -> Mapping[str, str]:
    """Return the names of the models, each with its class or function.

    Raises:
        UsageError: no class has a name that was given, or the file cannot be imported.
        MissingPackageError: transformers is not installed.
    """
    with redirect_stdout(sys.stderr):
        if subject == "transformers":
            require(subject, f"scan {subject}")
            from transformer_doctor.small_models import library_names

            models = library_names()
        else:
            models = {f"{subject}:{name}": name for name in maker_names(subject)}
    chosen = {name: owner for name, owner in models.items() if any(_fits(each, name, owner) for each in patterns)}
    if patterns and not chosen:
        raise UsageError(f"{subject}: none of {len(models)} classes is named {' or '.join(patterns)}.")
    return chosen if patterns else models


def examine_one(name: str) -> list[Row]:
    """Examine a model, and return its row.

    A row has the findings (`findings`), or why there are none: the model was not built (`left out`), or the
    examination raised an error (`crash`).
    """
    from transformer_doctor import examine
    from transformer_doctor.small_models import NotBuilt, kind_of, small_model

    logging.disable()
    with open(os.devnull, "w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        try:
            if ":" in name:
                report = examine(**load_arguments(name))
            else:
                report = examine(small_model(name), kind=kind_of(name))
        except NotBuilt as reason:
            return [{"left out": str(reason)}]
        except Exception as error:  # a model that cannot be examined does not end the scan
            return [{"crash": reason_of(error)[:600]}]
    return [{"findings": [asdict(finding) for finding in report.findings], "asked": len(report.asked)}]


def read_baseline(path: Path) -> Sequence[Entry]:
    """Return the known findings of a file; none where there is no file.

    Raises:
        UsageError: the file is no TOML, or an entry lacks a key.
    """
    try:
        entries: list[Entry] = tomllib.loads(path.read_text("utf-8")).get("finding", []) if path.exists() else []
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}.") from error
    for number, entry in enumerate(entries, 1):
        missing = [key for key in ("model", "name", "why") if not entry.get(key)]
        if missing:
            raise UsageError(f"{path}: finding {number} has no {' and no '.join(missing)}.")
    return entries


def _add_to_baseline(path: Path, findings: Iterable[Finding]) -> None:
    with path.open("a", encoding="utf-8") as file:
        for finding in findings:
            entry = {"model": finding.check, "name": finding.name, "why": f"not judged yet: {finding.evidence}"}
            lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()]
            file.write("\n".join(["", "[[finding]]", *lines, ""]))


def scan_report(
    rows: Iterable[Row], models: Mapping[str, str], baseline: Sequence[Entry]
) -> tuple[Report, Sequence[Entry]]:
    """Return the report on the rows of a scan, without notes, and the known findings that no longer occur.

    Each model is a check of the report.
    """
    findings, asked, skipped = [], [], []
    expected: list[Entry] = []
    seen: list[Entry] = []
    for row in rows:
        name, owner = row["case"], models[row["case"]]
        shared = [*models.values()].count(owner) > 1  # by several types of models of transformers
        label = f"{owner} ({name.split(' ')[1]})" if shared else owner
        if "findings" not in row:
            skipped.append((label, row.get("left out") or row.get("crash") or row["failure"]))
            continue
        asked.append(label)
        entries = [entry for entry in baseline if _fits(entry["model"], name, owner, label)]
        expected += entries
        for found in row["findings"]:
            listed = [entry for entry in entries if entry["name"] == found["name"]]
            seen += listed
            if found["severity"] != "note" and not listed:
                findings.append(_finding(found, label))
    findings.sort(key=lambda finding: (SEVERITIES.index(finding.severity), finding.check))
    return Report(findings, sorted(asked), sorted(skipped)), [
        entry for entry in baseline if entry in expected and entry not in seen
    ]


def _finding(found: Row, label: str) -> Finding:
    place = found["place"] and Place(**found["place"])
    texts = {language: FindingText(**text) for language, text in found["texts"].items()}
    evidence = f"model {label}: {found['evidence']}"
    return Finding(**found | {"place": place, "texts": texts, "evidence": evidence, "check": label})


def _fits(pattern: str, *names: str) -> bool:
    """Return whether a pattern is that of one of a model's names."""
    return any(fnmatchcase(name, pattern) for name in names)
