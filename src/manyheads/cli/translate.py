r"""`translate`: lines in, lines out, in the same order and of the same number.

A line ends at "\n" and nowhere else. Text is UTF-8 whatever the locale says.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from manyheads.cli.verbs import Verb, json_option, opened_output, output_option, settings_of, text_line
from manyheads.data.lines import decode_lines, read_lines
from manyheads.errors import UsageError

if TYPE_CHECKING:
    from manyheads.tasks.translation import Translation, Translator

__all__ = ["VERBS"]

LINES_AT_ONCE = 512  # translated together; from a terminal each line is answered at once


@click.command(
    cls=Verb,
    epilog="""\b
Examples:
  echo "A dog runs." | manyheads translate runs/multi30k-en-de-tiny
  manyheads translate runs/mine text.en --output text.de
  manyheads translate runs/mine --n-best 3 --json < text.en""",
)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path), default="-")
@click.option("--beam", type=click.IntRange(min=1), metavar="N", help="Beam size; 1 is greedy.")
@click.option(
    "--n-best",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Print the N best of a line as: line number, |||, text, |||, score; lines count from 0.",
)
@output_option("translations")
@json_option()
@click.pass_context
def translate(
    context: click.Context,
    run: Path,
    file: Path,
    beam: int | None,
    n_best: int,
    output: Path | None,
    as_json: bool,
) -> None:
    """Translate FILE, or standard input: one line out for each line in, empty lines kept."""
    if beam is not None and n_best > beam:
        raise click.UsageError(f"--n-best {n_best} needs at least --beam {n_best}, not {beam}.", context)
    if output is not None and output.exists() and file.exists() and output.samefile(file):
        raise UsageError(f"{output} is the input; write to another file.")

    from manyheads.tasks.translation import Translator

    interactive = str(file) == "-" and sys.stdin.isatty()
    quiet = settings_of(context).quiet
    if interactive and not quiet:
        click.echo("Type a line to translate it; Ctrl-D ends.", err=True)
    translator = Translator.load(run)
    found = translations(translator, input_lines(file), 1 if interactive else LINES_AT_ONCE, beam, n_best)
    with opened_output(output) as stream:
        cut = write_json(found, stream) if as_json else write_lines(found, stream, n_best)
    if cut and not quiet:
        numbers = ", ".join(map(str, cut[:10])) + (", ..." if len(cut) > 10 else "")
        click.echo(f"warning: cut at the length limit of the model or of the search: line {numbers}", err=True)


def input_lines(file: Path) -> Iterator[str]:
    """The lines of a file (also .gz, .xz, .zst), or of standard input for "-"."""
    if str(file) == "-":
        return (line.text for line in decode_lines(sys.stdin.buffer, "standard input"))
    return read_lines(file)


def translations(
    translator: Translator, lines: Iterator[str], size: int, beam: int | None, n_best: int
) -> Iterator[Translation]:
    """The translation of each line, in order, `size` of them at once."""
    while batch := list(islice(lines, size)):
        found = translator.translate(batch, beam_size=beam, n_best=n_best)
        assert len(found) == len(batch)
        yield from found


def write_lines(found: Iterator[Translation], stream: BinaryIO, n_best: int) -> list[int]:
    """Write one line for each line, or `n_best`; returns the numbers of lines that were cut, from 1."""
    cut = []
    for index, translation in enumerate(found):
        if n_best == 1:
            stream.write(text_line(translation.translation))
        else:
            for hypothesis in translation.hypotheses:
                stream.write(text_line(f"{index} ||| {hypothesis.text} ||| {hypothesis.score:.4f}"))
        stream.flush()
        if translation.truncated:
            cut.append(index + 1)
    return cut


def write_json(found: Iterator[Translation], stream: BinaryIO) -> list[int]:
    """Write one JSON list; returns the numbers of lines that were cut, from 1."""
    translations = list(found)
    document = json.dumps([translation.to_json() for translation in translations], ensure_ascii=False, indent=2)
    stream.write(document.encode() + b"\n")
    return [number for number, translation in enumerate(translations, start=1) if translation.truncated]


VERBS = {"translate": translate}
