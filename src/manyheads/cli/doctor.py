"""`doctor`: find problems. `museum`: small programs that show typical defects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.folding import DEFAULT_WIDTH, fold_lines, terminal_width
from manyheads.cli.verbs import Verb, echo_json, json_option, option, set_option, settings_of
from manyheads.errors import UsageError

if TYPE_CHECKING:
    from manyheads.doctor.diagnosis import Diagnosis
    from manyheads.doctor.machine import MachineReport
    from manyheads.doctor.texts import Language

__all__ = ["VERBS"]


@click.command(
    cls=Verb,
    epilog="""\b
Examples:
  manyheads doctor
  manyheads doctor multi30k-de-en --set data.root=data/multi30k
  manyheads doctor runs/multi30k-de-en --json
  manyheads doctor runs/multi30k-de-en --lang ko""",
)
@click.argument("subject", metavar="[CONFIG|RUN]", required=False)
@set_option()
@option(
    "--lang",
    "language",
    type=click.Choice(["en", "ko"]),
    default="en",
    help="Language of causes and cures: English or Korean; measured figures are described in English.",
)
@json_option()
@click.pass_context
def doctor(
    context: click.Context, subject: str | None, overrides: tuple[str, ...], language: Language, as_json: bool
) -> None:
    """Find problems in this machine, a configuration or a trained run; exit with code 1 if there are any.

    CONFIG is a TOML file or the name of a recipe: the doctor examines its text, its settings and a newly
    initialised model. RUN is a run directory: the doctor examines its training curves, weights, decoding and
    outputs. No file is changed.
    """
    report: MachineReport | Diagnosis
    if subject is None:
        if overrides:
            raise UsageError("--set changes the settings of a configuration or a run. Name one.")
        from manyheads.doctor import examine_machine

        report = examine_machine()
    else:
        report = examine(context, subject, overrides)
    if as_json:
        echo_json(report.to_json(language))
    else:
        for line in fold_lines(report.lines(language), terminal_width()):
            click.echo(line)
    context.exit(report.exit_code)


def examine(context: click.Context, subject: str, overrides: tuple[str, ...]) -> Diagnosis:
    """Examine a run if `subject` is a directory, else a configuration."""
    if Path(subject).is_dir():
        from manyheads.cli.progress import open_progress
        from manyheads.runs.examination import examine_run

        with open_progress(settings_of(context)) as progress:
            return examine_run(Path(subject), overrides=overrides, listener=progress)
    from manyheads.config.load import load_config, resolve_recipe

    config = load_config(resolve_recipe(subject), overrides)

    from manyheads.cli.progress import open_progress  # imports torch: only once the configuration is valid
    from manyheads.runs.examination import examine_config

    with open_progress(settings_of(context)) as progress:
        return examine_config(config, subject, listener=progress)


@click.command(
    cls=Verb,
    epilog="""\b
Examples:
  manyheads museum
  manyheads museum target-not-shifted
  manyheads museum 3 --lang ko""",
)
@click.argument("name", metavar="[EXHIBIT]", required=False)
@option(
    "--lang",
    "language",
    type=click.Choice(["en", "ko"]),
    default="en",
    help="Language of titles, explanations, causes and cures: English or Korean.",
)
@json_option()
def museum(name: str | None, language: Language, as_json: bool) -> None:
    """Run a small program with a typical defect of Transformer code, and show the doctor's diagnosis.

    EXHIBIT is the name or the number of a program; without it, all programs are listed. Each runs in seconds.
    """
    from manyheads.doctor.museum import exhibit, exhibits, played, visit

    if name is None:
        listed = [
            {"number": each.number, "name": each.name, "title": each.text(language).title} for each in exhibits()
        ]
        if as_json:
            echo_json(listed)
            return
        for row in listed:
            click.echo(f"{row['number']:>2}  {row['name']:<24}  {row['title']}")
        return
    chosen = exhibit(name)
    if as_json:
        echo_json(visit(chosen).to_json(language))
        return
    for line in fold_lines(played(chosen, language), terminal_width() or DEFAULT_WIDTH):
        click.echo(line)


VERBS = {"doctor": doctor, "museum": museum}
