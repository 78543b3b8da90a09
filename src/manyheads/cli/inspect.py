"""`inspect`: the internals of a model for one text. `curves`: the training curves of runs."""

from __future__ import annotations

import shutil
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from manyheads.cli.options import (
    NOT_NEGATIVE,
    OUTPUT_FILE,
    PATH,
    AsJson,
    Device,
    Languages,
    Run,
    beam_option,
    field_option,
    gather,
    option,
    pass_options,
)
from manyheads.cli.streams import open_output, progress_display, refuse_closed
from manyheads.cli.verbs import current_settings, in_chosen_language, verb, warn
from manyheads.errors import UsageError
from manyheads.inference.inspect_options import InspectOptions

if TYPE_CHECKING:
    from manyheads.views.base import Document
    from manyheads.views.picture import Picture

_MIN_WIDTH, _MAX_WIDTH = 40, 160  # columns
_SUFFIXES = (".svg", ".png", ".json", ".csv")


_View = Annotated[str | None, option("--view", metavar="NAME", show_default="the first view of the list")]
_Drawing = Annotated[Path | None, option("-o", "--output", type=OUTPUT_FILE, metavar="FILE")]
_Width = Annotated[
    float | None,
    option(
        "--width",
        type=click.FloatRange(min=20.0, max=1_000.0),
        metavar="MM",
        show_default="as wide as the picture needs",
    ),
]


def _check_drawing(path: Path | None, suffixes: Sequence[str], *, as_json: bool, width: float | None) -> None:
    """Check the path of --output before the computation.

    Raises:
        UsageError: the suffix is unknown, or --json is given too; or a width is given without a picture.
    """
    if width is not None and (path is None or path.suffix.lower() not in (".svg", ".png")):
        raise UsageError(f"--width {width:g} is the width of a picture. Write one: --output FILE.svg or FILE.png.")
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        raise UsageError(f"--output {path}: the name must end in one of {', '.join(suffixes)}.")
    if as_json:
        raise click.UsageError("--json prints, and --output writes a file: give one of them.")


def _deliver(document: Document, picture: Picture, output: Path | None, *, as_json: bool) -> None:
    """Write a view to the file of --output, or print it."""
    if output is not None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            content = document.render(picture, output.suffix.removeprefix(".").lower())
        for warning in caught:
            warn(str(warning.message))
        _write(output, content)
        return
    if as_json:
        click.echo(document.to_json())
        return
    columns = min(_MAX_WIDTH, max(_MIN_WIDTH, shutil.get_terminal_size((100, 24)).columns))
    for line in document.lines(picture, columns):
        click.echo(line)


def _write(output: Path, content: bytes) -> None:
    with open_output(output) as file:
        file.write(content)
    if not current_settings().quiet:
        click.echo(f"wrote {output}", err=True)


def _parse_head(context: click.Context, parameter: click.Parameter, value: str) -> int | None:
    """Return the number of a head; None for the mean of all heads."""
    if value != "mean" and not value.isdecimal():
        raise UsageError(f'--head {value} is no number from 0 and not "mean".')
    return None if value == "mean" else int(value)


_field = partial(field_option, InspectOptions)
_inspect_options = gather(
    InspectOptions,
    "inspect",
    _field("target", "TEXT", flag="--target-text"),
    _field("prefix", "TEXT", default="", show_default=False, help=None),
    beam_option,
    _field("alternatives", type=NOT_NEGATIVE),
    _field("padding", type=NOT_NEGATIVE),
    _field("max_tokens", type=NOT_NEGATIVE, help=None),
)


@dataclass(frozen=True)
class _InspectVerbOptions:
    run: Run
    text: Annotated[str | None, click.argument("text", required=False)]
    view: _View
    kind: Annotated[
        str | None,
        option(
            "--kind",
            type=click.Choice(["encoder", "decoder", "cross"]),
            show_default="the last one that the model has",
        ),
    ]
    layer: Annotated[int, option("--layer", type=int, default=-1)]
    head: Annotated[int | None, option("--head", default="mean", metavar="[N|mean]", callback=_parse_head)]
    inspect: Annotated[InspectOptions, _inspect_options]
    languages: Languages
    no_occlusion: Annotated[bool, option("--no-occlusion", is_flag=True)]
    device: Device
    output: _Drawing
    width: _Width
    as_json: AsJson


@verb("inspect")
@pass_options(_InspectVerbOptions)
def inspect(options: _InspectVerbOptions) -> None:
    """Show the internals of the model of RUN while it processes TEXT ("-" reads standard input).

    RUN is a run directory. Without TEXT, show the weights and the structure of the model itself.
    """
    text, output, language = options.text, options.output, current_settings().language
    _check_drawing(output, (".html", *_SUFFIXES), as_json=options.as_json, width=options.width)
    page = output if output is not None and output.suffix.lower() == ".html" else None
    if page is not None and options.view is not None:
        raise UsageError(
            f"--output {page}: a page holds all views. Leave out --view {options.view}, or write FILE.svg."
        )

    from manyheads.inference.inspect import inspect as inspect_run
    from manyheads.views.picture import Picture
    from manyheads.web.html_page import stand_alone

    if text == "-":
        refuse_closed(sys.stdin, "input", "a text")
        text = sys.stdin.read().strip("\n")
    with progress_display() as progress:
        inspection = inspect_run(
            options.run,
            text,
            replace(options.inspect, occlusion=not options.no_occlusion),
            languages=options.languages,
            device=options.device,
            listener=progress,
        )
    if page is not None:
        _write(page, stand_alone(options.run, inspection, language=language).encode())
        return
    picture = Picture(options.view, options.kind, options.layer, options.head, options.width, language or "en")
    _deliver(inspection, picture, output, as_json=options.as_json)


@dataclass(frozen=True)
class _CurvesOptions:
    run: Annotated[tuple[Path, ...], click.argument("run", type=PATH, nargs=-1, required=True)]
    view: _View
    output: _Drawing
    width: _Width
    as_json: AsJson


@verb("curves")
@pass_options(_CurvesOptions)
def curves(options: _CurvesOptions) -> None:
    """Plot the training curves of one or several RUNs, also while the training is still running.

    Views: loss, perplexity, scores, learning-rate, gradient-norm, speed, attention-entropy, samples.
    """
    output, as_json = options.output, options.as_json
    if output is not None and output.suffix.lower() == ".html":
        raise UsageError(
            f"--output {output}: curves are written as pictures. Write FILE.svg, or the page of one run with its "
            "curves: manyheads inspect RUN -o FILE.html."
        )
    _check_drawing(output, _SUFFIXES, as_json=as_json, width=options.width)

    from manyheads.inference.inspect import curves
    from manyheads.results import verdict_lines
    from manyheads.runs.outcome import training_verdict
    from manyheads.views.picture import Picture

    picture = Picture(options.view, width=options.width, language=current_settings().language or "en")
    _deliver(curves(options.run), picture, output, as_json=as_json)
    if output is None and not as_json:
        for path in options.run:
            for line in map(in_chosen_language, verdict_lines(training_verdict(path))):
                click.echo(f"{path}: {line}" if len(options.run) > 1 else line)


VERBS = {"inspect": inspect, "curves": curves}
