"""`bench`: how fast this machine is at it."""

from __future__ import annotations

import click

from manyheads.cli.verbs import Verb, VerbGroup, echo_result, json_option, set_option, settings_of

__all__ = ["VERBS"]


@click.group(
    cls=VerbGroup,
    epilog="""\b
Example:
  manyheads bench train multi30k-de-en --set data.root=data/multi30k""",
)
def bench() -> None:
    """Measure how fast this machine trains."""


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


VERBS = {"bench": bench}
