"""`data fetch`, `data convert`, `data split` and `data report`: get text, divide it, and report on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bitext.shell import command_line, quote
from manyheads.cli.data_clean import clean
from manyheads.cli.data_convert import convert
from manyheads.cli.options import (
    COUNT,
    NOT_NEGATIVE,
    OUTPUT_FOLDER,
    PATH,
    config_argument,
    folder_option,
    json_option,
    language_option,
    option,
    set_option,
)
from manyheads.cli.streams import progress_display
from manyheads.cli.verbs import current_settings, echo, verb, verb_group
from manyheads.errors import UsageError

if TYPE_CHECKING:
    from bitext.split import SplitOptions, SplitResult


@verb_group("data")
def data() -> None:
    """Fetch and convert text, divide it into train, valid and test, and report on text before training."""


data.add_command(convert)


@verb("data fetch", data)
@click.argument("name", required=False)
@option(
    "--root",
    type=OUTPUT_FOLDER,
    default="data",
    metavar="DIR",
    help="Directory in which the folder of the corpus is created.",
)
@language_option("--source", None, "Source language of corpora of the public indexes.")
@language_option("--target", None, "Target language of corpora of the public indexes.")
@json_option
def fetch(name: str | None, root: Path, source: str | None, target: str | None, as_json: bool) -> None:
    """Download the public corpus NAME and verify it; without NAME, list all corpora.

    Public indexes (OPUS, Statmt, ELRC and others) are listed with --source and --target: all corpora of two
    languages whose names hold NAME. A full NAME of an index downloads this corpus into files of lines. Both need
    the program mtdata.
    """
    from bitext import download
    from bitext.catalogue import CORPORA
    from manyheads.data.corpus import PROGRAM

    if bool(source) != bool(target):
        raise UsageError("The public indexes are listed by two languages. Give both: --source ko --target en.")
    if name not in CORPORA and (source or "-" in (name or "")):
        _fetch_from_index(name or "", root, (source, target) if source and target else None, as_json)
        return
    if name is None:
        corpora = [
            {"name": corpus.name, "description": corpus.description, "terms": corpus.terms}
            for corpus in CORPORA.values()
        ]
        lines = ("{name}\n  {description}\n  Terms: {terms}".format(**corpus) for corpus in corpora)
        echo(corpora, lines, as_json=as_json)
        return
    with progress_display() as progress:
        folder = download.fetch(name, root, listener=progress.message, program=PROGRAM)
    echo(
        {"name": name, "root": str(folder)}, [f"Use it with: --set {quote(f'data.root={folder}')}"], as_json=as_json
    )


def _fetch_from_index(name: str, root: Path, languages: tuple[str, str] | None, as_json: bool) -> None:
    """List corpora of the public indexes, or download the corpus with exactly this name."""
    from bitext.download import unknown_corpus
    from bitext.public_index import fetch_entry, find_entries, is_entry_name
    from manyheads.data.corpus import PROGRAM

    if is_entry_name(name):
        with progress_display() as progress:
            result = fetch_entry(name, root, languages, progress.message, PROGRAM)
        following = f"Next: {command_line('manyheads', 'data', 'split', *result.files)}"
        echo(result.to_json(), [*result.lines(), following], as_json=as_json)
        return
    if languages is None:
        raise unknown_corpus(name, PROGRAM)
    entries = find_entries(*languages, name)
    if not entries:
        raise UsageError(f'No corpus of {" and ".join(languages)} in the public indexes has "{name}" in its name.')
    lines = (f"{entry.name}\n  {entry.url}" for entry in entries)
    echo([vars(entry) for entry in entries], lines, as_json=as_json)


@verb("data split", data)
@click.argument("files", metavar="FILE [FILE]", nargs=-1, required=True, type=PATH)
@folder_option(show_default="data/SOURCE-TARGET", help="Folder to write the files of train, valid and test into.")
@option("--valid", type=COUNT, show_default="5 % of the pairs, at most 2,000", help="Number of pairs for valid.")
@option(
    "--test",
    type=NOT_NEGATIVE,
    show_default="5 % of the pairs, at most 2,000",
    help="Number of pairs for test; 0 writes no test.",
)
@language_option("--source", "ending of the first FILE", "Language of the first text.")
@language_option("--target", "ending of the second FILE", "Language of the second text.")
@option("--seed", type=NOT_NEGATIVE, default=1, help="Seed of the random choice.")
@option("--equal-only", is_flag=True, help="Keep only equal sentences together, not near-duplicates.")
@option(
    "--document-file",
    "documents",
    type=PATH,
    metavar="FILE",
    help="File with the document name of each pair, one a line; documents are not split.",
)
@option("--blank-lines", is_flag=True, help="End a document at each line that is blank in both files.")
@option("--replace-invalid", is_flag=True, help="Replace bytes that are not UTF-8 by U+FFFD instead of stopping.")
@json_option
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

    FILE FILE are two texts of equally many lines, in files named by their languages, such as corpus.de corpus.en,
    also packed (.gz, .xz, .zst); or FILE is one .tsv or .jsonl file. Sentences are equal if their letters are:
    case, punctuation, white space and digits do not count. Pairs with an equal sentence, and near copies, stay
    together. The same seed always makes the same choice. No file is overwritten.
    """
    from bitext.split import SplitOptions

    _check_files(files)
    if documents is not None and blank_lines:
        raise UsageError("--document-file and --blank-lines both say where documents end. Give one of them.")
    languages = _languages_of(files, source, target)
    out = out or Path("data") / "-".join(languages)
    options = SplitOptions(valid, test, seed, not equal_only, documents, blank_lines, replace_invalid)
    result = divide(files, out, languages, options)
    direction = "--source", languages[0], "--target", languages[1]
    following = command_line("manyheads", "init", "-".join(languages), "--data", out, *direction)
    echo(result.to_json(), [*result.lines(), f"Next: {following}"], as_json=as_json)


def _check_files(files: tuple[Path, ...]) -> None:
    """Refuse anything but two files, one for each side, or one .tsv or .jsonl file with both sides."""
    from bitext.file_names import SINGLE_FILE_KINDS, strip_compression

    if len(files) > 2:
        raise UsageError(f"{len(files)} files are given. Name two, source and target, or one .tsv or .jsonl file.")
    if len(files) == 1 and not strip_compression(files[0].name).endswith(SINGLE_FILE_KINDS):
        raise UsageError(f"{files[0]} alone is no parallel text. Name the file of the other language, too.")
    if len(files) == 2 and files[0] == files[1]:
        raise UsageError(f"{files[0]} is given twice. Name the file of the other language.")


def _languages_of(files: tuple[Path, ...], source: str | None, target: str | None) -> tuple[str, str]:
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


def divide(files: tuple[Path, ...], out: Path, languages: tuple[str, str], options: SplitOptions) -> SplitResult:
    """Divide a text, with a progress display."""
    from bitext.lines import count_lines
    from bitext.split import split_corpus

    total = 2 * count_lines(files[0]) if files[0].is_file() else None  # the text is read twice
    with (
        progress_display() as progress,
        progress.phase("dividing the text", total, "pairs") as advance,
    ):
        return split_corpus(files, out, languages, options, advance)


data.add_command(clean)


@verb("data report", data)
@config_argument
@set_option
@json_option
def _report(config: str, overrides: tuple[str, ...], as_json: bool) -> None:
    """Report counts and lengths of the text of a configuration, the pairs that training keeps, and problems.

    CONFIG is a TOML file or the name of a recipe. `manyheads doctor CONFIG` prints the same report, and examines
    the settings and a new model, too.
    """
    from manyheads.config.load import load_config, resolve_recipe

    settings = load_config(resolve_recipe(config), overrides)

    # imports torch: only once the configuration is valid
    from manyheads.runs.examine_config import examine_config_text

    with progress_display() as progress:
        result = examine_config_text(settings, config, listener=progress)
    language = current_settings().language or "en"
    echo(result.to_json(language), result.lines(language), as_json=as_json)


VERBS = {"data": data}
