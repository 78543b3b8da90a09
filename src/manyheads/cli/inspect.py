"""`inspect`: the internals of a model for one text. `curves`: the training curves of runs."""

from __future__ import annotations

import shutil
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.options import (
    NOT_NEGATIVE,
    OUTPUT_FILE,
    PATH,
    beam_option,
    device_option,
    direction_options,
    json_option,
    option,
    run_argument,
)
from manyheads.cli.streams import open_output, progress_display, refuse_closed
from manyheads.cli.verbs import current_settings, in_chosen_language, verb, warn
from manyheads.errors import UsageError

if TYPE_CHECKING:
    from manyheads.inspection.base import Document
    from manyheads.inspection.views import Picture

_MIN_WIDTH, _MAX_WIDTH = 40, 160  # columns
_SUFFIXES = (".svg", ".png", ".json", ".csv")


_view_option = partial(option, "--view", metavar="NAME", show_default="the first view of the list")
_drawing_option = partial(option, "-o", "--output", type=OUTPUT_FILE, metavar="FILE")
_width_option = option(
    "--width",
    type=click.FloatRange(min=20.0, max=1_000.0),
    metavar="MM",
    show_default="as wide as the picture needs",
    help="Width of an .svg or .png in millimetres for print, without titles: 77 is a column of the ACL format, 160 "
    "its page.",
)


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


@verb("inspect")
@run_argument
@click.argument("text", required=False)
@_view_option(help="View to show, from the list below.")
@option(
    "--kind",
    type=click.Choice(["encoder", "decoder", "cross"]),
    show_default="the last one that the model has",
    help="Attention to show.",
)
@option("--layer", type=int, default=-1, help="Layer whose attention to show, from 0; -1 is the last layer.")
@option(
    "--head",
    default="mean",
    metavar="[N|mean]",
    help="Head whose attention to show, from 0; mean averages all heads.",
)
@option("--target-text", metavar="TEXT", help="Output to inspect instead of the one that the search finds.")
@option("--prefix", default="", show_default=False, metavar="TEXT", help="Beginning of the output.")
@beam_option
@option(
    "--alternatives",
    type=NOT_NEGATIVE,
    default=5,
    help="Number of alternative tokens to show for each output token.",
)
@option(
    "--padding",
    type=NOT_NEGATIVE,
    default=0,
    help="Number of <pad> tokens to append to the source, to check that the attention masks hide them.",
)
@option(
    "--max-tokens",
    type=NOT_NEGATIVE,
    default=0,
    help="Number of tokens that a language model generates after TEXT.",
)
@direction_options
@option("--no-occlusion", is_flag=True, help="Skip the occlusion view, which runs the model once for each word.")
@device_option
@_drawing_option(
    help="Write to FILE instead of printing, in the format of its suffix: .html (a page of all views), .svg, .png "
    "(extra plot), .json or .csv.",
)
@_width_option
@json_option
def inspect(
    run: Path,
    text: str | None,
    view: str | None,
    kind: str | None,
    layer: int,
    head: str,
    target_text: str | None,
    prefix: str,
    beam: int | None,
    alternatives: int,
    padding: int,
    max_tokens: int,
    target: str,
    source: str,
    no_occlusion: bool,
    device: str,
    output: Path | None,
    width: float | None,
    as_json: bool,
) -> None:
    """Show the internals of the model of RUN while it processes TEXT ("-" reads standard input).

    RUN is a run directory. Without TEXT, show the weights and the structure of the model itself.
    """
    _check_drawing(output, (".html", *_SUFFIXES), as_json=as_json, width=width)
    page = output if output is not None and output.suffix.lower() == ".html" else None
    if page is not None and view is not None:
        raise UsageError(f"--output {page}: a page holds all views. Leave out --view {view}, or write FILE.svg.")
    if head != "mean" and not head.isdigit():
        raise UsageError(f'--head {head} is no number from 0 and not "mean".')

    from manyheads.inspection.views import Picture
    from manyheads.runs.inspect import inspect as inspect_run
    from manyheads.runs.page import stand_alone

    if text == "-":
        refuse_closed(sys.stdin, "input", "a text")
    content = sys.stdin.read().strip("\n") if text == "-" else text
    with progress_display() as progress:
        inspection = inspect_run(
            run,
            content,
            target=target_text,
            prefix=prefix,
            beam_size=beam,
            alternatives=alternatives,
            padding=padding,
            occlusion=not no_occlusion,
            max_tokens=max_tokens,
            languages=(source, target),
            device=device,
            listener=progress,
        )
    language = current_settings().language
    if page is not None:
        _write(page, stand_alone(run, inspection, language=language).encode())
        return
    head_number = None if head == "mean" else int(head)
    picture = Picture(view, kind, layer, head_number, width, language or "en")
    _deliver(inspection, picture, output, as_json=as_json)


@verb("curves")
@click.argument("run", type=PATH, nargs=-1, required=True)
@_view_option(help="View to show, from the list above.")
@_drawing_option(
    help="Write to FILE instead of printing, in the format of its suffix: .svg, .png (extra plot), .json or .csv.",
)
@_width_option
@json_option
def curves(
    run: tuple[Path, ...],
    view: str | None,
    output: Path | None,
    width: float | None,
    as_json: bool,
) -> None:
    """Plot the training curves of one or several RUNs, also while the training is still running.

    Views: loss, perplexity, scores, learning-rate, gradient-norm, speed, attention-entropy, samples.
    """
    if output is not None and output.suffix.lower() == ".html":
        raise UsageError(
            f"--output {output}: curves are written as pictures. Write FILE.svg, or the page of one run with its "
            "curves: manyheads inspect RUN -o FILE.html."
        )
    _check_drawing(output, _SUFFIXES, as_json=as_json, width=width)

    from manyheads.inspection.views import Picture
    from manyheads.notes import verdict_lines
    from manyheads.runs.inspect import curves
    from manyheads.runs.outcome import training_verdict

    picture = Picture(view, width=width, language=current_settings().language or "en")
    _deliver(curves(run), picture, output, as_json=as_json)
    if output is None and not as_json:
        for path in run:
            for line in map(in_chosen_language, verdict_lines(training_verdict(path))):
                click.echo(f"{path}: {line}" if len(run) > 1 else line)


VERBS = {"inspect": inspect, "curves": curves}
