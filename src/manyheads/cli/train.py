"""`train`, `average` and `demo`: the verbs that write a run directory."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from manyheads.cli.options import COUNT, PATH, json_option, option, set_option
from manyheads.cli.verbs import current_settings, echo, program_name, verb

__all__ = ["VERBS"]

RUNS = Path("runs")


@verb("train")
@click.argument("config")
@set_option
@option(
    "--out",
    type=PATH,
    metavar="RUN",
    show_default="runs/ and the name of CONFIG",
    help="Run directory to write or resume.",
)
@option("--force", is_flag=True, help="Resume even if the settings or the text have changed since the run began.")
@json_option
def train(config: str, overrides: tuple[str, ...], out: Path | None, force: bool, as_json: bool) -> None:
    """Train a model; run the same command again to resume.

    CONFIG is a TOML file or the name of a recipe. Ctrl-C saves a checkpoint and stops.
    """
    from manyheads.config.load import load_config, resolve_recipe

    path = resolve_recipe(config)
    settings = load_config(path, overrides)

    # imports torch: only once the configuration is valid
    from manyheads.cli.progress import duration, open_progress
    from manyheads.runs.train import train as train_run
    from manyheads.training.distributed import is_main_process

    unit = "texts" if settings.task == "classification" else "tokens"
    with open_progress(current_settings(), unit) as progress:
        summary = train_run(settings, out or RUNS / path.stem, listener=progress, force=force)
    if not is_main_process():
        return
    early = ", stopped early" if summary.stopped_early else ""
    split = "" if settings.data.test else " --split valid"
    lines = [
        f"{summary.out}: {summary.step:,} steps in {duration(summary.seconds)}{early}; "
        f"best {summary.metric} {summary.best:.3f} at step {summary.best_step:,}",
        f"Next: manyheads evaluate {summary.out}{split}",
    ]
    echo({**asdict(summary), "out": str(summary.out)}, lines, as_json=as_json)


@verb("average")
@click.argument("run", type=PATH)
@option(
    "--last",
    type=COUNT,
    show_default="all checkpoints of the run",
    help="Number of checkpoints to average, counted from the last one.",
)
@option("--out", type=PATH, metavar="DIR", show_default="RUN-averaged", help="New run directory to write.")
@json_option
def average(run: Path, last: int | None, out: Path | None, as_json: bool) -> None:
    """Average the weights of the last checkpoints of RUN into a new run."""
    from manyheads.runs.resume import average as average_run

    written = average_run(run, last=last, out=out)
    line = f"{written}: averaged. Next: manyheads evaluate {written} --against {run}"
    echo({"run": str(written)}, [line], as_json=as_json)


@verb("demo")
@option(
    "--pair",
    type=click.Choice(["de-en", "ko-en"]),
    default="de-en",
    help="Source and target language: German-English or Korean-English.",
)
@option("--out", type=PATH, metavar="RUN", show_default="runs/demo-PAIR", help="Run directory to write.")
def demo(pair: str, out: Path | None) -> None:
    """Train a small translator on built-in text in about a minute, score it, and translate with it."""
    from manyheads.cli.progress import open_progress
    from manyheads.runs.demo import demo as run_demo

    with open_progress(current_settings()) as progress:
        out = out or RUNS / f"demo-{pair}"
        run_demo(pair, out, listener=progress, write=progress.write, program=program_name())


VERBS = {"train": train, "average": average, "demo": demo}
