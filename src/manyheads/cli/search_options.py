"""The command-line options that fill `TranslateOptions` and `Sampling`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from manyheads.cli.options import NOT_NEGATIVE, Decorator, field_option, option
from manyheads.errors import UsageError
from manyheads.search.options import Sampling, TranslateOptions

_NOT_NEGATIVE_NUMBER = click.FloatRange(min=0)
_ONLY_SAMPLING = ". Requires --sample."


def _run_option(name: str, metavar: str, number: click.ParamType[Any]) -> Decorator:
    return field_option(TranslateOptions, name, metavar, type=number, show_default=f"search.{name} of the run")


_OPTIONS = (
    _run_option("length_penalty", "X", _NOT_NEGATIVE_NUMBER),
    _run_option("max_length_ratio", "X", _NOT_NEGATIVE_NUMBER),
    field_option(TranslateOptions, "min_length_ratio", "X", type=_NOT_NEGATIVE_NUMBER),
    _run_option("no_repeat_ngram", "N", NOT_NEGATIVE),
    option("--sample", is_flag=True, help="Draw outputs by random sampling instead of beam search."),
    field_option(Sampling, "temperature", "X", type=float, note="; must be above 0. Requires --sample."),
    field_option(Sampling, "top_k", "N", type=int, note=_ONLY_SAMPLING),
    field_option(Sampling, "top_p", "P", type=float, note=", above 0 and at most 1. Requires --sample."),
    field_option(Sampling, "seed", "N", type=NOT_NEGATIVE, note=_ONLY_SAMPLING),
    field_option(
        TranslateOptions,
        "alignment",
        help="Append the word alignment to each line, as ||| and pairs of source-target word numbers: ||| 0-0 1-2.",
    ),
    field_option(TranslateOptions, "attention_layer", "N", type=int),
    field_option(TranslateOptions, "alternatives", "N", type=NOT_NEGATIVE, note=". Requires --json."),
    field_option(TranslateOptions, "split", flag="--split-lines", type=click.Choice(["auto", "sentences", "none"])),
)


def translate_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a translation; the command receives their values as `options`, a `TranslateOptions`."""

    @wraps(command)
    def with_options(*args: Any, sample: bool, **values: Any) -> Any:
        sampling_values = {field.name: values.pop(field.name) for field in dataclasses.fields(Sampling)}
        names = [field.name for field in dataclasses.fields(TranslateOptions) if field.name in values]
        translate_values = {name: values.pop(name) for name in names}
        return command(
            *args,
            options=TranslateOptions(**translate_values, sampling=_sampling_of(sampling_values, sample)),
            **values,
        )

    decorated: Callable[..., Any] = with_options
    for add_option in reversed(_OPTIONS):
        decorated = add_option(decorated)
    return decorated


def _sampling_of(values: dict[str, Any], sample: bool) -> Sampling | None:
    """Return the options of sampling; None without --sample.

    Raises:
        UsageError: a value is out of its range, or given without --sample.
    """
    try:
        sampling = Sampling(**values)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if not sample and sampling != Sampling(seed=sampling.seed):
        raise UsageError("--temperature, --top-k and --top-p are for sampling. Give --sample too.")
    return sampling if sample else None
