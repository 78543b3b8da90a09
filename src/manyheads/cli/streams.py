r"""Read input lines and write the results of verbs, as UTF-8 in every locale; only "\n" ends a line."""

from __future__ import annotations

import io
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, TypeVar, cast

import click

from bitext.file_names import strip_compression
from bitext.files import is_stream, locked_output, replacing_output, writing
from bitext.lines import COMPRESSIONS, count_lines, decode_lines, read_lines, text_line
from bitext.placing import open_packed
from manyheads.cli.verbs import JsonResult, current_settings, warn
from manyheads.data import CALL_LINES
from manyheads.errors import DataError, ManyheadsError, UsageError
from manyheads.reports import Advance, no_advance

if TYPE_CHECKING:
    from manyheads.cli.progress import Progress

_SHOWN_NUMBERS = 10  # line numbers that a warning names
_DOCUMENTS = (  # endings of files whose lines are not plain text
    "html htm xhtml md markdown rst tex docx odt epub rtf po pot xliff xlf sdlxliff tmx resx strings srt vtt ass "
    "ssa json jsonl arb ftl xml sgm yaml yml pdf doc pptx ppt xlsx xls odp ods"
)

_Result = TypeVar("_Result", bound=JsonResult)


def refuse_document(file: Path, cure: str) -> None:
    """Raise `UsageError` for a file whose name says that its lines hold tags, keys or code; `cure` reads them."""
    ending = PurePath(strip_compression(file.name)).suffix.lower()
    if ending.removeprefix(".") in _DOCUMENTS.split():
        raise UsageError(
            f"{file} is no plain text ({ending}): its tags, keys and code would be read as text. "
            f"Take out its text. To read it line by line all the same: {cure}."
        )


def refuse_closed(stream: TextIO, name: str, cure: str) -> None:
    """Raise `UsageError` for a standard stream that was closed when the program began (`__main__`)."""
    if getattr(stream, "name", None) == os.devnull:
        raise UsageError(f"standard {name} is closed. Give {cure}, or open it.")


@contextmanager
def open_output(path: Path | None) -> Iterator[BinaryIO]:
    """Open a file for writing bytes, compressed according to its suffix; None and "-" mean stdout.

    A file appears, or replaces the older one, when it is complete. Pipes and devices, /dev/stdout among them, are
    written as they are.
    """
    if path is None or str(path) == "-":
        refuse_closed(sys.stdout, "output", "--output FILE")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with ExitStack() as stack:
        place = path
        if not is_stream(path):
            place = stack.enter_context(replacing_output(stack.enter_context(locked_output(path))))
        with writing(path):
            file = stack.enter_context(cast(BinaryIO, open_packed(place)))
        if path.suffix in COMPRESSIONS:  # flushed lines stay together, which compress better
            file = stack.enter_context(io.BufferedWriter(cast(io.RawIOBase, file)))
        yield file


def progress_display(unit: str = "tokens") -> AbstractContextManager[Progress]:
    """Open the progress display of the command line that is being run; see `open_progress`."""
    from manyheads.cli.progress import open_progress  # imports rich

    return open_progress(current_settings(), unit)


@contextmanager
def line_progress(name: str, file: Path, output: BinaryIO | None = None) -> Iterator[Advance]:
    """Show the number of finished lines of a file on stderr, if stderr is a terminal and the output is not.

    Args:
        name: name of the work, such as "translating".
        file: input; the number of its lines is known if it is an uncompressed file.
        output: open output, if it may be a terminal.
    """
    if not sys.stderr.isatty() or (output is not None and output.isatty()):
        yield no_advance
        return

    total = count_lines(file) if file.is_file() and file.suffix not in COMPRESSIONS else None
    with progress_display() as progress, progress.phase(name, total, "lines") as advance:
        yield advance


def input_lines(file: Path) -> Iterator[str]:
    """Return the lines of a file (also .gz, .xz, .zst), or of standard input for "-".

    The first line is read at once, so that an unreadable input is reported before an output file is opened and
    its former content is lost.
    """
    if str(file) == "-":
        refuse_closed(sys.stdin, "input", "a FILE")
        lines = decode_lines(sys.stdin.buffer, "standard input")
        return (line.text for line in lines)
    texts = read_lines(file)
    return chain(list(islice(texts, 1)), texts)


def lines_at_once(file: Path, purpose: str) -> int:
    """Return the number of lines to compute in one call: 1 on a terminal, where a hint is printed unless quiet."""
    if str(file) != "-" or not sys.stdin.isatty():
        return CALL_LINES
    if not current_settings().quiet:
        click.echo(f"Type a line to {purpose} it; Ctrl-D ends.", err=True)
    return 1


def write_json(document: object, stream: BinaryIO) -> None:
    """Write one JSON document."""
    text = json.dumps(document, ensure_ascii=False, indent=2)
    stream.write(text.encode(errors="backslashreplace") + b"\n")


def write_results(
    results: Iterable[_Result],
    stream: BinaryIO,
    lines_of: Callable[[int, _Result], Iterable[str]],
    *,
    as_json: bool,
) -> None:
    """Write the results of all lines, as one JSON list or line by line.

    Args:
        results: one result for each input line, in order.
        stream: output.
        lines_of: returns the output lines of the input line with an index, from 0.
        as_json: whether to write JSON.
    """
    if as_json:
        write_json([result.to_json() for result in results], stream)
        return
    for index, result in enumerate(results):
        stream.writelines(text_line(text) for text in lines_of(index, result))
        stream.flush()


WarnedLines = defaultdict[str, list[int]]  # warning -> numbers of the first lines concerned, from 1


def collect_warnings(
    results: Iterable[_Result], warned: WarnedLines, warnings_of: Callable[[_Result], Iterable[str]]
) -> Iterator[_Result]:
    """Yield the results of all lines, and add the number of each line to the warnings about its result."""
    for number, result in enumerate(results, start=1):
        for warning in warnings_of(result):
            note_warning(warned, warning, [number])
        yield result


def note_warning(warned: WarnedLines, warning: str, numbers: Sequence[int]) -> None:
    """Add line numbers to a warning, as many as are shown and one more."""
    noted = warned[warning]
    noted += numbers[: _SHOWN_NUMBERS + 1 - len(noted)]


def print_warnings(warned: WarnedLines) -> None:
    """Print one line to stderr for each warning, unless the command line is quiet."""
    for warning, numbers in warned.items():
        warn(f"{warning}: line {numbers_text(numbers)}")


def numbers_text(numbers: Sequence[int]) -> str:
    """Return line numbers as text: the first ten."""
    return ", ".join(map(str, numbers[:_SHOWN_NUMBERS])) + (", ..." if len(numbers) > _SHOWN_NUMBERS else "")


class ConstraintFiles:
    """The files of --prefix-file, --forbid-file and --require-file, with one line for each input line.

    Args:
        prefix: file of the beginnings of the outputs.
        forbid: file of forbidden phrases, separated by tabs.
        require: file of required phrases, separated by tabs.
        check: raises `UsageError` for a text that no output can hold, called with the text and its name.
    """

    def __init__(
        self,
        prefix: Path | None = None,
        forbid: Path | None = None,
        require: Path | None = None,
        check: Callable[[str, str], object] = lambda text, name: None,
    ) -> None:
        paths = {"prefixes": prefix, "forbidden": forbid, "required": require}
        self.files = {name: (path, read_lines(path)) for name, path in paths.items() if path is not None}
        self.check, self.taken = check, 0

    def take(self, count: int) -> dict[str, Any]:
        """Return the constraints of the next `count` input lines, as arguments of `Translator.translate`.

        Raises:
            DataError: a file has fewer lines than the input.
            UsageError: no output can hold a prefix or a phrase; the message names file and line.
        """
        taken: dict[str, Any] = {}
        for name, (path, stream) in self.files.items():
            lines = list(islice(stream, count))
            if len(lines) < count:
                raise DataError(
                    f"{path} has fewer lines than the input. Give one for each line, empty where not needed."
                )
            taken[name] = lines if name == "prefixes" else [line.split("\t") for line in lines]
            for number, line in enumerate(lines if name != "forbidden" else (), start=self.taken + 1):
                try:
                    for text in [line] if name == "prefixes" else line.split("\t"):
                        self.check(text, "prefix" if name == "prefixes" else "phrase")
                except UsageError as error:
                    raise UsageError(f"{path}, line {number}: {error}") from error
        self.taken += count
        return taken

    def finish(self) -> None:
        """Raise `DataError` when a file has more lines than the input."""
        for path, stream in self.files.values():
            if next(stream, None) is not None:
                raise DataError(f"{path} has more lines than the input. Give one for each line.")


def batches(lines: Iterator[str], size: int) -> Iterator[list[str]]:
    """Yield lists of `size` lines; when a line cannot be read, the lines before it are yielded before its error."""
    batch: list[str] = []
    try:
        for line in lines:
            batch.append(line)
            if len(batch) == size:
                yield batch
                batch = []
    except ManyheadsError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch
