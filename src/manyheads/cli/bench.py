"""`bench`: the speed of training and translating on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from manyheads.cli.options import (
    COUNT,
    NOT_NEGATIVE,
    complete_recipes,
    device_option,
    json_option,
    option,
    run_argument,
    set_option,
    training_device_option,
    with_device,
)
from manyheads.cli.streams import progress_display
from manyheads.cli.verbs import echo_result, verb, verb_group


@verb_group("bench")
def bench() -> None:
    """Measure how fast this machine trains and translates."""


@verb("bench train", bench)
@click.argument("config", default="demo-de-en", shell_complete=complete_recipes)
@set_option
@training_device_option
@option("--rounds", type=COUNT, default=5, help="Number of measurements.")
@option("--updates", type=COUNT, default=10, help="Number of optimiser updates per measurement.")
@json_option
def train(
    config: str, overrides: tuple[str, ...], device: str | None, rounds: int, updates: int, as_json: bool
) -> None:
    """Measure the speed of training, also as a share of the fastest matrix product on this machine.

    CONFIG is a TOML file or the name of a recipe; the default, demo-de-en, uses built-in text. No file is written.
    """
    from manyheads.config.load import load_config, resolve_recipe

    settings = load_config(resolve_recipe(config), with_device(overrides, device))

    # imports torch: only once the configuration is valid
    from manyheads.runs.bench_train import bench_train

    with progress_display() as progress:
        speed = bench_train(settings, rounds=rounds, updates=updates, listener=progress)
    echo_result(speed, as_json=as_json)


@verb("bench decode", bench)
@run_argument
@option(
    "--precision",
    type=click.Choice(["fp32", "bf16", "int8"]),
    default="fp32",
    help="Number format of the computation; fp32 is exact.",
)
@device_option
@option(
    "--beam",
    "beams",
    type=COUNT,
    multiple=True,
    show_default="1 and search.beam_size of the run",
    help="Beam size; may be repeated to measure several.",
)
@option(
    "--batch",
    "batches",
    type=NOT_NEGATIVE,
    multiple=True,
    default=(1, 64, 0),
    help="Number of sentences translated in one call; 0 means all; may be repeated to measure several.",
)
@option("--sentences", type=COUNT, default=500, help="Maximum number of test sentences to use.")
@option("--rounds", type=COUNT, default=3, help="Number of measurements.")
@json_option
def decode(
    run: Path,
    precision: str,
    device: str,
    beams: tuple[int, ...],
    batches: tuple[int, ...],
    sentences: int,
    rounds: int,
    as_json: bool,
) -> None:
    """Measure how fast RUN translates its test set, for each beam size and batch size."""
    from manyheads.runs.bench_decode import bench_decode

    with progress_display() as progress:
        speed = bench_decode(
            run,
            precision=precision,
            device=device,
            beams=beams,
            batches=batches,
            sentences=sentences,
            rounds=rounds,
            listener=progress,
        )
    echo_result(speed, as_json=as_json)


VERBS = {"bench": bench}
