"""The command-line options that fill `SearchOptions` and `Sampling`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from manyheads.cli.options import COUNT, NOT_NEGATIVE, Decorator, beam_option, field_option, option
from manyheads.errors import UsageError
from manyheads.search.options import Sampling, SearchOptions

_NOT_NEGATIVE_NUMBER = click.FloatRange(min=0)
_ONLY_SAMPLING = ". Requires --sample."


def _run_option(name: str, metavar: str, number: click.ParamType[Any]) -> Decorator:
    return field_option(SearchOptions, name, metavar, type=number, show_default=f"search.{name} of the run")


_OPTIONS = (
    beam_option,
    option(
        "--n-best",
        type=COUNT,
        default=1,
        help="Number of translations for each line; above 1, print each as: line number from 0, |||, text, |||, "
        "score. The score is the log-probability in nats, divided by length ** search.length_penalty: nearer to 0 "
        "is likelier.",
    ),
    _run_option("length_penalty", "X", _NOT_NEGATIVE_NUMBER),
    _run_option("max_length_ratio", "X", _NOT_NEGATIVE_NUMBER),
    field_option(SearchOptions, "min_length_ratio", "X", type=_NOT_NEGATIVE_NUMBER),
    _run_option("no_repeat_ngram", "N", NOT_NEGATIVE),
    option("--sample", is_flag=True, help="Draw outputs by random sampling instead of beam search."),
    field_option(Sampling, "temperature", "X", type=float, note="; must be above 0. Requires --sample."),
    field_option(Sampling, "top_k", "N", type=int, note=_ONLY_SAMPLING),
    field_option(Sampling, "top_p", "P", type=float, note=", above 0 and at most 1. Requires --sample."),
    field_option(Sampling, "seed", "N", type=NOT_NEGATIVE, note=_ONLY_SAMPLING),
    field_option(
        SearchOptions,
        "alignment",
        help="Append the word alignment to each line, as ||| and pairs of source-target word numbers: ||| 0-0 1-2.",
    ),
    field_option(SearchOptions, "attention_layer", "N", type=int),
    field_option(SearchOptions, "alternatives", "N", type=NOT_NEGATIVE, note=". Requires --json."),
    field_option(SearchOptions, "split", flag="--split-lines", type=click.Choice(["auto", "sentences", "none"])),
    field_option(SearchOptions, "match_source"),
    field_option(SearchOptions, "min_confidence", "X", type=float),
)


def search_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a search; the command receives their values as `options`, a `SearchOptions`."""

    @wraps(command)
    def with_options(*args: Any, beam: int | None, sample: bool, **values: Any) -> Any:
        sampling_values = {field.name: values.pop(field.name) for field in dataclasses.fields(Sampling)}
        search_values = {name: values.pop(name) for name in vars(SearchOptions()) if name in values}
        options = SearchOptions(
            **search_values | ({} if beam is None else {"beam_size": beam}),
            sampling=_sampling_of(sampling_values, sample),
        )
        return command(*args, options=options, **values)

    decorated: Callable[..., Any] = with_options
    for add_option in reversed(_OPTIONS):
        decorated = add_option(decorated)
    return decorated


def _sampling_of(values: dict[str, Any], sample: bool) -> Sampling | None:
    """Return the options of sampling; None without --sample.

    Raises:
        UsageError: a value is out of its range, or given without --sample.
    """
    sampling = Sampling(**values)
    if not sample and sampling != Sampling(seed=sampling.seed):
        raise UsageError("--temperature, --top-k and --top-p are for sampling. Give --sample too.")
    return sampling if sample else None
