"""`evaluate`: the scores of one run, or the comparison of two runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import click

from bitext.file_names import Split
from bitext.lines import text_line
from manyheads.cli.options import (
    PATH,
    AsJson,
    Device,
    Languages,
    Output,
    Overrides,
    Run,
    beam_option,
    option,
    pass_options,
)
from manyheads.cli.streams import open_output, progress_display, refuse_document
from manyheads.cli.verbs import announce_loading, echo, verb


@dataclass(frozen=True)
class _EvaluateOptions:
    run: Run
    split: Annotated[Split, option("--split", type=click.Choice(["train", "valid", "test"]), default="test")]
    source_file: Annotated[Path | None, option("--source-file", type=PATH, metavar="FILE")]
    reference_file: Annotated[Path | None, option("--reference-file", type=PATH, metavar="FILE")]
    against: Annotated[Path | None, option("--against", type=PATH, metavar="RUN")]
    languages: Languages
    beam_size: Annotated[int | None, beam_option]
    device: Device
    overrides: Overrides
    output: Output
    as_json: AsJson


@verb("evaluate")
@pass_options(_EvaluateOptions)
def evaluate(options: _EvaluateOptions) -> None:
    """Score RUN on its test set or on files, or test whether it differs significantly from another run.

    RUN is a run directory: translators are scored by BLEU, chrF and TER, classifiers by accuracy and F1, language
    models by perplexity.
    """
    source_file, reference_file = options.source_file, options.reference_file
    if source_file is None and reference_file is not None:
        raise click.UsageError("--source-file and --reference-file belong together.")
    if source_file is not None and reference_file is not None:  # the text of a language model may have any form
        refuse_document(source_file, "copy it to FILE.txt")
        refuse_document(reference_file, "copy it to FILE.txt")
    if options.against is not None and options.output is not None:
        raise click.UsageError("--output does not go with --against.")

    announce_loading()
    from manyheads.checkpoint import RunDirectory
    from manyheads.runs.compare import Comparison
    from manyheads.runs.compare import compare as compare_run
    from manyheads.runs.evaluate import evaluate as evaluate_run
    from manyheads.tasks.classification.scoring import ClassEvaluation
    from manyheads.tasks.translation.scoring import Evaluation
    from manyheads.training.registry import task_of
    from manyheads.training.task import Scored

    config = RunDirectory.existing(options.run).config() if options.output is not None else None
    if config is not None and config.multilingual and not (any(options.languages) or source_file):
        raise click.UsageError("--output needs one direction of this run: --to LANGUAGE --from LANGUAGE.")
    if config is not None and not task_of(config).scores_outputs:
        raise click.UsageError(
            "--output is for translations and labels; the evaluation of a language model writes no text."
        )
    beam = () if options.beam_size is None else (f"search.beam_size={options.beam_size}",)
    score: Callable[..., Scored | Comparison] = evaluate_run
    if options.against is not None:
        score = partial(compare_run, other=options.against)
    with progress_display() as progress:
        result = score(
            options.run,
            split=options.split,
            source=source_file,
            reference=reference_file,
            languages=options.languages,
            overrides=(*options.overrides, *beam),
            device=options.device,
            listener=progress,
        )
    if options.output is not None and isinstance(result, Evaluation | ClassEvaluation):
        with open_output(options.output) as file:
            file.writelines(text_line(text) for text in result.outputs)
    echo(result.to_json(), result.lines(), as_json=options.as_json)


VERBS = {"evaluate": evaluate}
