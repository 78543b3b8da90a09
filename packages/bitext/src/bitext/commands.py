"""The commands `convert`, `split` and `fetch`, which bitext and other programs offer; needs the extra `cli`.

A program makes a command of each function: `click.command("split")(split_command(host))`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from bitext.errors import UsageError
from bitext.files import is_stream
from bitext.program import Program

if TYPE_CHECKING:
    from bitext.split import SplitOptions, SplitResult

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
PATH = click.Path(path_type=Path)
_AT_LEAST_ONE, _NOT_NEGATIVE = click.IntRange(1), click.IntRange(0)
_DEFAULT_SIZE = "5 % of the pairs, at most 2,000"


class Progress(Protocol):
    """Display of the progress of a command."""

    def message(self, text: str) -> None:
        """Show one line about what is done."""

    def phase(
        self, name: str, total: int | None = None, unit: str = ""
    ) -> AbstractContextManager[Callable[[int], object]]:
        """Show a step of a number of units; the block calls the function with the numbers that are done."""
        ...


@dataclass(frozen=True)
class Host:
    """A program that offers the commands: how it declares options, shows progress, and prints results.

    Attributes:
        program: name and version, for notes and messages.
        option: as `click.option`.
        folder: type of the path of a folder that a command writes.
        progress: opens the display of the progress.
        echo: prints a result: the JSON document if `as_json`, else the lines.
        after_fetch: returns the lines that say what to do with the folder of a fetched corpus.
        after_split: returns the lines that say what to do with the splits.
    """

    program: Program
    option: Callable[..., Decorator]
    folder: click.Path
    progress: Callable[[], AbstractContextManager[Progress]]
    echo: Callable[..., object]
    after_fetch: Callable[[Path], Iterable[str]] = lambda folder: ()
    after_split: Callable[[SplitResult], Iterable[str]] = lambda result: ()

    def json(self, command: Callable[..., Any]) -> Callable[..., Any]:
        """Add the option --json."""
        return self.option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout.")(command)

    def output(self, **settings: Any) -> Decorator:
        """Return the option for the folder to write."""
        return self.option("-o", "--output", "out", type=self.folder, metavar="DIR", **settings)

    def language(self, name: str, default: str | None, text: str) -> Decorator:
        """Return an option for the code of a language; `default` is shown in the help."""
        return self.option(name, metavar="LANGUAGE", show_default=default or True, help=text)

    def following(self, command: str, *words: str | Path) -> str:
        """Return the line that says which command comes next."""
        return f"Next: {self.program.line(command, *words)}"


def executor_options(option: Callable[..., Decorator], work: str, *, threads: str = "") -> Decorator:
    """Return the decorator with --workers and --scheduler: where the shards of a text are computed.

    Args:
        option: as `click.option`.
        work: work of the processes, such as "clean".
        threads: text after "this process" in the help, if the process has several threads.
    """
    default, processes = f"this process{threads}", f"Number of processes to {work} in, each with one thread."
    where = "on the workers of a Dask scheduler, such as tcp://HOST:8786 (extra cluster)."
    workers = option("--workers", type=_AT_LEAST_ONE, show_default=default, help=processes)
    scheduler = option("--scheduler", metavar="ADDRESS", help=f"{work[0].upper()}{work[1:]} {where}")
    return lambda command: workers(scheduler(command))


# --- convert ---


def _parse_columns(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, str] | None:
    """Return the two names of `--columns`, separated by a comma."""
    if value is None:
        return None
    source, comma, target = (part.strip() for part in value.partition(","))
    if not (source and comma and target) or "," in target:
        raise click.BadParameter(f"{value!r} does not name two columns. Name them as SOURCE,TARGET.")
    return source, target


def convert_command(host: Host) -> Callable[..., None]:
    """Return the function of the command `convert`, with its options."""
    option = host.option

    @click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
    @host.output(required=True, help="Folder to write into.")
    @host.language("--source", "named by the file", "Language of the source text.")
    @host.language("--target", "named by the file", "Language of the target text.")
    @option(
        "--name",
        metavar="NAME",
        show_default="FILE up to its first full stop",
        help="Name of the files that are written.",
    )
    @option(
        "--columns",
        metavar="NAMES",
        callback=_parse_columns,
        show_default="the languages, or source and target",
        help="Columns of a table to take, such as German,English: source, then target; numbers from 1 for a table "
        "without header.",
    )
    @option("--dataset-split", "split", default="train", metavar="NAME", help="Split of a Hugging Face data set.")
    @option(
        "--licence", metavar="TEXT", show_default="stated by the file", help="Licence of the text, for model cards."
    )
    @option(
        "--origin", metavar="TEXT", show_default="stated by the file", help="Origin of the text, for model cards."
    )
    @option("--keep-access-keys", is_flag=True, help="Keep access keys, such as _Cancel, &File or (_C).")
    @option("--strict", is_flag=True, help="Stop at a damaged unit or row, instead of leaving it out.")
    @executor_options(option, "tidy and pack the text")
    @host.json
    def convert(
        files: tuple[str, ...],
        out: Path,
        source: str | None,
        target: str | None,
        name: str | None,
        columns: tuple[str, str] | None,
        split: str,
        licence: str | None,
        origin: str | None,
        keep_access_keys: bool,
        strict: bool,
        workers: int | None,
        scheduler: str | None,
        as_json: bool,
    ) -> None:
        """Write parallel text of any form as two packed files of lines, with a note of its licence and origin.

        FILE is a zip archive of OPUS (Moses format), a .tmx, .xlf, .xliff, .po, .tsv, .csv, .jsonl or .parquet
        file, or hf:NAME, a data set of Hugging Face; FILE FILE are two files of lines, or pipes of them ("-" is
        standard input). Files may be packed (.gz, .xz, .zst). All text goes to NAME.SOURCE.gz and NAME.TARGET.gz in
        DIR: line i of one is the translation of line i of the other. A line end within a text becomes a blank.
        Pairs without text on a side, damaged units of TMX and XLIFF, and messages that are untranslated or fuzzy
        are left out and counted. No file is overwritten.
        """
        from bitext.convert import ConvertOptions, convert_files
        from bitext.executors import open_executor
        from bitext.formats.text import TextRequest

        first = Path(files[0].removeprefix("hf:"))
        name = name or ("" if is_stream(first) else first.name.partition(".")[0])
        if not name or Path(name).name != name or name.startswith((".", "-")):
            raise UsageError(f'"{name or files[0]}" cannot name files. Choose another: --name NAME.')
        request = TextRequest(source, target, columns, split, strict)
        options = ConvertOptions(name, request, licence, origin, keep_access_keys, host.program)
        with (
            open_executor(scheduler, workers) as executor,
            host.progress() as progress,
            progress.phase("converting", None, "pairs") as advance,
        ):
            result = convert_files(files, out, options, advance, executor if workers or scheduler else None)
        host.echo(result.to_json(), [*result.lines(), host.following("split", *result.files)], as_json=as_json)

    return convert


# --- split ---


def split_command(host: Host) -> Callable[..., None]:
    """Return the function of the command `split`, with its options."""
    option = host.option

    @click.argument("files", metavar="FILE [FILE]", nargs=-1, required=True, type=PATH)
    @host.output(show_default="data/SOURCE-TARGET", help="Folder to write the files of train, valid and test into.")
    @option("--valid", type=_AT_LEAST_ONE, show_default=_DEFAULT_SIZE, help="Number of pairs for valid.")
    @option(
        "--test",
        type=_NOT_NEGATIVE,
        show_default=_DEFAULT_SIZE,
        help="Number of pairs for test; 0 writes no test.",
    )
    @host.language("--source", "ending of the first FILE", "Language of the first text.")
    @host.language("--target", "ending of the second FILE", "Language of the second text.")
    @option("--seed", type=_NOT_NEGATIVE, default=1, help="Seed of the random choice.")
    @option("--equal-only", is_flag=True, help="Keep only equal sentences together, not near-duplicates.")
    @option(
        "--document-file",
        "documents",
        type=PATH,
        metavar="FILE",
        help="File with the document name of each pair, one a line; documents are not split.",
    )
    @option("--blank-lines", is_flag=True, help="End a document at each line that is blank in both files.")
    @option(
        "--replace-invalid", is_flag=True, help="Replace bytes that are not UTF-8 by U+FFFD instead of stopping."
    )
    @host.json
    def split(
        files: tuple[Path, ...],
        out: Path | None,
        valid: int | None,
        test: int | None,
        source: str | None,
        target: str | None,
        seed: int,
        equal_only: bool,
        documents: Path | None,
        blank_lines: bool,
        replace_invalid: bool,
        as_json: bool,
    ) -> None:
        """Divide parallel text into train, valid and test, without the same sentence or a near copy in two of them.

        FILE FILE are two texts of equally many lines, in files named by their languages, such as corpus.de
        corpus.en, also packed (.gz, .xz, .zst); or FILE is one .tsv or .jsonl file. Sentences are equal if their
        letters are: case, punctuation, white space and digits do not count. Pairs with an equal sentence, and near
        copies, stay together. The same seed always makes the same choice. No file is overwritten.
        """
        from bitext.split import SplitOptions

        check_files(files)
        if documents is not None and blank_lines:
            raise UsageError("--document-file and --blank-lines both say where documents end. Give one of them.")
        languages = languages_of(files, source, target)
        options = SplitOptions(valid, test, seed, not equal_only, documents, blank_lines, replace_invalid)
        result = divide(host, files, out or Path("data") / "-".join(languages), languages, options)
        host.echo(result.to_json(), [*result.lines(), *host.after_split(result)], as_json=as_json)

    return split


def check_files(files: tuple[Path, ...]) -> None:
    """Refuse anything but two files, one for each side, or one .tsv or .jsonl file with both sides."""
    from bitext.file_names import SINGLE_FILE_KINDS, strip_compression

    if len(files) > 2:
        raise UsageError(f"{len(files)} files are given. Name two, source and target, or one .tsv or .jsonl file.")
    if len(files) == 1 and not strip_compression(files[0].name).endswith(SINGLE_FILE_KINDS):
        raise UsageError(f"{files[0]} alone is no parallel text. Name the file of the other language, too.")
    if len(files) == 2 and files[0] == files[1]:
        raise UsageError(f"{files[0]} is given twice. Name the file of the other language.")


def languages_of(files: tuple[Path, ...], source: str | None, target: str | None) -> tuple[str, str]:
    """Return the languages of the files: those of the options, else those in the file names."""
    from bitext.file_names import check_language, languages_of_files

    from_names = languages_of_files(files) or (None, None)
    names = source or from_names[0], target or from_names[1]
    if names[0] is None or names[1] is None:
        named = " and ".join(path.name for path in files)
        raise UsageError(f"The languages cannot be told from {named}. Say them: --source de --target en.")
    if names[0] == names[1]:
        raise UsageError(f"Both texts have the language {names[0]}. Say both: --source de --target en.")
    return check_language(names[0]), check_language(names[1])


def divide(
    host: Host, files: tuple[Path, ...], out: Path, languages: tuple[str, str], options: SplitOptions
) -> SplitResult:
    """Divide a text, with a progress display."""
    from bitext.lines import count_lines
    from bitext.split import split_corpus

    total = 2 * count_lines(files[0]) if files[0].is_file() else None  # the text is read twice
    with host.progress() as progress, progress.phase("dividing the text", total, "pairs") as advance:
        return split_corpus(files, out, languages, options, advance)


# --- fetch ---


def fetch_command(host: Host) -> Callable[..., None]:
    """Return the function of the command `fetch`, with its options."""

    @click.argument("name", required=False)
    @host.option(
        "--root",
        type=host.folder,
        default="data",
        metavar="DIR",
        help="Directory in which the folder of the corpus is created.",
    )
    @host.language("--source", None, "Source language of corpora of the public indexes.")
    @host.language("--target", None, "Target language of corpora of the public indexes.")
    @host.json
    def fetch(name: str | None, root: Path, source: str | None, target: str | None, as_json: bool) -> None:
        """Download the public corpus NAME and verify it; without NAME, list all corpora.

        Public indexes (OPUS, Statmt, ELRC and others) are listed with --source and --target: all corpora of two
        languages whose names hold NAME. A full NAME of an index downloads this corpus into files of lines. Both
        need the program mtdata.
        """
        from bitext import download
        from bitext.catalogue import CORPORA

        echo = partial(host.echo, as_json=as_json)
        if bool(source) != bool(target):
            raise UsageError("The public indexes are listed by two languages. Give both: --source ko --target en.")
        if name not in CORPORA and (source or "-" in (name or "")):
            languages = (source, target) if source and target else None
            echo(*_fetch_from_index(host, name or "", root, languages))
            return
        if name is None:
            corpora = [
                {"name": corpus.name, "description": corpus.description, "terms": corpus.terms}
                for corpus in CORPORA.values()
            ]
            echo(corpora, ("{name}\n  {description}\n  Terms: {terms}".format(**corpus) for corpus in corpora))
            return
        with host.progress() as progress:
            folder = download.fetch(name, root, listener=progress.message, program=host.program)
        echo({"name": name, "root": str(folder)}, host.after_fetch(folder))

    return fetch


def _fetch_from_index(
    host: Host, name: str, root: Path, languages: tuple[str, str] | None
) -> tuple[object, Iterable[str]]:
    """List corpora of the public indexes, or download the corpus with exactly this name; return JSON and lines."""
    from bitext.download import unknown_corpus
    from bitext.public_index import fetch_entry, find_entries, is_entry_name

    if is_entry_name(name):
        with host.progress() as progress:
            result = fetch_entry(name, root, languages, progress.message, host.program)
        return result.to_json(), [*result.lines(), host.following("split", *result.files)]
    if languages is None:
        raise unknown_corpus(name, host.program)
    entries = find_entries(*languages, name)
    if not entries:
        raise UsageError(f'No corpus of {" and ".join(languages)} in the public indexes has "{name}" in its name.')
    return [vars(entry) for entry in entries], (f"{entry.name}\n  {entry.url}" for entry in entries)
