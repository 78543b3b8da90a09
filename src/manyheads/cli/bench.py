"""`bench`: how fast this machine is at it."""

from __future__ import annotations

from pathlib import Path

import click

from manyheads.cli.verbs import Verb, VerbGroup, echo_result, json_option, set_option, settings_of

__all__ = ["VERBS"]


@click.group(
    cls=VerbGroup,
    epilog="""\b
Examples:
  manyheads bench train multi30k-de-en --set data.root=data/multi30k
  manyheads bench decode runs/mine""",
)
def bench() -> None:
    """Measure how fast this machine trains and translates."""


@bench.command(
    cls=Verb,
    epilog="""\b
Examples:
  manyheads bench train
  manyheads bench train multi30k-de-en --set data.root=data/multi30k --set training.precision=fp32 --json""",
)
@click.argument("config", default="demo-de-en")
@set_option()
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True, help="How often to measure.")
@click.option("--updates", type=click.IntRange(min=1), default=10, show_default=True, help="Updates a round.")
@json_option()
@click.pass_context
def train(
    context: click.Context, config: str, overrides: tuple[str, ...], rounds: int, updates: int, as_json: bool
) -> None:
    """Train for a moment, and say how fast it was, and how fast it could be.

    CONFIG is a TOML file, or the name of a recipe; the default needs no text. Nothing is kept.
    """
    from manyheads.config.load import load_config, resolve_recipe

    settings = load_config(resolve_recipe(config), overrides)

    from manyheads import runs  # after the configuration: its mistakes need not wait for torch
    from manyheads.cli.progress import open_progress

    with open_progress(settings_of(context)) as progress:
        found = runs.bench_train(settings, rounds=rounds, updates=updates, listener=progress)
    echo_result(found, as_json=as_json)


@bench.command(
    cls=Verb,
    epilog="""\b
Examples:
  manyheads bench decode runs/mine
  manyheads bench decode runs/mine --precision bf16 --beam 1 --batch 1 --json""",
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--precision",
    type=click.Choice(["fp32", "bf16", "int8"]),
    default="fp32",
    show_default=True,
    help="Of the model.",
)
@click.option("--device", default="auto", metavar="NAME", help="cpu, cuda, cuda:1; auto takes a GPU.")
@click.option("--compile", is_flag=True, help="Compile the steps of up to 16 lines a call, on a GPU.")
@click.option(
    "--beam", "beams", type=click.IntRange(min=1), multiple=True, help="1 and the run's own unless given."
)
@click.option(
    "--batch",
    "batches",
    type=click.IntRange(min=0),
    multiple=True,
    default=(1, 64, 0),
    show_default=True,
    help="Sentences a call; 0 is all.",
)
@click.option("--sentences", type=click.IntRange(min=1), default=500, show_default=True, help="Of the test text.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True, help="How often to measure.")
@json_option()
@click.pass_context
def decode(
    context: click.Context,
    run: Path,
    precision: str,
    device: str,
    compile: bool,
    beams: tuple[int, ...],
    batches: tuple[int, ...],
    sentences: int,
    rounds: int,
    as_json: bool,
) -> None:
    """Translate the test text of RUN in some ways in turn, and say how fast that was."""
    from manyheads import runs
    from manyheads.cli.progress import open_progress

    with open_progress(settings_of(context)) as progress:
        found = runs.bench_decode(
            run,
            precision=precision,
            device=device,
            compile=compile,
            beams=beams,
            batches=batches,
            sentences=sentences,
            rounds=rounds,
            listener=progress,
        )
    echo_result(found, as_json=as_json)


VERBS = {"bench": bench}
