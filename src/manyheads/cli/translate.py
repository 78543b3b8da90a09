r"""`translate`: lines in, lines out, in the same order and of the same number.

A line ends at "\n" and nowhere else. Text is UTF-8 whatever the locale says.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from manyheads.cli.searching import Companions, Searching, batches, searching_options
from manyheads.cli.verbs import (
    Verb,
    input_lines,
    json_option,
    opened_output,
    output_option,
    set_option,
    settings_of,
    text_line,
)
from manyheads.errors import UsageError

if TYPE_CHECKING:
    from manyheads.tasks.options import TranslateOptions
    from manyheads.tasks.translation import Translation, Translator

__all__ = ["VERBS"]

LINES_AT_ONCE = 512  # translated together; from a terminal each line is answered at once
TRUNCATED = "cut at the length limit of the model or of the search"

Notes = dict[str, list[int]]  # what looks wrong, and the numbers of the lines where, from 1


@click.command(
    cls=Verb,
    epilog="""\b
Examples:
  echo "A dog runs." | manyheads translate runs/multi30k-en-de-tiny
  manyheads translate runs/mine text.en --output text.de
  manyheads translate runs/mine --n-best 3 --json < text.en
  manyheads translate runs/mine text.en --sample --top-p 0.9 --seed 7""",
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
@searching_options()
@click.option("--prefix", type=click.Path(path_type=Path), metavar="FILE", help="How each output begins.")
@click.option("--forbid", type=click.Path(path_type=Path), metavar="FILE", help="Phrases, tabs between, a line.")
@click.option("--require", type=click.Path(path_type=Path), metavar="FILE", help="Phrases, tabs between, a line.")
@click.option("--ensemble", multiple=True, type=click.Path(path_type=Path), metavar="RUN", help="Decides too.")
@click.option("--geometric", is_flag=True, help="An ensemble's mean is that of logarithms.")
@click.option("--stream", is_flag=True, help="Print the greedy output word by word.")
@click.option("--engine", default="torch", metavar="NAME", help="What searches: torch or ctranslate2.")
@click.option("--device", default="auto", metavar="NAME", help="cpu, cuda, cuda:1; auto takes a GPU.")
@click.option("--precision", default="fp32", metavar="NAME", help="fp32, which is exact, bf16 or int8.")
@click.option("--compile", is_flag=True, help="Compile the steps of up to 16 lines a call, on a GPU.")
@output_option("translations")
@set_option()
@json_option()
@click.pass_context
def translate(
    context: click.Context,
    run: Path,
    file: Path,
    beam: int | None,
    n_best: int,
    searching: Searching,
    prefix: Path | None,
    forbid: Path | None,
    require: Path | None,
    ensemble: tuple[Path, ...],
    geometric: bool,
    stream: bool,
    engine: str,
    device: str,
    precision: str,
    compile: bool,
    output: Path | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> None:
    """Translate FILE, or standard input: one line out for each line in, empty lines kept."""
    if beam is not None and n_best > beam and not searching.sample:
        raise click.UsageError(f"--n-best {n_best} needs at least --beam {n_best}, not {beam}.", context)
    if searching.alignment and n_best > 1 and not as_json:
        raise click.UsageError("--alignment is that of the best translation. With --n-best use --json.", context)
    if searching.rivals and not as_json:
        raise click.UsageError("--rivals needs --json.", context)
    if stream and (as_json or n_best > 1 or beam not in (None, 1) or searching.alignment or forbid or require):
        raise click.UsageError(
            "--stream prints the greedy output alone: without --json, --n-best, --beam, --alignment, --forbid and "
            "--require.",
            context,
        )
    if output is not None and output.exists() and file.exists() and output.samefile(file):
        raise UsageError(f"{output} is the input; write to another file.")

    from manyheads.config.load import with_overrides
    from manyheads.tasks.translation import Translator
    from manyheads.training.memory import keep_decoding_small

    keep_decoding_small()
    interactive = str(file) == "-" and sys.stdin.isatty()
    quiet = settings_of(context).quiet
    if interactive and not quiet:
        click.echo("Type a line to translate it; Ctrl-D ends.", err=True)
    options = searching.options(token_scores=as_json)
    translator = Translator.load(
        run,
        device=device,
        engine=engine,
        ensemble=ensemble,
        geometric=geometric,
        precision=precision,
        compile=compile,
    )
    if overrides:
        config = with_overrides(translator.config, overrides)
        translator = Translator(config, translator.tokenizers, translator.engine)
    lines = input_lines(file, translator.config.data.invalid_utf8)
    companions = Companions(prefix, forbid, require)
    with opened_output(output) as sink:
        if stream:
            notes = write_stream(translator, lines, companions, options, sink)
        else:
            size = 1 if interactive else LINES_AT_ONCE
            found = translations(translator, lines, size, beam, n_best, companions, options)
            notes = write_json(found, sink) if as_json else write_lines(found, sink, n_best)
    if not quiet:
        tell(notes)


def translations(
    translator: Translator,
    lines: Iterator[str],
    size: int,
    beam: int | None,
    n_best: int,
    companions: Companions,
    options: TranslateOptions,
) -> Iterator[Translation]:
    """The translation of each line, in order, `size` of them at once."""
    for batch in batches(lines, size):
        found = translator.translate(
            batch,
            beam_size=beam,
            n_best=n_best,
            prefixes=companions.prefixes(len(batch)),
            forbidden=companions.forbidden(len(batch)),
            required=companions.required(len(batch)),
            options=options,
        )
        assert len(found) == len(batch)
        yield from found
    companions.finish()


def write_lines(found: Iterator[Translation], stream: BinaryIO, n_best: int) -> Notes:
    """Write one line for each line, or `n_best`; returns what looks wrong."""
    notes: Notes = defaultdict(list)
    for index, translation in enumerate(found):
        if n_best == 1:
            links = "" if translation.alignment is None else f" ||| {translation.alignment}"
            stream.write(text_line(translation.translation + links))
        else:
            for hypothesis in translation.hypotheses:
                stream.write(text_line(f"{index} ||| {hypothesis.text} ||| {hypothesis.score:.4f}"))
        stream.flush()
        note(notes, index, translation)
    return notes


def write_json(found: Iterator[Translation], stream: BinaryIO) -> Notes:
    """Write one JSON list; returns what looks wrong."""
    translations = list(found)
    document = json.dumps([translation.to_json() for translation in translations], ensure_ascii=False, indent=2)
    stream.write(document.encode() + b"\n")
    notes: Notes = defaultdict(list)
    for index, translation in enumerate(translations):
        note(notes, index, translation)
    return notes


def write_stream(
    translator: Translator,
    lines: Iterator[str],
    companions: Companions,
    options: TranslateOptions,
    stream: BinaryIO,
) -> Notes:
    """Write the greedy translation of each line as it comes, a line each; returns what looks wrong."""
    notes: Notes = defaultdict(list)
    for index, line in enumerate(lines):
        (prefix,) = companions.prefixes(1) or [""]
        pieces = translator.stream(line, prefix=prefix, options=options)
        while True:
            try:
                stream.write(text_line(next(pieces))[:-1])
            except StopIteration as end:
                if end.value:
                    notes["truncated"].append(index + 1)
                break
            stream.flush()
        stream.write(b"\n")
        stream.flush()
    companions.finish()
    return notes


def note(notes: Notes, index: int, translation: Translation) -> None:
    """Note what looks wrong about a translation."""
    for name in [*["truncated"][: translation.truncated], *translation.warnings]:
        notes[name].append(index + 1)


def tell(notes: Notes) -> None:
    """One line on stderr for each kind of thing that looks wrong."""
    from manyheads.tasks.checks import WARNINGS

    for name, numbers in notes.items():
        shown = ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")
        click.echo(f"warning: {({'truncated': TRUNCATED} | WARNINGS)[name]}: line {shown}", err=True)


VERBS = {"translate": translate}
