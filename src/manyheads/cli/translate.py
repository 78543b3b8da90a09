"""`translate`: one output line for each input line, in the same order, and documents with their structure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import click

from bitext.files import is_stream, os_errors
from bitext.lines import text_line
from manyheads.cli.options import (
    COUNT,
    ENGINE,
    OUTPUT,
    PATH,
    AsJson,
    Device,
    Executor,
    Languages,
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
    progress_display,
    refuse_document,
    write_results,
)
from manyheads.cli.verbs import current_settings, verb
from manyheads.documents.formats import FORMATS, SUFFIXES
from manyheads.errors import UsageError, WriteError
from manyheads.reports import Advance, no_advance
from manyheads.search.options import SearchOptions

if TYPE_CHECKING:
    from manyheads.documents.document import Document
    from manyheads.inference.translation.translate_file import Shard, TranslationJob
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
    files: Annotated[tuple[Path, ...], click.argument("files", metavar="[FILE]...", type=PATH, nargs=-1)]
    languages: Languages
    search: Annotated[SearchOptions, search_options]
    prefix_file: Annotated[Path | None, option("--prefix-file", type=PATH, metavar="FILE")]
    forbid_file: Annotated[Path | None, option("--forbid-file", type=PATH, metavar="FILE")]
    require_file: Annotated[Path | None, option("--require-file", type=PATH, metavar="FILE")]
    glossary: Annotated[Path | None, option("--glossary", type=PATH, metavar="FILE")]
    ensemble: Annotated[tuple[Path, ...], option("--ensemble", type=PATH, metavar="RUN", multiple=True)]
    columns: Annotated[tuple[str, ...], option("--columns", metavar="NAMES", callback=_parse_columns)]
    form: Annotated[str | None, option("--format", "form", type=click.Choice(["text", *FORMATS]))]
    bilingual: Annotated[bool, option("--bilingual", is_flag=True)]
    everything: Annotated[bool, option("--all", "everything", is_flag=True)]
    line_length: Annotated[int | None, option("--line-length", type=COUNT, metavar="N")]
    reading_speed: Annotated[
        float | None, option("--reading-speed", type=click.FloatRange(min=0, min_open=True), metavar="X")
    ]
    stream: Annotated[bool, option("--stream", is_flag=True)]
    engine: Annotated[str, option("--engine", type=ENGINE, default="auto")]
    device: Device
    precision: Annotated[str, option("--precision", default="fp32", type=click.Choice(["fp32", "bf16", "int8"]))]
    executor: Annotated[Executor, executor_options("translate FILE", threads=", with all its threads")]
    output: Annotated[Path | None, option("-o", "--output", type=OUTPUT, metavar="FILE", show_default="stdout")]
    overrides: Overrides
    as_json: AsJson

    @property
    def constraints(self) -> list[Path]:
        """Files with a line for each line of the input."""
        return [path for path in (self.prefix_file, self.forbid_file, self.require_file) if path is not None]

    def in_shards(self, file: Path, output: Path | None) -> bool:
        """Return whether inputs and output are files, which are translated in shards, and not pipes or devices."""
        if self.stream or self.as_json or output is None or str(output) == "-" or is_stream(output):
            return False
        files = [file, *self.constraints, *([self.glossary] if self.glossary else [])]
        return all(path.is_file() and not is_stream(path) for path in files)


@verb("translate")
@pass_options(_TranslateOptions)
def translate(options: _TranslateOptions) -> None:
    """Translate FILE or standard input: one output line for each input line, empty lines included.

    RUN is a run directory. FILE may be compressed (.gz, .xz or .zst), and so may the file of --output, as its name
    says.

    A FILE whose name or content is that of a document (subtitles, HTML, Markdown, office files, books, catalogues
    of messages) becomes the same document in the other language. Of several files, or of all documents in a folder,
    the translations go to the folder of --output.

    The file of --output appears when it is complete. An interrupted translation of FILE continues when the command
    is given again: finished shards are saved beside the output file.
    """
    _check_options(options)
    pairs = _outputs(options)
    for file, _ in pairs:
        if options.form is None and file.suffix.lower() not in SUFFIXES:
            refuse_document(file, "--format text")

    from manyheads.inference.translation.translate_file import TranslationJob

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
    translator = job.open()
    for file, output in pairs:
        document = _document(options, file, translator)
        if document is None:
            _translate_lines(options, job, translator, file, output)
        else:
            _translate_document(options, job, translator, document, file, output)


def _outputs(options: _TranslateOptions) -> list[tuple[Path, Path | None]]:
    """Return each input with its output.

    Raises:
        UsageError: several inputs without a folder for their outputs.
    """
    files, output = options.files or (Path("-"),), options.output
    if len(files) == 1 and not files[0].is_dir():
        if output is not None and output.is_dir():
            return [(files[0], output / files[0].name)]
        return [(files[0], output)]
    if output is None or (output.exists() and not output.is_dir()):
        raise UsageError("several files, or a folder, need a folder for their translations: -o FOLDER.")
    pairs: list[tuple[Path, Path | None]] = []
    for file in files:
        found = (
            sorted(path for path in file.rglob("*") if path.suffix.lower() in SUFFIXES) if file.is_dir() else [file]
        )
        if not found:
            raise UsageError(f"{file} holds no document ({', '.join(SUFFIXES)}).")
        pairs += [(path, output / (path.relative_to(file) if file.is_dir() else path.name)) for path in found]
    if len({place for _, place in pairs}) < len(pairs):
        raise UsageError("two of the files have the same name; translate them into different folders.")
    for file, place in pairs:
        assert place is not None
        if place.exists() and place.samefile(file):
            raise UsageError(f"{file} would be replaced by its translation; write to another folder.")
        with os_errors(f"{place.parent} cannot be made", WriteError):
            place.parent.mkdir(parents=True, exist_ok=True)
    return pairs


def _document(options: _TranslateOptions, file: Path, translator: Translator) -> Document | None:
    """Return the document in a file; None for plain text.

    Raises:
        UsageError: options for lines of text, with a document.
    """
    from manyheads.documents.document import ReadOptions
    from manyheads.inference.translation.documents import read_file

    if options.form == "text" or (options.form is None and (not file.is_file() or is_stream(file))):
        return None
    read_options = ReadOptions(
        str(file), *translator.config.languages, options.everything, options.line_length, options.reading_speed
    )
    document = read_file(file, options.form, read_options)
    if document is None:
        return None
    search = options.search
    for_lines = {
        "--n-best": search.n_best > 1,
        "--alignment": search.alignment,
        "--alternatives": search.alternatives,
        "--json": options.as_json,
        "--stream": options.stream,
        "--columns": options.columns,
        "--prefix-file": options.prefix_file,
        "--forbid-file": options.forbid_file,
        "--require-file": options.require_file,
    }
    if any(for_lines.values()):
        names = ", ".join(name for name, given in for_lines.items() if given)
        raise UsageError(f"{file} is a document, and {names} is for lines of text (--format text).")
    return document


def _translate_document(
    options: _TranslateOptions,
    job: TranslationJob,
    translator: Translator,
    document: Document,
    file: Path,
    output: Path | None,
) -> None:
    """Write the translation of a document, and print the report."""
    from manyheads.inference.translation.translate_file import translate_document_file

    with progress_display() as progress, progress.phase("translating", len(document.units), "texts") as advance:
        if options.in_shards(file, output) and output is not None:
            report = translate_document_file(
                job,
                translator,
                document,
                output,
                inputs=[file],
                workers=options.executor.workers,
                scheduler=options.executor.scheduler,
                bilingual=options.bilingual,
                advance=advance,
            )
        else:
            data, report = translator.translate_document(
                document, bilingual=options.bilingual, options=job.options, advance=advance
            )
            with open_output(output) as sink:
                sink.write(data)
    if not current_settings().quiet:
        click.echo("\n".join([f"{file}: {report.lines()[0]}", *report.lines()[1:]]), err=True)


def _translate_lines(
    options: _TranslateOptions, job: TranslationJob, translator: Translator, file: Path, output: Path | None
) -> None:
    """Translate a file line by line."""
    from manyheads.inference.translation.translate_file import (
        header_lines,
        output_lines,
        translate_file,
    )
    from manyheads.inference.translation.translator import warnings_of

    in_shards = options.in_shards(file, output)
    if options.executor != Executor() and not in_shards:
        raise click.UsageError(
            "--workers and --scheduler need FILE and --output FILE, no pipes, without --json and --stream."
        )
    size = lines_at_once(file, "translate")
    constraints = ConstraintFiles(
        options.prefix_file, options.forbid_file, options.require_file, check=translator.check_forced
    )
    warned = WarnedLines(list)
    lines = _watch_breaks(input_lines(file), warned)
    if in_shards and output is not None:
        with line_progress("translating", file) as advance:
            translate_file(
                job,
                translator,
                _shards_of(lines, constraints),
                output,
                inputs=[file, *options.constraints],
                workers=options.executor.workers,
                scheduler=options.executor.scheduler,
                warn=partial(note_warning, warned),
                advance=advance,
            )
        print_warnings(warned)
        return
    with open_output(output) as sink:
        if options.stream:
            _write_stream(translator, lines, constraints, options.search, sink, warned)
        else:
            sink.writelines(map(text_line, header_lines(options.columns)))
            lines_of = partial(output_lines, n_best=options.search.n_best, columns=options.columns)
            with line_progress("translating", file, sink) as advance:
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
    from manyheads.inference.translation.translator import TRUNCATED

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
