"""`inspect` and `curves`: look inside a model, and at its training."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.cli.verbs import Verb, json_option, settings_of
from manyheads.errors import UsageError

if TYPE_CHECKING:
    from manyheads.inspection.shown import Shown
    from manyheads.inspection.views import Look

__all__ = ["VERBS"]

NARROWEST, WIDEST = 40, 160  # columns
FORMATS = ("html", "svg", "png", "json", "csv")


def save_option() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--save`."""
    return click.option(
        "--save",
        "--out",
        "save",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write a file instead: .html, .svg, .png (extra plot), .json or .csv.",
    )


def check_file(path: Path | None) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    if path is None:
        return
    if path.suffix.removeprefix(".").lower() not in FORMATS:
        raise UsageError(f"--save {path}: the name must end in one of .{', .'.join(FORMATS)}.")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--save {path}: there is no folder {path.parent}. Make it first.")


def deliver(
    context: click.Context,
    found: Shown,
    save: Path | None,
    view: str | None,
    look: Look,
    *,
    as_json: bool,
    page: Callable[[], str] | None = None,
) -> None:
    """Write the file that was asked for, or print; `page` makes the HTML of all views."""
    if save is not None:
        kind = save.suffix.removeprefix(".").lower()
        if kind == "html" and view is None and page is not None:
            content = page().encode()
        else:
            content = found.to_format(kind, view, look)
        try:
            save.write_bytes(content)
        except OSError as error:
            raise UsageError(f"--save {save} cannot be written: {error.strerror}.") from error
        if not settings_of(context).quiet:
            click.echo(f"wrote {save}", err=True)
        return
    if as_json:
        click.echo(found.to_json())
        return
    columns = min(WIDEST, max(NARROWEST, shutil.get_terminal_size((100, 24)).columns))
    for line in found.lines(view, look, width=columns):
        click.echo(line)


@click.command(
    cls=Verb,
    epilog="""\b
Examples:
  manyheads inspect runs/mine "Ein Hund läuft." --view attention --kind cross --layer 2 --head mean
  manyheads inspect runs/mine "Ein Hund läuft." --view beam --beam 3
  manyheads inspect runs/mine "Ein Hund läuft." --save dog.html
  manyheads inspect runs/mine --view positions --save positions.svg""",
)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("text", required=False)
@click.option("--view", metavar="NAME", help="What to show; without, the most telling one, or in HTML all.")
@click.option("--kind", metavar="NAME", help="Attention: encoder, decoder or cross.")
@click.option("--layer", type=int, default=-1, metavar="N", help="Attention: layer from 0; -1 is the last.")
@click.option("--head", default="mean", metavar="N", help="Attention: head from 0, or mean.")
@click.option("--target", metavar="TEXT", help="Look at this output instead of searching for one.")
@click.option("--prefix", default="", metavar="TEXT", help="Go on from this beginning of the output.")
@click.option("--beam", type=click.IntRange(min=1), metavar="N", help="Beam size; 1 is greedy.")
@click.option("--rivals", type=click.IntRange(min=0), default=5, metavar="N", help="Other tokens beside each.")
@click.option("--padding", type=click.IntRange(min=0), default=0, metavar="N", help="<pad> after the source.")
@click.option("--max-tokens", type=click.IntRange(min=0), default=0, metavar="N", help="A language model goes on.")
@click.option("--no-occlusion", is_flag=True, help="Leave no words out: faster for long texts.")
@click.option("--device", default="auto", metavar="NAME", help="cpu, cuda, cuda:1; auto takes a GPU.")
@save_option()
@json_option()
@click.pass_context
def inspect(
    context: click.Context,
    run: Path,
    text: str | None,
    view: str | None,
    kind: str | None,
    layer: int,
    head: str,
    target: str | None,
    prefix: str,
    beam: int | None,
    rivals: int,
    padding: int,
    max_tokens: int,
    no_occlusion: bool,
    device: str,
    save: Path | None,
    as_json: bool,
) -> None:
    """Show what TEXT does inside the model of RUN; without TEXT, the model as a whole. "-" reads standard input.

    Views of a translation: probabilities, alignment, attention, heads, beam, outputs, occlusion, masks, neighbours,
    tokens. Of a class: classes instead of the first two. Of a language model: probabilities, next. Of a model:
    blocks, tensors, positions, learning-rate, symbols.
    """
    check_file(save)
    if as_json and save is not None:
        raise click.UsageError("--json prints, and --save writes a file: give one of them.", context)
    if head != "mean" and not head.isdigit():
        raise UsageError(f'--head {head} is no number from 0 and not "mean".')

    from manyheads import runs
    from manyheads.inspection.views import Look

    read = sys.stdin.read().strip("\n") if text == "-" else text
    found = runs.inspect(
        run,
        read,
        target=target,
        prefix=prefix,
        beam_size=beam,
        rivals=rivals,
        padding=padding,
        occlusion=not no_occlusion,
        max_tokens=max_tokens,
        device=device,
    )
    look = Look(kind, layer, None if head == "mean" else int(head))
    deliver(context, found, save, view, look, as_json=as_json, page=lambda: runs.stand_alone(run, found))


@click.command(
    cls=Verb,
    epilog="""\b
Examples:
  manyheads curves runs/mine
  manyheads curves runs/adam runs/muon --view loss --save both.svg
  manyheads curves runs/mine --save training.html""",
)
@click.argument("run", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--view", metavar="NAME", help="What to show; without, the loss, or in HTML all.")
@save_option()
@json_option()
@click.pass_context
def curves(
    context: click.Context, run: tuple[Path, ...], view: str | None, save: Path | None, as_json: bool
) -> None:
    """Show how the training of one or several RUNs went, also while it goes on.

    Views: loss, perplexity, scores, learning-rate, gradient-norm, speed, attention-entropy, samples.
    """
    check_file(save)
    if as_json and save is not None:
        raise click.UsageError("--json prints, and --save writes a file: give one of them.", context)

    from manyheads import runs
    from manyheads.inspection.views import Look

    deliver(context, runs.curves(run), save, view, Look(), as_json=as_json)


VERBS = {"inspect": inspect, "curves": curves}
