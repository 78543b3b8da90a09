r"""`classify`: one output line for each input line, in the same order.

Only "\n" ends a line. Text is UTF-8 in every locale.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from manyheads.cli.verbs import (
    Verb,
    device_option,
    input_lines,
    json_option,
    open_output,
    output_option,
    settings_of,
    text_line,
)
from manyheads.errors import UsageError

if TYPE_CHECKING:
    from manyheads.tasks.classification import Classification, Classifier

__all__ = ["VERBS"]

BATCH_LINES = 512  # lines classified in one call; 1 when a person types at a terminal


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
@device_option()
@output_option("labels")
@json_option()
@click.pass_context
def classify(
    context: click.Context, run: Path, file: Path, device: str, output: Path | None, as_json: bool
) -> None:
    """Classify each line of FILE or standard input: print its label, a tab and the probability of the label.

    Empty lines stay empty. If the classifier takes two texts, separate them by a tab. --json prints the
    probabilities of all labels.
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
    results = classifications(classifier, lines, 1 if interactive else BATCH_LINES)
    with open_output(output) as sink:
        truncated = write_json(results, sink) if as_json else write_lines(results, sink)
    if truncated and not quiet:
        shown = ", ".join(map(str, truncated[:10])) + (", ..." if len(truncated) > 10 else "")
        limit = classifier.longest
        click.echo(
            f"warning: longer than {limit:,} tokens, and only their beginning was read: line {shown}", err=True
        )


def classifications(classifier: Classifier, lines: Iterator[str], size: int) -> Iterator[Classification]:
    """Yield the classification of each line in order, classifying `size` lines in one call."""
    while batch := list(islice(lines, size)):
        yield from classifier.classify(batch)


def write_lines(results: Iterator[Classification], stream: BinaryIO) -> list[int]:
    """Write one line for each classification; returns the numbers of the truncated lines, from 1."""
    truncated = []
    for number, result in enumerate(results, start=1):
        stream.write(text_line(f"{result.label}\t{result.probability:.4f}" if result.label else ""))
        stream.flush()
        if result.truncated:
            truncated.append(number)
    return truncated


def write_json(results: Iterator[Classification], stream: BinaryIO) -> list[int]:
    """Write one JSON list; returns the numbers of the truncated lines, from 1."""
    classified = list(results)
    document = json.dumps([result.to_json() for result in classified], ensure_ascii=False, indent=2)
    stream.write(document.encode() + b"\n")
    return [number for number, result in enumerate(classified, start=1) if result.truncated]


VERBS = {"classify": classify}
