"""`inspect`: the internals of a model for one text. `curves`: the training curves of runs."""

from __future__ import annotations

import shutil
import sys
import warnings
from collections.abc import Callable
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
    from manyheads.inspection.views import AttentionSelection

_MIN_WIDTH, _MAX_WIDTH = 40, 160  # columns
_FORMATS = ("html", "svg", "png", "json", "csv")


_view_option = partial(option, "--view", metavar="NAME")
_drawing_option = option(
    "-o",
    "--output",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Write to FILE instead of printing, in the format of its suffix: .html, .svg, .png (extra plot), .json or "
    ".csv.",
)


_width_option = option(
    "--width",
    type=click.FloatRange(min=20.0, max=1_000.0),
    metavar="MM",
    show_default="as wide as the picture needs",
    help="Width of an .svg or .png in millimetres for print, without titles: 77 is a column of the ACL format, 160 "
    "its page.",
)


def _check_drawing(path: Path | None, *, as_json: bool, width: float | None = None) -> None:
    """Check the path of --output before the computation.

    Raises:
        UsageError: the suffix is unknown, or --json is given too; or a width is given without a picture.
    """
    if width is not None and (path is None or path.suffix.lower() not in (".svg", ".png")):
        raise UsageError(f"--width {width:g} is the width of a picture. Write one: --output FILE.svg or FILE.png.")
    if path is None:
        return
    if path.suffix.removeprefix(".").lower() not in _FORMATS:
        raise UsageError(f"--output {path}: the name must end in one of .{', .'.join(_FORMATS)}.")
    if as_json:
        raise click.UsageError("--json prints, and --output writes a file: give one of them.")


def _deliver(
    document: Document,
    output: Path | None,
    view: str | None,
    selection: AttentionSelection,
    *,
    as_json: bool,
    width: float | None = None,
    page: Callable[[], str] | None = None,
) -> None:
    """Write the result to the file of --output, or print it; `page` returns the HTML page of all views."""
    language = current_settings().language or "en"
    if output is not None:
        kind = output.suffix.removeprefix(".").lower()
        if kind == "html" and view is None and page is not None:
            content = page().encode()
        else:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                content = document.to_format(kind, view, selection, width=width, language=language)
            for warning in caught:
                warn(str(warning.message))
        with open_output(output) as file:
            file.write(content)
        if not current_settings().quiet:
            click.echo(f"wrote {output}", err=True)
        return
    if as_json:
        click.echo(document.to_json())
        return
    columns = min(_MAX_WIDTH, max(_MIN_WIDTH, shutil.get_terminal_size((100, 24)).columns))
    for line in document.lines(view, selection, width=columns, language=language):
        click.echo(line)


@verb("inspect")
@run_argument
@click.argument("text", required=False)
@_view_option(
    show_default="the first view of the list; all views in HTML",
    help="View to show, from the list below.",
)
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
@_drawing_option
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
    _check_drawing(output, as_json=as_json, width=width)
    if head != "mean" and not head.isdigit():
        raise UsageError(f'--head {head} is no number from 0 and not "mean".')

    from manyheads.inspection.views import AttentionSelection
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
    selection = AttentionSelection(kind, layer, None if head == "mean" else int(head))
    page = partial(stand_alone, run, inspection, language=current_settings().language)
    _deliver(inspection, output, view, selection, as_json=as_json, width=width, page=page)


@verb("curves")
@click.argument("run", type=PATH, nargs=-1, required=True)
@_view_option(show_default="loss; all views in HTML", help="View to show, from the list above.")
@_drawing_option
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
    _check_drawing(output, as_json=as_json, width=width)

    from manyheads.evaluation.verdicts import verdict_lines
    from manyheads.inspection.views import AttentionSelection
    from manyheads.runs.inspect import curves
    from manyheads.runs.outcome import training_verdict

    _deliver(curves(run), output, view, AttentionSelection(), as_json=as_json, width=width)
    if output is None and not as_json:
        for path in run:
            for line in map(in_chosen_language, verdict_lines(training_verdict(path))):
                click.echo(f"{path}: {line}" if len(run) > 1 else line)


VERBS = {"inspect": inspect, "curves": curves}
