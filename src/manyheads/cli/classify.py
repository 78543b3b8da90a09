"""`classify`: one output line for each input line, in the same order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from manyheads.cli.options import AsJson, Device, InputFile, Output, Run, pass_options
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


@dataclass(frozen=True)
class _ClassifyOptions:
    run: Run
    file: InputFile
    device: Device
    output: Output
    as_json: AsJson


@verb("classify")
@pass_options(_ClassifyOptions)
def classify(options: _ClassifyOptions) -> None:
    """Classify each line of FILE or standard input: print its label, a tab and the probability of the label.

    RUN is the run directory of a classifier. FILE may be compressed (.gz, .xz or .zst). Empty lines stay empty. If
    the classifier takes two texts, separate them by a tab. --json prints the probabilities of all labels.
    """
    refuse_document(options.file, f"manyheads classify RUN < {options.file.name}")

    from manyheads.inference.classifier import Classifier

    size = lines_at_once(options.file, "label")
    classifier = Classifier.load(options.run, device=options.device)
    if classifier.warning:
        warn(classifier.warning)
    lines = input_lines(options.file)
    results = chain.from_iterable(map(classifier.classify, batches(lines, size)))
    warned = WarnedLines(list)
    warning = f"longer than {classifier.longest:,} tokens, and only their beginning was read"
    checked = collect_warnings(results, warned, lambda result: [warning] if result.truncated else [])
    with open_output(options.output) as sink:
        write_results(checked, sink, _output_lines, as_json=options.as_json)
    print_warnings(warned)


def _output_lines(index: int, result: Classification) -> list[str]:
    return [f"{result.label}\t{result.probability:.4f}" if result.label else ""]


VERBS = {"classify": classify}
