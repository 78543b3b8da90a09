"""The command-line options that fill `SearchOptions` and `Sampling`."""

from __future__ import annotations

from typing import Any

import click

from manyheads.cli.options import COUNT, NOT_NEGATIVE, Decorator, beam_option, field_option, gather, option
from manyheads.errors import UsageError
from manyheads.search.options import Sampling, SearchOptions

_NOT_NEGATIVE_NUMBER = click.FloatRange(min=0)
_ONLY_SAMPLING = ". Requires --sample."


def _run_option(name: str, metavar: str, number: click.ParamType[Any]) -> Decorator:
    return field_option(SearchOptions, name, metavar, type=number, show_default=f"search.{name} of the run")


def _make_options(
    sample: bool, temperature: float, top_k: int, top_p: float, seed: int, **values: Any
) -> SearchOptions:
    """Return the options of a search; sampling is off without --sample.

    Raises:
        UsageError: a value is out of its range, or an option of sampling is given without --sample.
    """
    sampling = Sampling(temperature, top_k, top_p, seed)
    if not sample and sampling != Sampling(seed=sampling.seed):
        raise UsageError("--temperature, --top-k and --top-p are for sampling. Give --sample too.")
    return SearchOptions(**values, sampling=sampling if sample else None)


search_options = gather(
    _make_options,
    "search",
    beam_option,
    option("--n-best", type=COUNT, default=1),
    _run_option("length_penalty", "X", _NOT_NEGATIVE_NUMBER),
    _run_option("max_length_ratio", "X", _NOT_NEGATIVE_NUMBER),
    field_option(SearchOptions, "min_length_ratio", "X", type=_NOT_NEGATIVE_NUMBER),
    _run_option("no_repeat_ngram", "N", NOT_NEGATIVE),
    option("--sample", is_flag=True),
    field_option(Sampling, "temperature", "X", type=float, note="; must be above 0. Requires --sample."),
    field_option(Sampling, "top_k", "N", type=int, note=_ONLY_SAMPLING),
    field_option(Sampling, "top_p", "P", type=float, note=", above 0 and at most 1. Requires --sample."),
    field_option(Sampling, "seed", "N", type=NOT_NEGATIVE, note=_ONLY_SAMPLING),
    field_option(SearchOptions, "alignment", help=None),
    field_option(SearchOptions, "attention_layer", "N", type=int),
    field_option(SearchOptions, "alternatives", "N", type=NOT_NEGATIVE, note=". Requires --json."),
    field_option(SearchOptions, "split", flag="--split-lines", type=click.Choice(["auto", "sentences", "none"])),
    field_option(SearchOptions, "match_source"),
    field_option(SearchOptions, "min_confidence", "X", type=float),
)
