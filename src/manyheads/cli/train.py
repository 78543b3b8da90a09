"""`train`, `average` and `demo`: the verbs that write a run directory."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from manyheads.cli.verbs import Verb, echo_json, json_option, program_name, set_option, settings_of

__all__ = ["VERBS"]

RUNS = Path("runs")


@click.command(
    cls=Verb,
    epilog="""\b
Examples:
  manyheads train multi30k-en-de-tiny --set data.root=data/multi30k
  manyheads train my.toml --set training.max_minutes=20 --out runs/mine""",
)
@click.argument("config")
@set_option()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="The run directory.  [default: runs/ and the name of CONFIG]",
)
@click.option("--force", is_flag=True, help="Go on although settings or text of the run have changed.")
@json_option()
@click.pass_context
def train(
    context: click.Context, config: str, overrides: tuple[str, ...], out: Path | None, force: bool, as_json: bool
) -> None:
    """Train a model; the same line again resumes.

    CONFIG is a TOML file, or the name of a recipe. Ctrl-C saves.
    """
    from manyheads.config.load import load_config, resolve_recipe

    path = resolve_recipe(config)
    settings = load_config(path, overrides)

    from manyheads import runs  # after the configuration: its mistakes need not wait for torch
    from manyheads.cli.progress import duration, open_progress
    from manyheads.training.distributed import is_main_process

    unit = "texts" if settings.task == "classification" else "tokens"
    with open_progress(settings_of(context), unit) as progress:
        summary = runs.train(settings, out or RUNS / path.stem, listener=progress, force=force)
    if not is_main_process():
        return
    if as_json:
        echo_json({**asdict(summary), "out": str(summary.out)})
        return
    early = ", stopped early" if summary.stopped_early else ""
    click.echo(
        f"{summary.out}: {summary.step:,} steps in {duration(summary.seconds)}{early}; "
        f"best {summary.metric} {summary.best:.3f} at step {summary.best_step:,}"
    )
    split = "" if settings.data.test else " --split valid"
    click.echo(f"Next: manyheads evaluate {summary.out}{split}")


@click.command(
    cls=Verb,
    epilog="""\b
Example:
  manyheads average runs/multi30k-en-de-tiny --last 5 --out runs/multi30k-en-de-tiny-averaged""",
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="How many.  [default: all that are kept]")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="The new run directory.  [default: RUN-averaged]"
)
@json_option()
def average(run: Path, last: int | None, out: Path | None, as_json: bool) -> None:
    """Average the weights of the last checkpoints of a run into a new one."""
    from manyheads import runs

    written = runs.average(run, last=last, out=out)
    if as_json:
        echo_json({"run": str(written)})
    else:
        click.echo(f"{written}: averaged. Next: manyheads evaluate {written} --against {run}")


@click.command(
    cls=Verb,
    epilog="""\b
Example:
  manyheads demo --pair ko-en""",
)
@click.option(
    "--pair", type=click.Choice(["de-en", "ko-en"]), default="de-en", show_default=True, help="Languages."
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="RUN", help="The run directory.  [default: runs/demo-PAIR]"
)
@click.pass_context
def demo(context: click.Context, pair: str, out: Path | None) -> None:
    """Train a small translator on built-in text in about a minute, score it, and translate with it."""
    from manyheads import runs
    from manyheads.cli.progress import open_progress

    with open_progress(settings_of(context)) as progress:
        out = out or RUNS / f"demo-{pair}"
        runs.demo(pair, out, listener=progress, write=progress.write, program=program_name())


VERBS = {"train": train, "average": average, "demo": demo}
