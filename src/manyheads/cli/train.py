"""`_train`, `train average` and `demo`: the verbs that write a run directory."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path

import click

from bitext.shell import command_line
from manyheads.cli.options import (
    COUNT,
    config_argument,
    device_option,
    json_option,
    option,
    run_argument,
    run_output_option,
    set_option,
    training_device_option,
    with_device,
)
from manyheads.cli.streams import progress_display
from manyheads.cli.verbs import (
    announce_loading,
    echo,
    in_chosen_language,
    program_name,
    translate_card,
    verb,
    verb_with_subverbs,
)

_RUNS = Path("runs")


@verb_with_subverbs("train")
@config_argument
@set_option
@run_output_option("runs/ and the name of CONFIG")
@training_device_option
@option("--force", is_flag=True, help="Resume even if the settings or the text have changed since the run began.")
@json_option
def _train(
    config: str, overrides: tuple[str, ...], output: Path | None, device: str | None, force: bool, as_json: bool
) -> None:
    """Train a model; run the same command again to resume.

    CONFIG is a TOML file or the name of a recipe. Ctrl-C saves a checkpoint and stops.
    """
    from manyheads.config.load import load_config, resolve_recipe

    start_time = time.perf_counter()
    path = resolve_recipe(config)
    settings = load_config(path, with_device(overrides, device))

    # imports torch: only once the configuration is valid
    announce_loading()
    from manyheads.cli.progress_line import duration
    from manyheads.notes import verdict_lines
    from manyheads.runs.outcome import training_verdict
    from manyheads.runs.train import train as train_run
    from manyheads.training.distributed import is_main_process

    unit = "texts" if settings.spec.reads_labels else "tokens"
    with progress_display(unit) as progress:
        summary = train_run(
            settings, output or _RUNS / path.stem, listener=progress, force=force, start_time=start_time
        )
    if not is_main_process():
        return
    translate_card(summary.out)
    early = ", stopped early" if summary.stopped_early else ""
    evaluate = command_line(
        "manyheads", "evaluate", summary.out, *(() if settings.data.test else ("--split", "valid"))
    )
    limit = settings.training.max_minutes
    of_limit = (
        f" of updates; {duration(summary.used)} of {duration(60 * limit)} with preparation and validation"
        if summary.used is not None and limit is not None
        else ""
    )
    verdict = training_verdict(summary.out)
    lines = [
        f"{summary.out}: {summary.step:,} steps in {duration(summary.seconds)}{of_limit}{early}; "
        f"best validation {summary.metric} {summary.best:.3f} at step {summary.best_step:,}",
        *verdict_lines(verdict),
        f"Next: {evaluate}",
    ]
    document = {**asdict(summary), "out": str(summary.out), "verdict": ". ".join(verdict)}
    echo(document, lines, as_json=as_json)


@verb("train average", _train)
@run_argument
@option(
    "--last",
    type=COUNT,
    show_default="all checkpoints of the run",
    help="Number of checkpoints to average, counted from the last one.",
)
@run_output_option("RUN-averaged")
@json_option
def average(run: Path, last: int | None, output: Path | None, as_json: bool) -> None:
    """Average the weights of the last checkpoints of RUN into a new run."""
    from manyheads.notes import verdict_lines
    from manyheads.runs.outcome import judge_average
    from manyheads.runs.resume import average as average_run

    written = average_run(run, last=last, out=output)
    verdict = judge_average(written, run)
    following = command_line("manyheads", "evaluate", written, "--against", run)
    lines = [f"{written}: averaged. Next: {following}", *verdict_lines([verdict])]
    echo({"run": str(written), "verdict": verdict}, lines, as_json=as_json)


@verb("demo")
@option(
    "--pair",
    type=click.Choice(["de-en", "ko-en"]),
    default="de-en",
    help="Source and target language: German-English or Korean-English.",
)
@run_output_option("runs/demo-PAIR")
@device_option
def demo(pair: str, output: Path | None, device: str) -> None:
    """Train a small translator on built-in text in about a minute, score it, and translate with it."""
    announce_loading()
    from manyheads.runs.demo import demo as run_demo

    output = output or _RUNS / f"demo-{pair}"
    with progress_display() as progress:
        run_demo(
            pair,
            output,
            device=device,
            listener=progress,
            write=lambda line: progress.write(in_chosen_language(line)),
            program=program_name(),
        )
    translate_card(output)


VERBS = {"train": _train, "demo": demo}
