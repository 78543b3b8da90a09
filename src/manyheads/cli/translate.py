"""`translate`: one output line for each input line, in the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from bitext.files import is_stream
from bitext.lines import text_line
from manyheads.cli.options import (
    ENGINE,
    PATH,
    device_option,
    direction_options,
    executor_options,
    json_option,
    option,
    output_option,
    run_argument,
    run_option,
    set_option,
)
from manyheads.cli.search_options import search_options
from manyheads.cli.streams import (
    ConstraintFiles,
    WarnedLines,
    batches,
    collect_warnings,
    input_lines,
    line_progress,
    lines_at_once,
    note_warning,
    open_output,
    print_warnings,
    refuse_document,
    write_results,
)
from manyheads.cli.verbs import verb
from manyheads.reports import Advance, no_advance

if TYPE_CHECKING:
    from manyheads.inference.translation.translate_file import Shard
    from manyheads.inference.translation.translator import Translation, Translator
    from manyheads.search.options import SearchOptions

_BROKEN_LINES = (
    "sentences go on in the next line, and each line was translated by itself. Put each sentence on one line"
)
_COLUMNS = ("score", "truncated", "repeated", "confidence")


def _parse_columns(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Return the names of `--columns`, separated by commas."""
    names = tuple(name.strip() for name in value.split(",")) if value is not None else ()
    for name in names:
        if name not in _COLUMNS:
            raise click.BadParameter(f"there is no column {name!r}. Choose from {', '.join(_COLUMNS)}.")
    return names


@verb("translate")
@run_argument
@click.argument("file", type=PATH, default="-")
@direction_options
@search_options
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
@option(
    "--glossary",
    type=PATH,
    metavar="FILE",
    help="File of terms and the translations that they must have: a term, a tab, its translation, one pair a line.",
)
@run_option("--ensemble", multiple=True, help="Another run to ensemble with; may be repeated.")
@option(
    "--columns",
    metavar="NAMES",
    callback=_parse_columns,
    help="Write a table for spreadsheets, tab-separated values with a header: the translation and the columns "
    "named, such as score,truncated,repeated,confidence. The score is that of --n-best; truncated and repeated are "
    "0 or 1; the confidence is from 0 to 1.",
)
@option(
    "--format",
    "form",
    type=click.Choice(["text"]),
    help="Read FILE as plain text, line by line, also if its name is that of a document, such as app.po.",
)
@option("--stream", is_flag=True, help="Print the greedy output word by word, as it is decoded.")
@option(
    "--engine",
    type=ENGINE,
    default="auto",
    help="Inference engine: native is the C code, torch are torch operators; auto takes the C code where it can "
    "compute.",
)
@device_option
@option(
    "--precision",
    default="fp32",
    type=click.Choice(["fp32", "bf16", "int8"]),
    help="Number format of the computation; fp32 is exact, bf16 and int8 are faster.",
)
@executor_options("translate FILE", threads=", with all its threads")
@output_option("translations")
@set_option
@json_option
def translate(
    run: Path,
    file: Path,
    target: str,
    source: str,
    options: SearchOptions,
    prefix_file: Path | None,
    forbid_file: Path | None,
    require_file: Path | None,
    glossary: Path | None,
    ensemble: tuple[Path, ...],
    columns: tuple[str, ...],
    form: str | None,
    stream: bool,
    engine: str,
    device: str,
    precision: str,
    workers: int | None,
    scheduler: str | None,
    output: Path | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> None:
    """Translate FILE or standard input: one output line for each input line, empty lines included.

    RUN is a run directory. FILE may be compressed (.gz, .xz or .zst), and so may the file of --output, as its name
    says.

    The file of --output appears when it is complete. An interrupted translation of FILE continues when the command
    is given again: finished shards are saved beside the output file.
    """
    _check_options(options, columns=columns, as_json=as_json)
    if stream and (
        as_json
        or options.n_best > 1
        or options.beam_size not in (None, 1)
        or options.alignment
        or options.match_source
        or options.min_confidence
        or forbid_file
        or require_file
        or glossary
        or columns
    ):
        raise click.UsageError(
            "--stream prints the greedy output alone: without --json, --n-best, --beam, --alignment, "
            "--match-source, --min-confidence, --forbid-file, --require-file, --glossary and --columns.",
        )
    if form is None:
        refuse_document(file, "--format text")
    inputs = [path for path in (file, prefix_file, forbid_file, require_file) if path is not None]
    in_shards = not stream and not as_json and _all_files([*inputs, *([glossary] if glossary else [])], output)
    if (workers is not None or scheduler is not None) and not in_shards:
        raise click.UsageError(
            "--workers and --scheduler need FILE and --output FILE, no pipes, without --json and --stream."
        )

    from manyheads.inference.translation.translate_file import (
        TranslationJob,
        header_lines,
        output_lines,
        translate_file,
        warnings_of,
    )

    job = TranslationJob(
        run=run,
        overrides=overrides,
        ensemble=ensemble,
        engine=engine,
        device=device,
        precision=precision,
        target=target,
        source=source,
        options=replace(options, token_scores=as_json),
        columns=columns,
        glossary=glossary,
    )
    size = lines_at_once(file, "translate")
    translator = job.open()
    constraints = ConstraintFiles(prefix_file, forbid_file, require_file, check=translator.check_forced)
    warned = WarnedLines(list)
    lines = _watch_breaks(input_lines(file), warned)
    if in_shards and output is not None:
        with line_progress("translating", file) as advance:
            translate_file(
                job,
                translator,
                _shards_of(lines, constraints),
                output,
                inputs=inputs,
                workers=workers,
                scheduler=scheduler,
                warn=partial(note_warning, warned),
                advance=advance,
            )
        print_warnings(warned)
        return
    with open_output(output) as sink:
        if stream:
            _write_stream(translator, lines, constraints, options, sink, warned)
        else:
            sink.writelines(map(text_line, header_lines(columns)))
            lines_of = partial(output_lines, n_best=options.n_best, columns=columns)
            with line_progress("translating", file, sink) as advance:
                results = translate_batches(
                    partial(translator.translate, options=job.options), batches(lines, size), constraints, advance
                )
                write_results(collect_warnings(results, warned, warnings_of), sink, lines_of, as_json=as_json)
    print_warnings(warned)


def _check_options(options: SearchOptions, *, columns: tuple[str, ...], as_json: bool) -> None:
    """Raise `click.UsageError` for options that exclude each other."""
    beam, n_best = options.beam_size, options.n_best
    if beam is not None and n_best > beam and not options.sampling:
        raise click.UsageError(f"--n-best {n_best} needs at least --beam {n_best}, not {beam}.")
    if options.alignment and n_best > 1 and not as_json:
        raise click.UsageError("--alignment is that of the best translation. With --n-best use --json.")
    if options.alternatives and not as_json:
        raise click.UsageError("--alternatives needs --json.")
    if columns and (as_json or n_best > 1):
        raise click.UsageError("--columns makes a table of the best translations: without --json and --n-best.")


def _watch_breaks(lines: Iterator[str], warned: WarnedLines) -> Iterator[str]:
    """Yield the lines; at their end, warn if many sentences go on in the next line."""
    from manyheads.text.sentences import LineBreaks

    breaks = LineBreaks()
    yield from breaks.watch(lines)
    if breaks.many:
        note_warning(warned, _BROKEN_LINES, breaks.broken)


def _all_files(inputs: Sequence[Path], output: Path | None) -> bool:
    """Return whether inputs and output are files, which are translated in shards, and not pipes or devices."""
    if output is None or str(output) == "-" or is_stream(output):
        return False
    return all(path.is_file() and not is_stream(path) for path in inputs)


def _shards_of(lines: Iterator[str], constraints: ConstraintFiles) -> Iterator[Shard]:
    from manyheads.inference.translation.translate_file import SHARD_LINES, Shard

    start = count(step=SHARD_LINES)
    for shard_lines in batches(lines, SHARD_LINES):
        yield Shard(next(start), shard_lines, constraints.take(len(shard_lines)))
    constraints.finish()


def translate_batches(
    translate_lines: Callable[..., list[Translation]],
    line_batches: Iterable[list[str]],
    constraints: ConstraintFiles,
    advance: Advance = no_advance,
) -> Iterator[Translation]:
    """Yield the translation of each line; `translate_lines` takes a batch, and its constraints as arguments."""
    for batch in line_batches:
        results = translate_lines(batch, **constraints.take(len(batch)))
        assert len(results) == len(batch)
        advance(len(batch))
        yield from results
    constraints.finish()


def _write_stream(
    translator: Translator,
    lines: Iterator[str],
    constraints: ConstraintFiles,
    options: SearchOptions,
    stream: BinaryIO,
    warned: WarnedLines,
) -> None:
    """Write the greedy translation of each line word by word, and collect the numbers of truncated lines."""
    from manyheads.inference.translation.translate_file import TRUNCATED

    def pieces(number: int, line: str) -> Iterator[str]:
        (prefix,) = constraints.take(1).get("prefixes", [""])
        truncated = yield from translator.stream(line, prefix=prefix, options=options)
        if truncated:
            note_warning(warned, TRUNCATED, [number])

    for number, line in enumerate(lines, start=1):
        for piece in pieces(number, line):
            stream.write(text_line(piece)[:-1])
            stream.flush()
        stream.write(b"\n")
        stream.flush()
    constraints.finish()


VERBS = {"translate": translate}
