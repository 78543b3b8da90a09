"""`doctor` and `museum`: what is wrong, and what that looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from manyheads.cli.verbs import Verb, echo_json, echo_result, json_option

if TYPE_CHECKING:
    from manyheads.doctor.museum import Language

__all__ = ["VERBS"]


@click.command(
    cls=Verb,
    epilog="""\b
Examples:
  manyheads doctor
  manyheads doctor --json""",
)
@json_option()
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """Look at this machine: versions, device, memory, disk, extras. Ends with 1 when something is wrong."""
    from manyheads.doctor import examine_machine

    report = examine_machine()
    echo_result(report, as_json=as_json)
    context.exit(report.exit_code)


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
    for line in played(one, language):
        click.echo(line)


VERBS = {"doctor": doctor, "museum": museum}
