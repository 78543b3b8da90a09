"""`classify`: one output line for each input line, in the same order."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.options import PATH, device_option, json_option, output_option, run_argument
from manyheads.cli.streams import (
    WarnedLines,
    batches,
    collect_warnings,
    input_lines,
    lines_at_once,
    open_output,
    print_warnings,
    refuse_document,
    write_results,
)
from manyheads.cli.verbs import verb, warn

if TYPE_CHECKING:
    from manyheads.inference.classifier import Classification


@verb("classify")
@run_argument
@click.argument("file", type=PATH, default="-")
@device_option
@output_option("labels")
@json_option
def classify(run: Path, file: Path, device: str, output: Path | None, as_json: bool) -> None:
    """Classify each line of FILE or standard input: print its label, a tab and the probability of the label.

    RUN is the run directory of a classifier. FILE may be compressed (.gz, .xz or .zst). Empty lines stay empty. If
    the classifier takes two texts, separate them by a tab. --json prints the probabilities of all labels.
    """
    refuse_document(file, f"manyheads classify RUN < {file.name}")

    from manyheads.inference.classifier import Classifier

    size = lines_at_once(file, "label")
    classifier = Classifier.load(run, device=device)
    if classifier.warning:
        warn(classifier.warning)
    lines = input_lines(file)
    results = chain.from_iterable(map(classifier.classify, batches(lines, size)))
    warned = WarnedLines(list)
    warning = f"longer than {classifier.longest:,} tokens, and only their beginning was read"
    checked = collect_warnings(results, warned, lambda result: [warning] if result.truncated else [])
    with open_output(output) as sink:
        write_results(checked, sink, _output_lines, as_json=as_json)
    print_warnings(warned)


def _output_lines(index: int, result: Classification) -> list[str]:
    return [f"{result.label}\t{result.probability:.4f}" if result.label else ""]


VERBS = {"classify": classify}
