r"""`translate`: one output line for each input line, in the same order.

Only "\n" ends a line. Text is UTF-8 in every locale.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from manyheads.cli.search_options import ConstraintFiles, SearchArguments, batches, search_options
from manyheads.cli.verbs import (
    Verb,
    device_option,
    input_lines,
    json_option,
    open_output,
    option,
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

BATCH_LINES = 512  # lines translated in one call; 1 when a person types at a terminal
TRUNCATED = "cut at the length limit of the model or of the search"

LineNumbers = dict[str, list[int]]  # kind of warning -> numbers of the lines concerned, from 1


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
@option(
    "--beam",
    type=click.IntRange(min=1),
    metavar="N",
    show_default="search.beam_size of the run",
    help="Beam size; 1 is greedy search.",
)
@option(
    "--n-best",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Number of translations for each line; above 1, print each as: line number from 0, |||, text, |||, score.",
)
@search_options()
@option(
    "--prefix",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File with the beginning of each output, one line for each input line.",
)
@option(
    "--forbid",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File of phrases that must not occur in the output, separated by tabs, one line for each input line.",
)
@option(
    "--require",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File of phrases that must occur in the output, separated by tabs, one line for each input line.",
)
@option(
    "--ensemble",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Another run to ensemble with; may be repeated.",
)
@option("--geometric", is_flag=True, help="Average log-probabilities instead of probabilities (--ensemble).")
@option("--stream", is_flag=True, help="Print the greedy output word by word, as it is decoded.")
@option("--engine", default="torch", metavar="[torch|ctranslate2]", help="Inference engine.")
@device_option()
@option(
    "--precision",
    default="fp32",
    metavar="[fp32|bf16|int8]",
    help="Number format of the torch engine; fp32 is exact, bf16 and int8 are faster.",
)
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
    search: SearchArguments,
    prefix: Path | None,
    forbid: Path | None,
    require: Path | None,
    ensemble: tuple[Path, ...],
    geometric: bool,
    stream: bool,
    engine: str,
    device: str,
    precision: str,
    output: Path | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> None:
    """Translate FILE or standard input: one output line for each input line, empty lines included."""
    if beam is not None and n_best > beam and not search.sample:
        raise click.UsageError(f"--n-best {n_best} needs at least --beam {n_best}, not {beam}.", context)
    if search.alignment and n_best > 1 and not as_json:
        raise click.UsageError("--alignment is that of the best translation. With --n-best use --json.", context)
    if search.rivals and not as_json:
        raise click.UsageError("--rivals needs --json.", context)
    if stream and (as_json or n_best > 1 or beam not in (None, 1) or search.alignment or forbid or require):
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
    options = search.options(token_scores=as_json)
    translator = Translator.load(
        run,
        device=device,
        engine=engine,
        ensemble=ensemble,
        geometric=geometric,
        precision=precision,
    )
    if overrides:
        config = with_overrides(translator.config, overrides)
        translator = Translator(config, translator.tokenizers, translator.engine)
    lines = input_lines(file, translator.config.data.invalid_utf8)
    constraints = ConstraintFiles(prefix, forbid, require)
    with open_output(output) as sink:
        if stream:
            warned = write_stream(translator, lines, constraints, options, sink)
        else:
            size = 1 if interactive else BATCH_LINES
            results = translations(translator, lines, size, beam, n_best, constraints, options)
            warned = write_json(results, sink) if as_json else write_lines(results, sink, n_best)
    if not quiet:
        print_warnings(warned)


def translations(
    translator: Translator,
    lines: Iterator[str],
    size: int,
    beam: int | None,
    n_best: int,
    constraints: ConstraintFiles,
    options: TranslateOptions,
) -> Iterator[Translation]:
    """Yield the translation of each line in order, translating `size` lines in one call."""
    for batch in batches(lines, size):
        results = translator.translate(
            batch,
            beam_size=beam,
            n_best=n_best,
            prefixes=constraints.prefixes(len(batch)),
            forbidden=constraints.forbidden(len(batch)),
            required=constraints.required(len(batch)),
            options=options,
        )
        assert len(results) == len(batch)
        yield from results
    constraints.finish()


def write_lines(results: Iterator[Translation], stream: BinaryIO, n_best: int) -> LineNumbers:
    """Write one line, or `n_best` lines, for each translation; returns the lines with warnings."""
    warned: LineNumbers = defaultdict(list)
    for index, translation in enumerate(results):
        if n_best == 1:
            links = "" if translation.alignment is None else f" ||| {translation.alignment}"
            stream.write(text_line(translation.translation + links))
        else:
            for hypothesis in translation.hypotheses:
                stream.write(text_line(f"{index} ||| {hypothesis.text} ||| {hypothesis.score:.4f}"))
        stream.flush()
        add_warnings(warned, index, translation)
    return warned


def write_json(results: Iterator[Translation], stream: BinaryIO) -> LineNumbers:
    """Write one JSON list; returns the lines with warnings."""
    translations = list(results)
    document = json.dumps([translation.to_json() for translation in translations], ensure_ascii=False, indent=2)
    stream.write(document.encode() + b"\n")
    warned: LineNumbers = defaultdict(list)
    for index, translation in enumerate(translations):
        add_warnings(warned, index, translation)
    return warned


def write_stream(
    translator: Translator,
    lines: Iterator[str],
    constraints: ConstraintFiles,
    options: TranslateOptions,
    stream: BinaryIO,
) -> LineNumbers:
    """Write the greedy translation of each line word by word; returns the lines with warnings."""
    warned: LineNumbers = defaultdict(list)
    for index, line in enumerate(lines):
        (prefix,) = constraints.prefixes(1) or [""]
        pieces = translator.stream(line, prefix=prefix, options=options)
        while True:
            try:
                stream.write(text_line(next(pieces))[:-1])
            except StopIteration as end:
                if end.value:
                    warned["truncated"].append(index + 1)
                break
            stream.flush()
        stream.write(b"\n")
        stream.flush()
    constraints.finish()
    return warned


def add_warnings(warned: LineNumbers, index: int, translation: Translation) -> None:
    """Add the line number of a translation to each kind of warning that it carries."""
    names = ["truncated", *translation.warnings] if translation.truncated else translation.warnings
    for name in names:
        warned[name].append(index + 1)


def print_warnings(warned: LineNumbers) -> None:
    """Print one line to stderr for each kind of warning."""
    from manyheads.tasks.checks import WARNINGS

    for name, numbers in warned.items():
        shown = ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")
        click.echo(f"warning: {({'truncated': TRUNCATED} | WARNINGS)[name]}: line {shown}", err=True)


VERBS = {"translate": translate}
