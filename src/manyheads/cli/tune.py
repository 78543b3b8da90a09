"""`tune`: a better translator from corrections, with a proof."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from manyheads.cli.options import OUTPUT, PATH, AsJson, Device, language_option, option, pass_options
from manyheads.cli.verbs import announce_loading, current_settings, echo, translate_card, verb


@dataclass(frozen=True)
class _TuneOptions:
    model: Annotated[str, click.argument("model", type=click.Path())]
    corrections: Annotated[Path, click.argument("corrections", type=PATH)]
    output: Annotated[Path, option("-o", "--output", type=OUTPUT, metavar="RUN", required=True)]
    general: Annotated[
        tuple[Path, ...],
        option(
            "--general", type=PATH, metavar="FILE", multiple=True, show_default="the text that RUN was trained on"
        ),
    ]
    no_replay: Annotated[bool, option("--no-replay", is_flag=True)]
    accept: Annotated[bool, option("--accept", is_flag=True)]
    source: Annotated[str | None, language_option("--source", show_default="as the model states")]
    target: Annotated[str | None, language_option("--target", show_default="as the model states")]
    device: Device
    as_json: AsJson


@verb("tune")
@pass_options(_TuneOptions)
def tune(options: _TuneOptions) -> None:
    """Tune a translator on corrected translations, and use the result only if a proof shows no harm.

    MODEL is a run directory, or a model that `import` reads, such as an Argos package. CORRECTIONS holds sources
    and their corrected translations: a .tsv file, or any form that `data convert` reads. The proof compares the
    model before and after, on held-out corrections, on general text, and on made-up lines. If general text loses
    more than 0.3 BLEU, or significantly, the model stays as it is, the exit code is 1, and the tuned model is saved
    in RUN.tuning. Run the same command again to resume.
    """
    announce_loading()
    from manyheads.cli.progress import open_progress
    from manyheads.improve.tune import tune as tune_model

    with open_progress(current_settings()) as progress:
        result = tune_model(
            options.model,
            options.corrections,
            options.output,
            general=options.general,
            replay=not options.no_replay,
            accept=options.accept,
            source=options.source,
            target=options.target,
            device=options.device,
            listener=progress,
        )
    if not result.exit_code:
        translate_card(options.output)
    echo(result.to_json(), result.lines(), as_json=options.as_json)
    raise click.exceptions.Exit(result.exit_code)


VERBS = {"tune": tune}
