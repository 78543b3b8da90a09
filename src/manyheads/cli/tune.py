"""`tune`: a better translator from corrections, with a proof."""

from __future__ import annotations

from pathlib import Path

import click

from manyheads.cli.options import OUTPUT, PATH, device_option, json_option, option
from manyheads.cli.verbs import announce_loading, current_settings, echo_result, translate_card, verb


@verb("tune")
@click.argument("model", type=click.Path())
@click.argument("corrections", type=PATH)
@option("-o", "--output", type=OUTPUT, metavar="RUN", required=True, help="Run directory to write.")
@option(
    "--general",
    type=PATH,
    metavar="FILE",
    multiple=True,
    show_default="the text that RUN was trained on",
    help="General text, so that the model does not forget it: a file of pairs, a file of sources, which the model "
    "translates itself, or two files of lines (give the option twice).",
)
@option("--no-replay", is_flag=True, help="Train on the corrections alone.")
@option("--accept", is_flag=True, help="Use the tuned model whatever the proof says.")
@option("--source", metavar="LANGUAGE", show_default="as the model states", help="Source language, such as de.")
@option("--target", metavar="LANGUAGE", show_default="as the model states", help="Target language, such as en.")
@device_option
@json_option
def tune(
    model: str,
    corrections: Path,
    output: Path,
    general: tuple[Path, ...],
    no_replay: bool,
    accept: bool,
    source: str | None,
    target: str | None,
    device: str,
    as_json: bool,
) -> None:
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
            model,
            corrections,
            output,
            general=general,
            replay=not no_replay,
            accept=accept,
            source=source,
            target=target,
            device=device,
            listener=progress,
        )
    if not result.exit_code:
        translate_card(output)
    echo_result(result, as_json=as_json)
    raise click.exceptions.Exit(result.exit_code)


VERBS = {"tune": tune}
