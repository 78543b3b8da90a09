"""`translate`: one output line for each input line, in the same order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from manyheads.cli.options import (
    COUNT,
    PATH,
    beam_option,
    device_option,
    json_option,
    option,
    output_option,
    set_option,
)
from manyheads.cli.search_options import translate_options
from manyheads.cli.streams import (
    ConstraintFiles,
    batches,
    check_output,
    input_lines,
    lines_at_once,
    numbers_text,
    open_output,
    text_line,
    write_results,
)
from manyheads.cli.verbs import settings_of, verb

if TYPE_CHECKING:
    from manyheads.search.options import TranslateOptions
    from manyheads.tasks.translation import Translation, Translator

__all__ = ["VERBS"]

TRUNCATED = "cut at the length limit of the model or of the search"

LineNumbers = defaultdict[str, list[int]]  # kind of warning -> numbers of the lines concerned, from 1


@verb("translate")
@click.argument("run", type=PATH)
@click.argument("file", type=PATH, default="-")
@beam_option
@option(
    "--n-best",
    type=COUNT,
    default=1,
    help="Number of translations for each line; above 1, print each as: line number from 0, |||, text, |||, score.",
)
@translate_options
@option(
    "--prefix",
    type=PATH,
    metavar="FILE",
    help="File with the beginning of each output, one line for each input line.",
)
@option(
    "--forbid",
    type=PATH,
    metavar="FILE",
    help="File of phrases that must not occur in the output, separated by tabs, one line for each input line.",
)
@option(
    "--require",
    type=PATH,
    metavar="FILE",
    help="File of phrases that must occur in the output, separated by tabs, one line for each input line.",
)
@option(
    "--ensemble",
    multiple=True,
    type=PATH,
    metavar="RUN",
    help="Another run to ensemble with; may be repeated.",
)
@option("--geometric", is_flag=True, help="Average log-probabilities instead of probabilities (--ensemble).")
@option("--stream", is_flag=True, help="Print the greedy output word by word, as it is decoded.")
@option("--engine", default="torch", metavar="[torch|ctranslate2]", help="Inference engine.")
@device_option
@option(
    "--precision",
    default="fp32",
    metavar="[fp32|bf16|int8]",
    help="Number format of the torch engine; fp32 is exact, bf16 and int8 are faster.",
)
@output_option("translations")
@set_option
@json_option
@click.pass_context
def translate(
    context: click.Context,
    run: Path,
    file: Path,
    beam: int | None,
    n_best: int,
    options: TranslateOptions,
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
    if beam is not None and n_best > beam and not options.sampling:
        raise click.UsageError(f"--n-best {n_best} needs at least --beam {n_best}, not {beam}.", context)
    if options.alignment and n_best > 1 and not as_json:
        raise click.UsageError("--alignment is that of the best translation. With --n-best use --json.", context)
    if options.rivals and not as_json:
        raise click.UsageError("--rivals needs --json.", context)
    if stream and (as_json or n_best > 1 or beam not in (None, 1) or options.alignment or forbid or require):
        raise click.UsageError(
            "--stream prints the greedy output alone: without --json, --n-best, --beam, --alignment, --forbid and "
            "--require.",
            context,
        )
    check_output(output, file)

    from manyheads.config.load import with_overrides
    from manyheads.tasks.translation import Translator
    from manyheads.training.memory import keep_decoding_small

    keep_decoding_small()
    quiet = settings_of(context).quiet
    size = lines_at_once(file, "translate", quiet=quiet)
    options = replace(options, token_scores=as_json)
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
    constraints, warned = ConstraintFiles(prefix, forbid, require), LineNumbers(list)
    with open_output(output) as sink:
        if stream:
            write_stream(translator, lines, constraints, options, sink, warned)
        else:
            results = translations(translator, lines, size, beam, n_best, constraints, options)
            lines_of = partial(output_lines, n_best=n_best)
            write_results(with_warnings(results, warned), sink, lines_of, as_json=as_json)
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
            batch, beam_size=beam, n_best=n_best, options=options, **constraints.take(len(batch))
        )
        assert len(results) == len(batch)
        yield from results
    constraints.finish()


def output_lines(index: int, translation: Translation, n_best: int) -> list[str]:
    """Return the output line of an input line, or its `n_best` lines with its index."""
    if n_best > 1:
        return [
            f"{index} ||| {hypothesis.text} ||| {hypothesis.score:.4f}" for hypothesis in translation.hypotheses
        ]
    links = "" if translation.alignment is None else f" ||| {translation.alignment}"
    return [translation.translation + links]


def write_stream(
    translator: Translator,
    lines: Iterator[str],
    constraints: ConstraintFiles,
    options: TranslateOptions,
    stream: BinaryIO,
    warned: LineNumbers,
) -> None:
    """Write the greedy translation of each line word by word; adds the numbers of the truncated lines."""
    for number, line in enumerate(lines, start=1):
        (prefix,) = constraints.take(1).get("prefixes", [""])
        pieces = translator.stream(line, prefix=prefix, options=options)
        while True:
            try:
                stream.write(text_line(next(pieces))[:-1])
            except StopIteration as end:
                if end.value:
                    warned["truncated"].append(number)
                break
            stream.flush()
        stream.write(b"\n")
        stream.flush()
    constraints.finish()


def with_warnings(results: Iterable[Translation], warned: LineNumbers) -> Iterator[Translation]:
    """Yield the translations, and add the number of each line to the kinds of warning that it has."""
    for number, translation in enumerate(results, start=1):
        names = ["truncated", *translation.warnings] if translation.truncated else translation.warnings
        for name in names:
            warned[name].append(number)
        yield translation


def print_warnings(warned: LineNumbers) -> None:
    """Print one line to stderr for each kind of warning."""
    from manyheads.tasks.assembly import WARNINGS

    for name, numbers in warned.items():
        warning = ({"truncated": TRUNCATED} | WARNINGS)[name]
        click.echo(f"warning: {warning}: line {numbers_text(numbers)}", err=True)


VERBS = {"translate": translate}
