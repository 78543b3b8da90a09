"""`_train`, `train average` and `demo`: the verbs that write a run directory."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import click

from bitext.shell import command_line
from manyheads.cli.options import (
    COUNT,
    AsJson,
    ConfigName,
    Device,
    Overrides,
    Run,
    option,
    pass_options,
    run_output_option,
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


@dataclass(frozen=True)
class _TrainOptions:
    config: ConfigName
    overrides: Overrides
    output: Annotated[Path | None, run_output_option("runs/ and the name of CONFIG")]
    device: Annotated[
        str | None, option("--device", metavar="NAME", show_default="training.device of the configuration")
    ]
    force: Annotated[bool, option("--force", is_flag=True)]
    as_json: AsJson


@verb_with_subverbs("train")
@pass_options(_TrainOptions)
def _train(options: _TrainOptions) -> None:
    """Train a model; run the same command again to resume.

    CONFIG is a TOML file or the name of a recipe. Ctrl-C saves a checkpoint and stops.
    """
    from manyheads.config.load import load_config, resolve_recipe

    start_time = time.perf_counter()
    path = resolve_recipe(options.config)
    config = load_config(path, with_device(options.overrides, options.device))

    # imports torch: only once the configuration is valid
    announce_loading()
    from manyheads.cli.progress_line import duration
    from manyheads.results import verdict_lines
    from manyheads.runs.outcome import training_verdict
    from manyheads.runs.train import train as train_run
    from manyheads.training.distributed import is_main_process

    unit = "texts" if config.spec.reads_labels else "tokens"
    with progress_display(unit) as progress:
        out = options.output or _RUNS / path.stem
        summary = train_run(config, out, listener=progress, force=options.force, start_time=start_time)
    if not is_main_process():
        return
    translate_card(summary.out)
    early = ", stopped early" if summary.stopped_early else ""
    evaluate = command_line(
        "manyheads", "evaluate", summary.out, *(() if config.data.test else ("--split", "valid"))
    )
    limit = config.training.max_minutes
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
    echo(document, lines, as_json=options.as_json)


@dataclass(frozen=True)
class _AverageOptions:
    run: Run
    last: Annotated[int | None, option("--last", type=COUNT, show_default="all checkpoints of the run")]
    output: Annotated[Path | None, run_output_option("RUN-averaged")]
    as_json: AsJson


@verb("train average", _train)
@pass_options(_AverageOptions)
def average(options: _AverageOptions) -> None:
    """Average the weights of the last checkpoints of RUN into a new run."""
    from manyheads.results import verdict_lines
    from manyheads.runs.outcome import judge_average
    from manyheads.runs.resume import average as average_run

    written = average_run(options.run, last=options.last, out=options.output)
    verdict = judge_average(written, options.run)
    following = command_line("manyheads", "evaluate", written, "--against", options.run)
    lines = [f"{written}: averaged. Next: {following}", *verdict_lines([verdict])]
    echo({"run": str(written), "verdict": verdict}, lines, as_json=options.as_json)


@dataclass(frozen=True)
class _DemoOptions:
    pair: Annotated[str, option("--pair", type=click.Choice(["de-en", "ko-en"]), default="de-en")]
    output: Annotated[Path | None, run_output_option("runs/demo-PAIR")]
    device: Device


@verb("demo")
@pass_options(_DemoOptions)
def demo(options: _DemoOptions) -> None:
    """Train a small translator on built-in text in about a minute, score it, and translate with it."""
    announce_loading()
    from manyheads.runs.demo import demo as run_demo

    output = options.output or _RUNS / f"demo-{options.pair}"
    with progress_display() as progress:
        run_demo(
            options.pair,
            output,
            device=options.device,
            listener=progress,
            write=lambda line: progress.write(in_chosen_language(line)),
            program=program_name(),
        )
    translate_card(output)


VERBS = {"train": _train, "demo": demo}
