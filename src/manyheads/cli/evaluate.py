"""`evaluate`: scores of one run, or of two side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.verbs import (
    Verb,
    echo_result,
    json_option,
    opened_output,
    output_option,
    set_option,
    settings_of,
    text_line,
)

if TYPE_CHECKING:
    from manyheads.data.locate import Split

__all__ = ["VERBS"]

FILE = click.Path(path_type=Path)


@click.command(
    cls=Verb,
    epilog="""\b
Examples:
  manyheads evaluate runs/multi30k-en-de-tiny
  manyheads evaluate runs/mine --source new.en --reference new.de --json
  manyheads evaluate runs/mine --against runs/other""",
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--split", type=click.Choice(["train", "valid", "test"]), default="test", show_default=True)
@click.option(
    "--source", type=FILE, metavar="FILE", help="Text to translate, classify or guess, instead of a split."
)
@click.option("--reference", type=FILE, metavar="FILE", help="Its translation by people or labels, line by line.")
@click.option(
    "--against", type=click.Path(path_type=Path), metavar="RUN", help="A run to compare with: paired bootstrap."
)
@set_option()
@output_option("translations or labels")
@json_option()
@click.pass_context
def evaluate(
    context: click.Context,
    run: Path,
    split: Split,
    source: Path | None,
    reference: Path | None,
    against: Path | None,
    overrides: tuple[str, ...],
    output: Path | None,
    as_json: bool,
) -> None:
    """Score a run on its test set, or on files; or test the difference between two runs."""
    if source is None and reference is not None:
        raise click.UsageError("--source and --reference belong together.", context)
    if against is not None and output is not None:
        raise click.UsageError("--output does not go with --against.", context)

    from manyheads import runs
    from manyheads.cli.progress import open_progress

    result: runs.Evaluation | runs.ClassEvaluation | runs.TextEvaluation | runs.MaskedEvaluation | runs.Comparison
    with open_progress(settings_of(context)) as progress:
        if against is None:
            result = runs.evaluate(
                run, split=split, source=source, reference=reference, overrides=overrides, listener=progress
            )
        else:
            result = runs.compare(
                run,
                against,
                split=split,
                source=source,
                reference=reference,
                overrides=overrides,
                listener=progress,
            )
    if output is not None and isinstance(result, runs.TextEvaluation | runs.MaskedEvaluation):
        raise click.UsageError("--output is for translations and labels; a language model is only asked.", context)
    if output is not None and isinstance(result, runs.Evaluation | runs.ClassEvaluation):
        with opened_output(output) as file:
            file.writelines(text_line(text) for text in result.outputs)
    echo_result(result, as_json=as_json)


VERBS = {"evaluate": evaluate}
