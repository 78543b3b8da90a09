"""`classify`: one output line for each input line, in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.options import PATH, device_option, json_option, output_option
from manyheads.cli.streams import (
    batches,
    check_output,
    input_lines,
    lines_at_once,
    numbers_text,
    open_output,
    write_results,
)
from manyheads.cli.verbs import settings_of, verb

if TYPE_CHECKING:
    from manyheads.tasks.classification import Classification, Classifier

__all__ = ["VERBS"]


@verb("classify")
@click.argument("run", type=PATH)
@click.argument("file", type=PATH, default="-")
@device_option
@output_option("labels")
@json_option
@click.pass_context
def classify(
    context: click.Context, run: Path, file: Path, device: str, output: Path | None, as_json: bool
) -> None:
    """Classify each line of FILE or standard input: print its label, a tab and the probability of the label.

    Empty lines stay empty. If the classifier takes two texts, separate them by a tab. --json prints the
    probabilities of all labels.
    """
    check_output(output, file)

    from manyheads.tasks.classification import Classifier

    quiet = settings_of(context).quiet
    size = lines_at_once(file, "label", quiet=quiet)
    classifier = Classifier.load(run, device=device)
    if classifier.warning and not quiet:
        click.echo(f"warning: {classifier.warning}", err=True)
    lines = input_lines(file, classifier.config.data.invalid_utf8)
    truncated: list[int] = []
    results = classifications(classifier, lines, size, truncated)
    with open_output(output) as sink:
        write_results(results, sink, output_lines, as_json=as_json)
    if truncated and not quiet:
        click.echo(
            f"warning: longer than {classifier.longest:,} tokens, and only their beginning was read: "
            f"line {numbers_text(truncated)}",
            err=True,
        )


def classifications(
    classifier: Classifier, lines: Iterator[str], size: int, truncated: list[int]
) -> Iterator[Classification]:
    """Yield the classification of each line in order, classifying `size` lines in one call.

    The numbers of truncated lines, from 1, are added to `truncated`.
    """
    number = 0
    for batch in batches(lines, size):
        for result in classifier.classify(batch):
            number += 1
            if result.truncated:
                truncated.append(number)
            yield result


def output_lines(index: int, result: Classification) -> list[str]:
    """Return the output line of an input line."""
    return [f"{result.label}\t{result.probability:.4f}" if result.label else ""]


VERBS = {"classify": classify}
