"""`corrections review`: sort the corrections that a server has stored."""

from __future__ import annotations

from pathlib import Path

import click

from bitext.shell import command_line
from manyheads.cli.options import OUTPUT_FILE, PATH, device_option, json_option, option, run_option
from manyheads.cli.streams import open_output
from manyheads.cli.verbs import announce_loading, echo, verb, verb_group


@verb_group("corrections")
def corrections() -> None:
    """Review corrections of translations that a server has stored, so that a model can learn from them."""


@verb("corrections review", corrections)
@click.argument("file", type=PATH)
@run_option("--run", help="Translator whose log-probabilities judge, too, and whose languages are chosen.")
@option(
    "-o", "--output", type=OUTPUT_FILE, required=True, metavar="FILE", help="TSV file for the accepted corrections."
)
@option("--rejected", type=OUTPUT_FILE, metavar="FILE", help="TSV file for all others, with their reasons.")
@option(
    "--html",
    "page",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Page for the doubtful ones, on which you tick the right ones.",
)
@device_option
@json_option
def review(
    file: Path, run: Path | None, output: Path, rejected: Path | None, page: Path | None, device: str, as_json: bool
) -> None:
    """Sort the suggestions of FILE, which `manyheads serve --suggestions FILE` has stored.

    Copies of the source, repetitions, other languages, a few letters again and again, cut and unrelated text are
    held back, with the reasons: one makes a correction doubtful, several reject it. With --run a correction must be
    likelier after its source than after others; without, it must resemble the output. Of several accepted
    corrections of a source, the one with most senders is taken, and of those the newest.
    """
    announce_loading()
    from manyheads.improve.corrections import review_corrections

    result = review_corrections(file, run, device=device)
    contents = result.accepted_rows(), result.other_rows(), [result.page()]
    for path, lines in zip((output, rejected, page), contents, strict=True):
        if path is not None:
            with open_output(path) as stream:
                stream.writelines(f"{line}\n".encode("utf-8", "replace") for line in lines)
    following = [f"Next: {command_line('manyheads', 'tune', run or 'RUN', output)}"] if contents[0] else []
    echo(result.to_json(), [*result.lines(), *following], as_json=as_json)


VERBS = {"corrections": corrections}
