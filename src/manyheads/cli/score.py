"""`score`: how likely a translator finds given translations, one line for each pair."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.options import PATH, device_option, direction_options, json_option, output_option, run_argument
from manyheads.cli.streams import (
    ConstraintFiles,
    WarnedLines,
    batches,
    collect_warnings,
    input_lines,
    line_progress,
    lines_at_once,
    open_output,
    print_warnings,
    refuse_document,
    write_results,
)
from manyheads.cli.translate import translate_batches
from manyheads.cli.verbs import verb

if TYPE_CHECKING:
    from manyheads.inference.translation.translator import Translation

_UNSCORED = "no score: a side is empty, or longer than the model"


def _score_lines(index: int, scored: Translation) -> list[str]:
    """Return the output line of a pair: its score, and after a tab its confidence; empty if it has no score."""
    numbers = [scored.score, scored.confidence] if scored.hypotheses else []
    return ["\t".join(f"{number:.4f}" for number in numbers if number is not None)]


def _warnings_of(scored: Translation) -> list[str]:
    return [] if scored.hypotheses else [_UNSCORED]


@verb("score")
@run_argument
@click.argument("source_file", type=PATH, metavar="SOURCE")
@click.argument("target_file", type=PATH, metavar="TARGET")
@direction_options
@device_option
@output_option("scores")
@json_option
def score(
    run: Path,
    source_file: Path,
    target_file: Path,
    target: str,
    source: str,
    device: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Score given translations: one output line for each line of SOURCE and TARGET.

    RUN is the run directory of a translator. A line of the output is the mean log-probability of a token of the
    target, in nats (nearer to 0 is likelier), and after a tab the confidence from 0 to 1, if the run has a model of
    it. Pairs with low scores are often no translations of each other. --json adds the score of each token, and
    warnings.
    """
    refuse_document(source_file, "copy it to FILE.txt")
    refuse_document(target_file, "copy it to FILE.txt")
    from manyheads.inference.translation.translator import Translator

    size = lines_at_once(source_file, "score")
    translator = Translator.load(run, device=device)
    if target or source or translator.config.data.pairs:
        translator = translator.to(source=source, target=target)
    targets, warned = ConstraintFiles(prefix=target_file), WarnedLines(list)
    with open_output(output) as sink, line_progress("scoring", source_file, sink) as advance:
        results = translate_batches(
            lambda sources, prefixes: translator.score(sources, prefixes),
            batches(input_lines(source_file), size),
            targets,
            advance,
        )
        write_results(collect_warnings(results, warned, _warnings_of), sink, _score_lines, as_json=as_json)
    print_warnings(warned)


VERBS = {"score": score}
