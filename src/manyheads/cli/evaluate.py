"""`evaluate`: the scores of one run, or the comparison of two runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bitext.lines import text_line
from manyheads.cli.options import (
    PATH,
    beam_option,
    device_option,
    direction_options,
    json_option,
    option,
    output_option,
    run_argument,
    run_option,
    set_option,
)
from manyheads.cli.streams import open_output, progress_display, refuse_document
from manyheads.cli.verbs import announce_loading, echo_result, verb

if TYPE_CHECKING:
    from bitext.file_names import Split


@verb("evaluate")
@run_argument
@option(
    "--split",
    type=click.Choice(["train", "valid", "test"]),
    default="test",
    help="Split of the run's data to evaluate on.",
)
@option("--source-file", type=PATH, metavar="FILE", help="File to evaluate on instead of a split.")
@option(
    "--reference-file",
    type=PATH,
    metavar="FILE",
    help="File of reference translations or labels, one line for each line of --source-file.",
)
@run_option(
    "--against", help="Another run, or an export for ctranslate2 or argos, to compare with by paired bootstrap."
)
@direction_options
@beam_option
@device_option
@set_option
@output_option("translations or labels")
@json_option
def evaluate(
    run: Path,
    split: Split,
    source_file: Path | None,
    reference_file: Path | None,
    against: Path | None,
    target: str,
    source: str,
    beam: int | None,
    device: str,
    overrides: tuple[str, ...],
    output: Path | None,
    as_json: bool,
) -> None:
    """Score RUN on its test set or on files, or test whether it differs significantly from another run.

    RUN is a run directory: translators are scored by BLEU, chrF and TER, classifiers by accuracy and F1, language
    models by perplexity.
    """
    if source_file is None and reference_file is not None:
        raise click.UsageError("--source-file and --reference-file belong together.")
    if source_file is not None and reference_file is not None:  # the text of a language model may have any form
        refuse_document(source_file, "copy it to FILE.txt")
        refuse_document(reference_file, "copy it to FILE.txt")
    if against is not None and output is not None:
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

    config = RunDirectory.existing(run).config() if output is not None else None
    if config is not None and config.data.pairs and not (source or target or source_file):
        raise click.UsageError("--output needs one direction of this run: --to LANGUAGE --from LANGUAGE.")
    if config is not None and not task_of(config).scores_outputs:
        raise click.UsageError(
            "--output is for translations and labels; the evaluation of a language model writes no text."
        )
    if beam is not None:
        overrides = (*overrides, f"search.beam_size={beam}")
    score: Callable[..., Scored | Comparison] = evaluate_run
    if against is not None:
        score = partial(compare_run, other=against)
    with progress_display() as progress:
        result = score(
            run,
            split=split,
            source=source_file,
            reference=reference_file,
            languages=(source, target),
            overrides=overrides,
            device=device,
            listener=progress,
        )
    if output is not None and isinstance(result, Evaluation | ClassEvaluation):
        with open_output(output) as file:
            file.writelines(text_line(text) for text in result.outputs)
    echo_result(result, as_json=as_json)


VERBS = {"evaluate": evaluate}
