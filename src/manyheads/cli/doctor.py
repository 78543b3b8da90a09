"""`doctor`: find problems. `doctor museum`: small programs that show typical defects."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, cast

import click

from manyheads.cli.options import RECIPE, AsJson, Output, Overrides, option, pass_options, with_device
from manyheads.cli.streams import open_output, progress_display
from manyheads.cli.verbs import (
    announce_loading,
    current_settings,
    in_chosen_language,
    json_text,
    verb,
    verb_with_subverbs,
)
from manyheads.errors import UsageError
from transformer_doctor.columns import DEFAULT_WIDTH, fold_lines, terminal_width
from transformer_doctor.command import model_options, museum_lines
from transformer_doctor.loading import ModelOptions, examine_model, is_model

if TYPE_CHECKING:
    from transformer_doctor.formats import Format
    from transformer_doctor.report import Diagnosis
    from transformer_doctor.texts import Language


@dataclass(frozen=True)
class _DoctorOptions:
    subject: Annotated[
        str | None, click.argument("subject", metavar="[CONFIG|RUN|MODEL]", required=False, type=RECIPE)
    ]
    model: Annotated[ModelOptions, model_options(option)]
    overrides: Overrides
    device: Annotated[
        str | None,
        option("--device", metavar="NAME", show_default="training.device of the configuration, cpu for a run"),
    ]
    form: Annotated[
        str,
        option(
            "--format", "form", type=click.Choice(["text", "json", "sarif", "junit", "markdown"]), default="text"
        ),
    ]
    as_json: AsJson
    output: Output
    strict: Annotated[bool, option("--strict", is_flag=True)]
    challenge: Annotated[bool, option("--challenge", is_flag=True)]
    explain: Annotated[str | None, option("--explain", metavar="NAME")]


@verb_with_subverbs("doctor")
@pass_options(_DoctorOptions)
def doctor(options: _DoctorOptions) -> None:
    """Find problems in this machine, a configuration, run or model; exit with code 1 if there are any.

    CONFIG is a TOML file or the name of a recipe: the doctor examines its text, its settings and a newly
    initialised model. RUN is a run directory, an Argos package or a CTranslate2 folder: the doctor examines its
    training curves, weights, decoding and outputs. MODEL is any PyTorch model: FILE.py:NAME or
    package.module:NAME, where NAME is a function without arguments that makes the model, a class or an object; or
    a Hugging Face folder with safetensors. The code of FILE.py runs. No file is changed.
    """
    language = current_settings().language or "en"
    if options.explain is not None:
        from manyheads.checks import catalogue
        from transformer_doctor.catalogue import explanation

        lines = explanation(options.explain, catalogue.explain(options.explain), language)
        click.echo("\n".join(fold_lines(lines, terminal_width())))
        return
    form = "json" if options.as_json else options.form
    if options.challenge:
        options.model.refuse()
        _write_challenge(options, form)
    report: Diagnosis
    if options.subject is None:
        options.model.refuse()
        if options.overrides or options.device:
            raise UsageError(
                "--set and --device are for the examination of a configuration, a run or a model. Name one."
            )
        announce_loading()
        from manyheads.checks.machine import examine_machine

        report = examine_machine()
    else:
        report = _examine(options, options.subject)
    _write_report(report, form, language, options.output)
    raise click.exceptions.Exit(report.report.strict_exit_code if options.strict else report.exit_code)


def _write_challenge(options: _DoctorOptions, form: str) -> NoReturn:
    """Translate made-up inputs with a run, write the figures, and exit.

    Raises:
        UsageError: the subject is no run, or the form is not for these figures.
    """
    subject = options.subject
    if subject is None or not _is_run(Path(subject)) or is_model(subject):
        raise UsageError("--challenge translates with a trained run. Name its directory, or an Argos package.")
    if form not in ("text", "json"):
        raise UsageError(f"--format {form} is not for --challenge. Use text or json.")
    announce_loading()
    from manyheads.runs.challenge import challenge_run
    from manyheads.runs.import_model import opened_run

    with progress_display() as progress, opened_run(Path(subject), options.overrides, progress) as run:
        device = options.device or "cpu"
        result = challenge_run(run, overrides=options.overrides, device=device, listener=progress)
    result = replace(result, subject=subject)
    text = json_text(result.to_json()) if form == "json" else "\n".join(map(in_chosen_language, result.lines()))
    with open_output(options.output) as stream:
        stream.write(f"{text.rstrip()}\n".encode())
    raise click.exceptions.Exit(result.exit_code)


def _write_report(report: Diagnosis, form: str, language: Language, output: Path | None) -> None:
    """Write a report in the form given to a file or to stdout; with a file, print the verdict to stderr."""
    to_file = output is not None and str(output) != "-"
    if form == "text":
        lines = fold_lines(report.lines(language), None if to_file else terminal_width())
        text = "\n".join(lines)
    elif form == "json":
        text = json_text(report.to_json(language))
    else:
        from transformer_doctor.formats import FORMATS

        text = FORMATS[cast("Format", form)](report.report, language)
    with open_output(output) as stream:
        stream.write(f"{text.rstrip()}\n".encode())
    if to_file:
        click.echo(f"{report.report.verdict(language)}; wrote {output}", err=True)


def _examine(options: _DoctorOptions, subject: str) -> Diagnosis:
    """Examine a model, a run if `subject` is a directory, else a configuration on a device.

    Raises:
        UsageError: an option is given that is not for this subject.
    """
    overrides, device = options.overrides, options.device
    if is_model(subject):
        if overrides:
            raise UsageError(f"--set is for a configuration or a run: {subject} is a model.")
        announce_loading()
        with progress_display() as progress:
            from manyheads.tensors.devices import pick_device

            return examine_model(subject, options.model, device and str(pick_device(device)), progress)
    options.model.refuse()
    if _is_run(Path(subject)):
        announce_loading()
        from manyheads.runs.examine_run import examine_run
        from manyheads.runs.import_model import opened_run

        with progress_display() as progress, opened_run(Path(subject), overrides, progress) as run:
            report = examine_run(run, overrides=overrides, device=device or "cpu", listener=progress)
        return replace(report, document={**report.document, "subject": subject})
    from manyheads.config.load import load_config, resolve_recipe

    config = load_config(resolve_recipe(subject), with_device(overrides, device))

    announce_loading()
    # imports torch: only once the configuration is valid
    from manyheads.runs.examine_config import examine_config

    with progress_display() as progress:
        return examine_config(config, subject, listener=progress)


def _is_run(path: Path) -> bool:
    """Return whether a subject is a run, or a package that can be imported as one."""
    return path.is_dir() or (path.suffix == ".argosmodel" and path.is_file())


@verb("doctor museum", doctor)
@click.argument("name", metavar="[EXHIBIT]", required=False)
@option("--json", "as_json", is_flag=True)
def museum(name: str | None, as_json: bool) -> None:
    """Run a small program with a typical defect of Transformer code, and show the doctor's diagnosis.

    EXHIBIT is the name or the number of a program; without it, all programs are listed. Each runs in seconds.
    """
    width = None if as_json else terminal_width() or DEFAULT_WIDTH
    language = current_settings().language or "en"
    for line in fold_lines(museum_lines(name, language, as_json=as_json), width):
        click.echo(line)


VERBS = {"doctor": doctor}
