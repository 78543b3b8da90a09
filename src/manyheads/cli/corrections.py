"""`corrections review`: sort the corrections that a server has stored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from bitext.shell import command_line
from manyheads.cli.options import OUTPUT_FILE, PATH, AsJson, Device, option, pass_options
from manyheads.cli.streams import open_output
from manyheads.cli.verbs import announce_loading, echo, verb, verb_group


@verb_group("corrections")
def corrections() -> None:
    """Review corrections of translations that a server has stored, so that a model can learn from them."""


@dataclass(frozen=True)
class _ReviewOptions:
    file: Annotated[Path, click.argument("file", type=PATH)]
    run: Annotated[Path | None, option("--run", type=PATH, metavar="RUN")]
    output: Annotated[Path, option("-o", "--output", type=OUTPUT_FILE, required=True, metavar="FILE")]
    rejected: Annotated[Path | None, option("--rejected", type=OUTPUT_FILE, metavar="FILE")]
    page: Annotated[Path | None, option("--html", "page", type=OUTPUT_FILE, metavar="FILE")]
    device: Device
    as_json: AsJson


@verb("corrections review", corrections)
@pass_options(_ReviewOptions)
def review(options: _ReviewOptions) -> None:
    """Sort the suggestions of FILE, which `manyheads serve --suggestions FILE` has stored.

    Copies of the source, repetitions, other languages, a few letters again and again, cut and unrelated text are
    held back, with the reasons: one makes a correction doubtful, several reject it. With --run a correction must be
    likelier after its source than after others; without, it must resemble the output. Of several accepted
    corrections of a source, the one with most senders is taken, and of those the newest.
    """
    announce_loading()
    from manyheads.improve.corrections import review_corrections

    result = review_corrections(options.file, options.run, device=options.device)
    contents = result.accepted_rows(), result.other_rows(), [result.page()]
    for path, lines in zip((options.output, options.rejected, options.page), contents, strict=True):
        if path is not None:
            with open_output(path) as stream:
                stream.writelines(f"{line}\n".encode("utf-8", "replace") for line in lines)
    tune = command_line("manyheads", "tune", options.run or "RUN", options.output)
    following = [f"Next: {tune}"] if contents[0] else []
    echo(result.to_json(), [*result.lines(), *following], as_json=options.as_json)


VERBS = {"corrections": corrections}
