"""`translate`: one output line for each input line, in the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import click

from bitext.files import is_stream
from bitext.lines import text_line
from manyheads.cli.options import (
    ENGINE,
    PATH,
    AsJson,
    Device,
    Executor,
    InputFile,
    Languages,
    Output,
    Overrides,
    Run,
    executor_options,
    option,
    pass_options,
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
from manyheads.search.options import SearchOptions

if TYPE_CHECKING:
    from manyheads.inference.translation.translate_file import Shard
    from manyheads.inference.translation.translator import Translation, Translator

_BROKEN_LINES = (
    "sentences go on in the next line, and each line was translated by itself. Put each sentence on one line"
)


def _parse_columns(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """Return the names of `--columns`, separated by commas."""
    if value is None:
        return ()
    from manyheads.inference.translation.translate_file import COLUMNS

    names = tuple(name.strip() for name in value.split(","))
    for name in names:
        if name not in COLUMNS:
            raise click.BadParameter(f"there is no column {name!r}. Choose from {', '.join(COLUMNS)}.")
    return names


@dataclass(frozen=True)
class _TranslateOptions:
    run: Run
    file: InputFile
    languages: Languages
    search: Annotated[SearchOptions, search_options]
    prefix_file: Annotated[Path | None, option("--prefix-file", type=PATH, metavar="FILE")]
    forbid_file: Annotated[Path | None, option("--forbid-file", type=PATH, metavar="FILE")]
    require_file: Annotated[Path | None, option("--require-file", type=PATH, metavar="FILE")]
    glossary: Annotated[Path | None, option("--glossary", type=PATH, metavar="FILE")]
    ensemble: Annotated[tuple[Path, ...], option("--ensemble", type=PATH, metavar="RUN", multiple=True)]
    columns: Annotated[tuple[str, ...], option("--columns", metavar="NAMES", callback=_parse_columns)]
    form: Annotated[str | None, option("--format", "form", type=click.Choice(["text"]))]
    stream: Annotated[bool, option("--stream", is_flag=True)]
    engine: Annotated[str, option("--engine", type=ENGINE, default="auto")]
    device: Device
    precision: Annotated[str, option("--precision", default="fp32", type=click.Choice(["fp32", "bf16", "int8"]))]
    executor: Annotated[Executor, executor_options("translate FILE", threads=", with all its threads")]
    output: Output
    overrides: Overrides
    as_json: AsJson

    @property
    def inputs(self) -> list[Path]:
        """Files that are read line by line."""
        files = (self.file, self.prefix_file, self.forbid_file, self.require_file)
        return [path for path in files if path is not None]

    @property
    def in_shards(self) -> bool:
        """Whether inputs and output are files, which are translated in shards, and not pipes or devices."""
        if self.stream or self.as_json or self.output is None or str(self.output) == "-" or is_stream(self.output):
            return False
        files = [*self.inputs, *([self.glossary] if self.glossary else [])]
        return all(path.is_file() and not is_stream(path) for path in files)


@verb("translate")
@pass_options(_TranslateOptions)
def translate(options: _TranslateOptions) -> None:
    """Translate FILE or standard input: one output line for each input line, empty lines included.

    RUN is a run directory. FILE may be compressed (.gz, .xz or .zst), and so may the file of --output, as its name
    says.

    The file of --output appears when it is complete. An interrupted translation of FILE continues when the command
    is given again: finished shards are saved beside the output file.
    """
    _check_options(options)
    if options.form is None:
        refuse_document(options.file, "--format text")
    in_shards = options.in_shards
    if options.executor != Executor() and not in_shards:
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

    source, target = options.languages
    job = TranslationJob(
        run=options.run,
        overrides=options.overrides,
        ensemble=options.ensemble,
        engine=options.engine,
        device=options.device,
        precision=options.precision,
        target=target,
        source=source,
        options=replace(options.search, token_scores=options.as_json),
        columns=options.columns,
        glossary=options.glossary,
    )
    size = lines_at_once(options.file, "translate")
    translator = job.open()
    constraints = ConstraintFiles(
        options.prefix_file, options.forbid_file, options.require_file, check=translator.check_forced
    )
    warned = WarnedLines(list)
    lines = _watch_breaks(input_lines(options.file), warned)
    if in_shards and options.output is not None:
        with line_progress("translating", options.file) as advance:
            translate_file(
                job,
                translator,
                _shards_of(lines, constraints),
                options.output,
                inputs=options.inputs,
                workers=options.executor.workers,
                scheduler=options.executor.scheduler,
                warn=partial(note_warning, warned),
                advance=advance,
            )
        print_warnings(warned)
        return
    with open_output(options.output) as sink:
        if options.stream:
            _write_stream(translator, lines, constraints, options.search, sink, warned)
        else:
            sink.writelines(map(text_line, header_lines(options.columns)))
            lines_of = partial(output_lines, n_best=options.search.n_best, columns=options.columns)
            with line_progress("translating", options.file, sink) as advance:
                results = translate_batches(
                    partial(translator.translate, options=job.options), batches(lines, size), constraints, advance
                )
                checked = collect_warnings(results, warned, warnings_of)
                write_results(checked, sink, lines_of, as_json=options.as_json)
    print_warnings(warned)


def _check_options(options: _TranslateOptions) -> None:
    """Raise `click.UsageError` for options that exclude each other."""
    search, as_json = options.search, options.as_json
    beam, n_best = search.beam_size, search.n_best
    if beam is not None and n_best > beam and not search.sampling:
        raise click.UsageError(f"--n-best {n_best} needs at least --beam {n_best}, not {beam}.")
    if search.alignment and n_best > 1 and not as_json:
        raise click.UsageError("--alignment is that of the best translation. With --n-best use --json.")
    if search.alternatives and not as_json:
        raise click.UsageError("--alternatives needs --json.")
    if options.columns and (as_json or n_best > 1):
        raise click.UsageError("--columns makes a table of the best translations: without --json and --n-best.")
    if options.stream and (
        as_json
        or n_best > 1
        or beam not in (None, 1)
        or search.alignment
        or search.match_source
        or search.min_confidence
        or options.forbid_file
        or options.require_file
        or options.glossary
        or options.columns
    ):
        raise click.UsageError(
            "--stream prints the greedy output alone: without --json, --n-best, --beam, --alignment, "
            "--match-source, --min-confidence, --forbid-file, --require-file, --glossary and --columns.",
        )


def _watch_breaks(lines: Iterator[str], warned: WarnedLines) -> Iterator[str]:
    """Yield the lines; at their end, warn if many sentences go on in the next line."""
    from manyheads.text.sentences import LineBreaks

    breaks = LineBreaks()
    yield from breaks.watch(lines)
    if breaks.many:
        note_warning(warned, _BROKEN_LINES, breaks.broken)


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
