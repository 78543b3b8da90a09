"""The command `transformer-doctor`: examine or judge a model, visit the museum, explain a finding; needs `cli`."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from transformer_doctor import __version__
from transformer_doctor.columns import fold_lines, terminal_width
from transformer_doctor.errors import DoctorError, UsageError
from transformer_doctor.loading import ModelOptions, examine_model, is_model, judge_model
from transformer_doctor.progress import NO_LISTENER

if TYPE_CHECKING:
    from transformer_doctor.formats import Format
    from transformer_doctor.report import Diagnosis
    from transformer_doctor.texts import Language

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _sizes(context: click.Context, parameter: click.Parameter, value: str | None) -> int | tuple[int, ...] | None:
    numbers = () if value is None else value.split(",")
    if len(numbers) > 2 or not all(number.strip().isdecimal() for number in numbers):
        raise click.BadParameter(f"{value!r} is neither a number of ids nor two, such as 8000,6000.")
    sizes = tuple(map(int, numbers))
    return sizes if len(sizes) > 1 else next(iter(sizes), None)


_GUESSED = "guessed from the code"


def model_options(option: Callable[..., Decorator]) -> Decorator:
    """Return the decorator with the options of a model, each made by `option`; a command gets one `model`."""
    number = click.IntRange(min=0)
    decorators = (
        option("--vocab-size", callback=_sizes, metavar="N[,N]", show_default=_GUESSED,
               help="Number of token ids of a model, or two: of source and target."),
        option("--pad", type=number, metavar="ID", show_default=_GUESSED, help="Padding token id."),
        option("--bos", type=number, metavar="ID", show_default=_GUESSED,
               help="Beginning-of-sequence token id."),
        option("--eos", type=number, metavar="ID", show_default=_GUESSED,
               help="End-of-sequence token id."),
        option("--kind", type=click.Choice(["encoder-decoder", "encoder", "decoder"]), show_default=_GUESSED,
               help="Kind of a model: what it reads and writes."),
        option("--quick", is_flag=True, help="Skip checks that run training steps."),
    )  # fmt: skip

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def command(*args: Any, **values: Any) -> Any:
            model = ModelOptions(**{field.name: values.pop(field.name) for field in fields(ModelOptions)})
            return function(*args, model=model, **values)

        decorated: Callable[..., Any] = command
        for add in reversed(decorators):
            decorated = add(decorated)
        return decorated

    return decorate


_TEXT_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)


def report_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that writes a report: language, form and output."""
    forms = click.Choice(["text", "json", "sarif", "junit", "markdown"])
    for add in (
        click.option("-o", "--output", metavar="FILE", type=FILE, help="Write the report to a file."),
        click.option("--format", "form", type=forms, default="text", show_default=True, help="Report format."),
        click.option("--lang", "language", type=click.Choice(["en", "ko"]), default="en", show_default=True,
                     help="Language of the report: English or Korean."),
    ):  # fmt: skip
        function = add(function)
    return function


@click.command("transformer-doctor")
@click.argument("subject", metavar="[MODEL|museum|referee]", required=False)
@click.argument("detail", metavar="[EXHIBIT|MODEL]", required=False)
@model_options(functools.partial(click.option, show_default=True))
@click.option("--train", type=_TEXT_FILE, metavar="FILE", help="Training text of a submission (referee).")
@click.option("--test", type=_TEXT_FILE, metavar="FILE", help="Test text of a submission (referee).")
@click.option("--explain", metavar="NAME", help="Explain the finding NAME; the name list prints all names.")
@report_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout.")
@click.option("--strict", is_flag=True,
              help="Exit with code 1 too where a check needs an argument that was not given.")  # fmt: skip
@click.version_option(__version__)
@click.pass_context
def transformer_doctor(
    context: click.Context,
    subject: str | None,
    detail: str | None,
    model: ModelOptions,
    train: Path | None,
    test: Path | None,
    explain: str | None,
    language: Language,
    form: str,
    output: Path | None,
    as_json: bool,
    strict: bool,
) -> None:
    """Find defects in a model; exit with code 1 if there are any.

    MODEL is FILE.py:NAME or package.module:NAME, where NAME is a function without arguments that makes the model,
    a class or an object; or a Hugging Face folder with safetensors. The code of FILE.py runs. `museum` lists small
    programs with typical defects; with the name or the number of an EXHIBIT, it runs and examines one. `referee`
    judges whether the loss of a submitted language model is one that it earned. `scan PACKAGE` examines every model
    class of an installed package: see `transformer-doctor scan --help`.
    """
    try:
        if explain is not None:
            from transformer_doctor import catalogue

            _print(catalogue.explanation(explain, catalogue.explain(explain), language))
        elif subject == "museum":
            _print(museum_lines(detail, language, as_json=as_json), fold=not as_json)
        elif not is_model((detail if subject == "referee" else subject) or ""):
            raise UsageError(
                "Name a model, FILE.py:NAME or a Hugging Face folder; scan PACKAGE; museum; referee MODEL; or "
                "--explain NAME."
            )
        elif subject != "referee" and (train or test):
            raise UsageError("--train and --test are for a submission: transformer-doctor referee MODEL.")
        else:
            if subject == "referee":
                diagnosis = judge_model(str(detail), model, train, test)
            else:
                diagnosis = examine_model(str(subject), model, None, NO_LISTENER)
            write_report(diagnosis, "json" if as_json else form, language, output)
            context.exit(diagnosis.report.strict_exit_code if strict else diagnosis.exit_code)
    except DoctorError as error:
        click.echo(f"error: {error}", err=True)
        context.exit(error.exit_code)


def write_report(diagnosis: Diagnosis, form: str, language: Language, output: Path | None) -> None:
    """Write a report in a format to a file or to stdout; with a file, print the verdict to stderr."""
    if form == "text":
        lines: Iterable[str] = fold_lines(diagnosis.lines(language), None if output else terminal_width())
    elif form == "json":
        lines = _json(diagnosis.to_json(language))
    else:
        from transformer_doctor.formats import FORMATS

        lines = [FORMATS[cast("Format", form)](diagnosis.report, language).rstrip()]
    if output is None:
        _print(lines, fold=False)
    else:
        output.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        click.echo(f"{diagnosis.report.verdict(language)}; wrote {output}", err=True)


def museum_lines(name: str | None, language: Language, *, as_json: bool) -> Iterable[str]:
    """Return the lines of the museum: the list of exhibits, or an exhibit run as it is and mended."""
    from transformer_doctor import museum

    if name is None:
        rows = museum.listing(language)
        return _json(rows) if as_json else museum.listing_lines(rows)
    chosen = museum.exhibit(name)
    return _json(museum.to_json(chosen, language)) if as_json else museum.play(chosen, language)


def _json(document: Any) -> Iterable[str]:
    return [json.dumps(document, indent=2, ensure_ascii=False)]


def _print(lines: Iterable[str], *, fold: bool = True) -> None:
    for line in fold_lines(lines, terminal_width() if fold else None):
        click.echo(line)
