"""`doctor`: find problems. `doctor museum`: small programs that show typical defects."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

import click

from manyheads.cli.doctor_model import ModelOptions, examine_model, is_model, model_options
from manyheads.cli.options import (
    LANGUAGE,
    complete_recipes,
    json_option,
    option,
    output_option,
    set_option,
    with_device,
)
from manyheads.cli.verbs import (
    announce_loading,
    current_settings,
    echo,
    echo_json,
    json_text,
    verb,
    verb_with_subverbs,
)
from manyheads.errors import UsageError

if TYPE_CHECKING:
    from manyheads.doctor.formats import Format
    from manyheads.doctor.report import Diagnosis
    from manyheads.doctor.texts import Language

_DEFAULT_WIDTH, _MAX_WIDTH = 80, 100  # columns; longer lines are hard to read
_FILLER = "\0"  # second column of a wide character
# Beginning of a line: spaces, and a label with the spaces after it.
_LABEL = re.compile(r" *(?:(?:seen|at|what|cause|cure|more) +|\S{1,16} {2,})?")


@verb_with_subverbs("doctor")
@click.argument("subject", metavar="[CONFIG|RUN|MODEL]", required=False, shell_complete=complete_recipes)
@model_options
@set_option
@option(
    "--device",
    metavar="NAME",
    show_default="training.device of the configuration, cpu for a run",
    help="Device to compute on: cpu, cuda, cuda:1, or auto.",
)
@option(
    "--lang",
    "language",
    type=LANGUAGE,
    default="en",
    help="Language of causes and cures: English or Korean; measured figures are described in English.",
)
@option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif", "junit", "markdown"]),
    default="text",
    help="Form of the report: text for people, JSON, SARIF for code hosts, JUnit XML for test runners, Markdown.",
)
@json_option
@output_option("report")
@option(
    "--challenge",
    is_flag=True,
    help="Translate about 630 made-up inputs with RUN instead (single words, capitals, numbers, addresses, emoji, "
    "tags, other scripts), and print the share of outputs that fail.",
)
@option(
    "--explain",
    metavar="NAME",
    help="Explain the finding NAME and examine nothing; the name list prints all names with their titles.",
)
def doctor(
    subject: str | None,
    overrides: tuple[str, ...],
    device: str | None,
    language: Language,
    form: str,
    as_json: bool,
    output: Path | None,
    explain: str | None,
    challenge: bool,
    options: ModelOptions,
) -> None:
    """Find problems in this machine, a configuration, run or model; exit with code 1 if there are any.

    CONFIG is a TOML file or the name of a recipe: the doctor examines its text, its settings and a newly
    initialised model. RUN is a run directory: the doctor examines its training curves, weights, decoding and
    outputs. MODEL is any PyTorch model: FILE.py:NAME or package.module:NAME, where NAME is a function
    without arguments that makes the model, a class or an object; or a Hugging Face folder with safetensors. The
    code of FILE.py runs. No file is changed.
    """
    if explain is not None:
        _print_lines(_explanation(explain, language))
        return
    if challenge:
        options.refuse()
        _write_challenge(subject, overrides, device, "json" if as_json else form, output)
    report: Diagnosis
    if subject is None:
        options.refuse()
        if overrides or device:
            raise UsageError(
                "--set and --device are for the examination of a configuration, a run or a model. Name one."
            )
        announce_loading()
        from manyheads.doctor import examine_machine

        report = examine_machine()
    else:
        report = _examine(subject, overrides, device, options)
    _write_report(report, "json" if as_json else form, language, output)
    raise click.exceptions.Exit(report.exit_code)


def _write_challenge(
    subject: str | None, overrides: tuple[str, ...], device: str | None, form: str, output: Path | None
) -> NoReturn:
    """Translate made-up inputs with a run, write the figures, and exit.

    Raises:
        UsageError: the subject is no run, or the form is not for these figures.
    """
    if subject is None or not Path(subject).is_dir() or is_model(subject):
        raise UsageError("--challenge translates with a trained run. Name its directory.")
    if form not in ("text", "json"):
        raise UsageError(f"--format {form} is not for --challenge. Use text or json.")
    announce_loading()
    from manyheads.cli.progress import open_progress
    from manyheads.cli.streams import open_output
    from manyheads.runs.challenge import challenge_run

    with open_progress(current_settings()) as progress:
        result = challenge_run(Path(subject), overrides=overrides, device=device or "cpu", listener=progress)
    text = json_text(result.to_json()) if form == "json" else "\n".join(result.lines())
    with open_output(output) as stream:
        stream.write(f"{text.rstrip()}\n".encode())
    raise click.exceptions.Exit(result.exit_code)


def _write_report(report: Diagnosis, form: str, language: Language, output: Path | None) -> None:
    """Write a report in the form given to a file or to stdout; with a file, print the verdict to stderr."""
    from manyheads.cli.streams import open_output

    to_file = output is not None and str(output) != "-"
    if form == "text":
        lines = _fold_lines(report.lines(language), None if to_file else _terminal_width())
        text = "\n".join(lines)
    elif form == "json":
        text = json_text(report.to_json(language))
    else:
        from manyheads.doctor.formats import FORMATS

        text = FORMATS[cast("Format", form)](report.report, language)
    with open_output(output) as stream:
        stream.write(f"{text.rstrip()}\n".encode())
    if to_file:
        click.echo(f"{report.report.verdict(language)}; wrote {output}", err=True)


def _explanation(name: str, language: Language) -> Iterator[str]:
    """Yield the explanation of a finding for each subject that has it; for "list", all names and titles."""
    from manyheads.doctor.catalogue import CATALOGUE, explain

    if name == "list":
        for findings in CATALOGUE.values():
            yield from (f"{finding.name:<26}  {finding.texts[language].title}" for finding in findings.values())
        return
    for index, finding in enumerate(explain(name)):
        yield from [""] * bool(index)
        yield from finding.lines(language)


def _print_lines(lines: Iterable[str]) -> None:
    """Print lines for people, folded at the width of a terminal."""
    for line in _fold_lines(lines, _terminal_width()):
        click.echo(line)


def _examine(subject: str, overrides: tuple[str, ...], device: str | None, options: ModelOptions) -> Diagnosis:
    """Examine a model, a run if `subject` is a directory, else a configuration on a device.

    Raises:
        UsageError: an option is given that is not for this subject.
    """
    if is_model(subject):
        if overrides:
            raise UsageError(f"--set is for a configuration or a run: {subject} is a model.")
        announce_loading()
        from manyheads.cli.progress import open_progress

        with open_progress(current_settings()) as progress:
            return examine_model(subject, options, device, progress)
    options.refuse()
    if Path(subject).is_dir():
        announce_loading()
        from manyheads.cli.progress import open_progress
        from manyheads.runs.examine_run import examine_run

        with open_progress(current_settings()) as progress:
            return examine_run(Path(subject), overrides=overrides, device=device or "cpu", listener=progress)
    from manyheads.config.load import load_config, resolve_recipe

    config = load_config(resolve_recipe(subject), with_device(overrides, device))

    announce_loading()
    from manyheads.cli.progress import open_progress  # imports torch: only once the configuration is valid
    from manyheads.runs.examine_config import examine_config

    with open_progress(current_settings()) as progress:
        return examine_config(config, subject, listener=progress)


@verb("doctor museum", doctor)
@click.argument("name", metavar="[EXHIBIT]", required=False)
@option(
    "--lang",
    "language",
    type=LANGUAGE,
    default="en",
    help="Language of titles, explanations, causes and cures: English or Korean.",
)
@json_option
def museum(name: str | None, language: Language, as_json: bool) -> None:
    """Run a small program with a typical defect of Transformer code, and show the doctor's diagnosis.

    EXHIBIT is the name or the number of a program; without it, all programs are listed. Each runs in seconds.
    """
    from manyheads.doctor.museum import exhibit, exhibits, play, visit

    if name is None:
        listed = [
            {"number": entry.number, "name": entry.name, "title": entry.text(language).title}
            for entry in exhibits()
        ]
        lines = (f"{row['number']:>2}  {row['name']:<24}  {row['title']}" for row in listed)
        echo(listed, lines, as_json=as_json)
        return
    chosen = exhibit(name)
    if as_json:
        echo_json(visit(chosen).to_json(language))
        return
    for line in _fold_lines(play(chosen, language), _terminal_width() or _DEFAULT_WIDTH):
        click.echo(line)


def _terminal_width() -> int | None:
    """Return the number of columns to fold at; None (no folding) if stdout is not a terminal."""
    return min(_MAX_WIDTH, shutil.get_terminal_size((_DEFAULT_WIDTH, 24)).columns) if sys.stdout.isatty() else None


def _fold_lines(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Fold lines between words at `width` columns; continuation lines are indented below the text after the label.

    Wide characters, such as Hangul, take two columns. Words are never split, so that a longer word makes a longer
    line. A width of None folds nothing.
    """
    for line in lines:
        if width is None or len(_widened(line)) <= width:
            yield line
            continue
        match = _LABEL.match(line)
        start = _widened(match[0]) if match else ""
        folded = textwrap.wrap(
            _widened(line)[len(start) :],
            width,
            initial_indent=start,
            subsequent_indent=" " * len(start),
            break_long_words=False,
            break_on_hyphens=False,
        )
        yield from (text.replace(_FILLER, "") for text in folded)


def _widened(text: str) -> str:
    """Return a text with a filler behind each wide character, so that its length is its width in columns."""
    return "".join(letter + _FILLER * (unicodedata.east_asian_width(letter) in "WF") for letter in text)


VERBS = {"doctor": doctor}
