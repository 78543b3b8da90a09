"""`score`: how likely a translator finds given translations, one line for each pair."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from manyheads.cli.options import PATH, AsJson, Device, Languages, Output, Run, pass_options
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


@dataclass(frozen=True)
class _ScoreOptions:
    run: Run
    source_file: Annotated[Path, click.argument("source_file", type=PATH, metavar="SOURCE")]
    target_file: Annotated[Path, click.argument("target_file", type=PATH, metavar="TARGET")]
    languages: Languages
    device: Device
    output: Output
    as_json: AsJson


@verb("score")
@pass_options(_ScoreOptions)
def score(options: _ScoreOptions) -> None:
    """Score given translations: one output line for each line of SOURCE and TARGET.

    RUN is the run directory of a translator. A line of the output is the mean log-probability of a token of the
    target, in nats (nearer to 0 is likelier), and after a tab the confidence from 0 to 1, if the run has a model of
    it. Pairs with low scores are often no translations of each other. --json adds the score of each token, and
    warnings.
    """
    refuse_document(options.source_file, "copy it to FILE.txt")
    refuse_document(options.target_file, "copy it to FILE.txt")
    from manyheads.inference.translation.translator import Translator

    size = lines_at_once(options.source_file, "score")
    translator = Translator.load(options.run, device=options.device)
    source, target = options.languages
    translator = translator.to(source=source, target=target)
    targets, warned = ConstraintFiles(prefix=options.target_file), WarnedLines(list)
    with open_output(options.output) as sink, line_progress("scoring", options.source_file, sink) as advance:
        results = translate_batches(
            lambda sources, prefixes: translator.score(sources, prefixes),
            batches(input_lines(options.source_file), size),
            targets,
            advance,
        )
        checked = collect_warnings(results, warned, _warnings_of)
        write_results(checked, sink, _score_lines, as_json=options.as_json)
    print_warnings(warned)


VERBS = {"score": score}
