"""`doctor` and `museum`: what is wrong, and what that looks like."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.folding import USUAL, folded, terminal_width
from manyheads.cli.verbs import Verb, echo_json, json_option, set_option, settings_of
from manyheads.errors import UsageError

if TYPE_CHECKING:
    from manyheads.doctor.diagnosis import Diagnosis
    from manyheads.doctor.machine import MachineReport
    from manyheads.doctor.museum import Language

__all__ = ["VERBS"]


@click.command(
    cls=Verb,
    epilog="""\b
Examples:
  manyheads doctor
  manyheads doctor multi30k-de-en --set data.root=data/multi30k
  manyheads doctor runs/multi30k-de-en --json""",
)
@click.argument("subject", metavar="[CONFIG|RUN]", required=False)
@set_option()
@json_option()
@click.pass_context
def doctor(context: click.Context, subject: str | None, overrides: tuple[str, ...], as_json: bool) -> None:
    """Say what is wrong with this machine, a configuration or a trained run. Ends with 1 when something is.

    CONFIG is a TOML file, or the name of a recipe: its text, its settings and a new model are examined. RUN is a
    run directory: its curves, its weights, how it decodes and what it writes. Nothing is changed.
    """
    found: MachineReport | Diagnosis
    if subject is None:
        if overrides:
            raise UsageError("--set changes the settings of a configuration or a run. Name one.")
        from manyheads.doctor import examine_machine

        found = examine_machine()
    else:
        found = examined(context, subject, overrides)
    if as_json:
        echo_json(found.to_json())
    else:
        for line in folded(found.lines(), terminal_width()):
            click.echo(line)
    context.exit(found.exit_code)


def examined(context: click.Context, subject: str, overrides: tuple[str, ...]) -> Diagnosis:
    """The diagnosis of a run, if it is a folder, else of a configuration."""
    if Path(subject).is_dir():
        from manyheads.cli.progress import open_progress
        from manyheads.runs.examination import examine_run

        with open_progress(settings_of(context)) as progress:
            return examine_run(Path(subject), overrides=overrides, listener=progress)
    from manyheads.config.load import load_config, resolve_recipe

    config = load_config(resolve_recipe(subject), overrides)

    from manyheads.cli.progress import (
        open_progress,  # after the configuration: its mistakes need not wait for torch
    )
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
@click.option("--lang", "language", type=click.Choice(["en", "ko"]), default="en", help="English or Korean.")
@json_option()
def museum(name: str | None, language: Language, as_json: bool) -> None:
    """Show the defects of tutorials at work, and what the doctor says of them.

    EXHIBIT is a name or a number; without one they are listed. Each is a small program that runs in seconds.
    """
    from manyheads.doctor.museum import exhibit, exhibits, played, visit

    if name is None:
        listed = [
            {"number": one.number, "name": one.name, "title": one.words(language).title} for one in exhibits()
        ]
        if as_json:
            echo_json(listed)
            return
        for row in listed:
            click.echo(f"{row['number']:>2}  {row['name']:<24}  {row['title']}")
        return
    one = exhibit(name)
    if as_json:
        echo_json(visit(one).to_json())
        return
    for line in folded(played(one, language), terminal_width() or USUAL):
        click.echo(line)


VERBS = {"doctor": doctor, "museum": museum}
