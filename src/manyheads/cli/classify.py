r"""`classify`: lines in, labels out, in the same order and of the same number.

A line ends at "\n" and nowhere else. Text is UTF-8 whatever the locale says.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from manyheads.cli.verbs import Verb, input_lines, json_option, opened_output, output_option, settings_of, text_line
from manyheads.errors import UsageError

if TYPE_CHECKING:
    from manyheads.tasks.classification import Classification, Classifier

__all__ = ["VERBS"]

LINES_AT_ONCE = 512  # classified together; from a terminal each line is answered at once


@click.command(
    cls=Verb,
    epilog="""\b
Examples:
  echo "a gripping film" | manyheads classify runs/sst2-scratch
  manyheads classify runs/mine reviews.txt --output labels.tsv
  manyheads classify runs/mine --json < reviews.txt""",
)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path), default="-")
@click.option("--device", default="auto", metavar="NAME", help="cpu, cuda, cuda:1; auto takes a GPU.")
@output_option("labels")
@json_option()
@click.pass_context
def classify(
    context: click.Context, run: Path, file: Path, device: str, output: Path | None, as_json: bool
) -> None:
    """Label FILE, or standard input: for each line its label, a tab and the probability; empty lines stay empty.

    Where examples have two texts, a tab stands between them. --json holds the probabilities of all labels.
    """
    if output is not None and output.exists() and file.exists() and output.samefile(file):
        raise UsageError(f"{output} is the input; write to another file.")

    from manyheads.tasks.classification import Classifier

    interactive = str(file) == "-" and sys.stdin.isatty()
    quiet = settings_of(context).quiet
    if interactive and not quiet:
        click.echo("Type a line to label it; Ctrl-D ends.", err=True)
    classifier = Classifier.load(run, device=device)
    if classifier.warning and not quiet:
        click.echo(f"warning: {classifier.warning}", err=True)
    lines = input_lines(file, classifier.config.data.invalid_utf8)
    found = classifications(classifier, lines, 1 if interactive else LINES_AT_ONCE)
    with opened_output(output) as sink:
        cut = write_json(found, sink) if as_json else write_lines(found, sink)
    if cut and not quiet:
        shown = ", ".join(map(str, cut[:10])) + (", ..." if len(cut) > 10 else "")
        limit = classifier.longest
        click.echo(
            f"warning: longer than {limit:,} tokens, and only their beginning was read: line {shown}", err=True
        )


def classifications(classifier: Classifier, lines: Iterator[str], size: int) -> Iterator[Classification]:
    """What each line is, in order, `size` of them at once."""
    while batch := list(islice(lines, size)):
        yield from classifier.classify(batch)


def write_lines(found: Iterator[Classification], stream: BinaryIO) -> list[int]:
    """Write a line for each; returns the numbers of those that were cut, from 1."""
    cut = []
    for number, one in enumerate(found, start=1):
        stream.write(text_line(f"{one.label}\t{one.probability:.4f}" if one.label else ""))
        stream.flush()
        if one.truncated:
            cut.append(number)
    return cut


def write_json(found: Iterator[Classification], stream: BinaryIO) -> list[int]:
    """Write one JSON list; returns the numbers of those that were cut, from 1."""
    all_of_them = list(found)
    document = json.dumps([one.to_json() for one in all_of_them], ensure_ascii=False, indent=2)
    stream.write(document.encode() + b"\n")
    return [number for number, one in enumerate(all_of_them, start=1) if one.truncated]


VERBS = {"classify": classify}
