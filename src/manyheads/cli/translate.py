"""`translate`: one output line for each input line, in the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
    run_argument,
    run_option,
    set_option,
)
from manyheads.cli.search_options import translate_options
from manyheads.cli.streams import (
    ConstraintFiles,
    WarnedLines,
    batches,
    check_output,
    collect_warnings,
    input_lines,
    line_progress,
    lines_at_once,
    open_output,
    print_warnings,
    text_line,
    write_results,
)
from manyheads.cli.verbs import verb
from manyheads.training.log import Advance, no_advance

if TYPE_CHECKING:
    from manyheads.search.options import TranslateOptions
    from manyheads.tasks.translation import Translation, Translator

__all__ = ["VERBS"]

TRUNCATED = "cut at the length limit of the model or of the search"


@verb("translate")
@run_argument
@click.argument("file", type=PATH, default="-")
@beam_option
@option(
    "--n-best",
    type=COUNT,
    default=1,
    help="Number of translations for each line; above 1, print each as: line number from 0, |||, text, |||, score. "
    "The score is the log-probability in nats, divided by length ** search.length_penalty: nearer to 0 is "
    "likelier.",
)
@translate_options
@option(
    "--prefix-file",
    type=PATH,
    metavar="FILE",
    help="File with the beginning of each output, one line for each input line.",
)
@option(
    "--forbid-file",
    type=PATH,
    metavar="FILE",
    help="File of phrases that must not occur in the output, separated by tabs, one line for each input line.",
)
@option(
    "--require-file",
    type=PATH,
    metavar="FILE",
    help="File of phrases that must occur in the output, separated by tabs, one line for each input line.",
)
@run_option("--ensemble", multiple=True, help="Another run to ensemble with; may be repeated.")
@option("--geometric", is_flag=True, help="Average log-probabilities instead of probabilities (--ensemble).")
@option("--stream", is_flag=True, help="Print the greedy output word by word, as it is decoded.")
@option("--engine", type=click.Choice(["torch", "ctranslate2"]), default="torch", help="Inference engine.")
@device_option
@option(
    "--precision",
    default="fp32",
    type=click.Choice(["fp32", "bf16", "int8"]),
    help="Number format of the torch engine; fp32 is exact, bf16 and int8 are faster.",
)
@output_option("translations")
@set_option
@json_option
def translate(
    run: Path,
    file: Path,
    beam: int | None,
    n_best: int,
    options: TranslateOptions,
    prefix_file: Path | None,
    forbid_file: Path | None,
    require_file: Path | None,
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
    """Translate FILE or standard input: one output line for each input line, empty lines included.

    RUN is a run directory, or with --engine ctranslate2 also an exported one. FILE may be compressed (.gz, .xz or
    .zst).
    """
    if beam is not None and n_best > beam and not options.sampling:
        raise click.UsageError(f"--n-best {n_best} needs at least --beam {n_best}, not {beam}.")
    if options.alignment and n_best > 1 and not as_json:
        raise click.UsageError("--alignment is that of the best translation. With --n-best use --json.")
    if options.rivals and not as_json:
        raise click.UsageError("--rivals needs --json.")
    if stream and (
        as_json or n_best > 1 or beam not in (None, 1) or options.alignment or forbid_file or require_file
    ):
        raise click.UsageError(
            "--stream prints the greedy output alone: without --json, --n-best, --beam, --alignment, "
            "--forbid-file and --require-file.",
        )
    check_output(output, file)

    from manyheads.config.load import with_overrides
    from manyheads.tasks.translation import Translator
    from manyheads.training.memory import keep_decoding_small

    keep_decoding_small()
    size = lines_at_once(file, "translate")
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
    constraints, warned = ConstraintFiles(prefix_file, forbid_file, require_file), WarnedLines(list)
    with open_output(output) as sink:
        if stream:
            write_stream(translator, lines, constraints, options, sink, warned)
        else:
            translate_lines = partial(translator.translate, beam_size=beam, n_best=n_best, options=options)
            lines_of = partial(output_lines, n_best=n_best)
            with line_progress("translating", file, sink) as advance:
                results = translations(translate_lines, batches(lines, size), constraints, advance)
                write_results(collect_warnings(results, warned, warnings_of), sink, lines_of, as_json=as_json)
    print_warnings(warned)


def translations(
    translate_lines: Callable[..., list[Translation]],
    line_batches: Iterable[list[str]],
    constraints: ConstraintFiles,
    advance: Advance = no_advance,
) -> Iterator[Translation]:
    """Yield the translation of each line in order, translating each batch in one call."""
    for batch in line_batches:
        results = translate_lines(batch, **constraints.take(len(batch)))
        assert len(results) == len(batch)
        advance(len(batch))
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
    warned: WarnedLines,
) -> None:
    """Write the greedy translation of each line word by word; adds the numbers of the truncated lines."""

    def pieces(number: int, line: str) -> Iterator[str]:
        (prefix,) = constraints.take(1).get("prefixes", [""])
        truncated = yield from translator.stream(line, prefix=prefix, options=options)
        if truncated:
            warned[TRUNCATED].append(number)

    for number, line in enumerate(lines, start=1):
        for piece in pieces(number, line):
            stream.write(text_line(piece)[:-1])
            stream.flush()
        stream.write(b"\n")
        stream.flush()
    constraints.finish()


def warnings_of(translation: Translation) -> list[str]:
    """Return the warnings about a translation, in words."""
    from manyheads.tasks.assembly import WARNINGS

    return [TRUNCATED] * translation.truncated + [WARNINGS[name] for name in translation.warnings]


VERBS = {"translate": translate}
