"""`data convert`: convert parallel text of any supported format to files of lines."""

from __future__ import annotations

from pathlib import Path

import click

from bitext.files import is_stream
from bitext.shell import command_line
from manyheads.cli.options import executor_options, folder_option, json_option, language_option, option
from manyheads.cli.streams import progress_display
from manyheads.cli.verbs import echo, verb
from manyheads.errors import UsageError


def _parse_columns(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, str] | None:
    """Return the two names of `--columns`, separated by a comma."""
    if value is None:
        return None
    source, comma, target = (part.strip() for part in value.partition(","))
    if not (source and comma and target) or "," in target:
        raise click.BadParameter(f"{value!r} does not name two columns. Name them as SOURCE,TARGET.")
    return source, target


@verb("data convert")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@folder_option(required=True, help="Folder to write into.")
@language_option("--source", "named by the file", "Language of the source text.")
@language_option("--target", "named by the file", "Language of the target text.")
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
@option("--origin", metavar="TEXT", show_default="stated by the file", help="Origin of the text, for model cards.")
@option("--keep-access-keys", is_flag=True, help="Keep access keys, such as _Cancel, &File or (_C).")
@option("--strict", is_flag=True, help="Stop at a damaged unit or row, instead of leaving it out.")
@executor_options("tidy and pack the text")
@json_option
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

    FILE is a zip archive of OPUS (Moses format), a .tmx, .xlf, .xliff, .po, .tsv, .csv, .jsonl or .parquet file, or
    hf:NAME, a data set of Hugging Face; FILE FILE are two files of lines, or pipes of them ("-" is standard input).
    Files may be packed (.gz, .xz, .zst). All text goes to NAME.SOURCE.gz and NAME.TARGET.gz in DIR: line i of one
    is the translation of line i of the other. A line end within a text becomes a blank. Pairs without text on a
    side, damaged units of TMX and XLIFF, and messages that are untranslated or fuzzy are left out and counted. No
    file is overwritten.
    """
    from bitext.convert import ConvertOptions, convert_files
    from bitext.executors import open_executor
    from bitext.formats.text import TextRequest
    from manyheads.data.corpus import PROGRAM

    first = Path(files[0].removeprefix("hf:"))
    name = name or ("" if is_stream(first) else first.name.partition(".")[0])
    if not name or Path(name).name != name or name.startswith((".", "-")):
        raise UsageError(f'"{name or files[0]}" cannot name files. Choose another: --name NAME.')
    request = TextRequest(source, target, columns, split, strict)
    options = ConvertOptions(name, request, licence, origin, keep_access_keys, PROGRAM)
    with (
        open_executor(scheduler, workers) as executor,
        progress_display() as progress,
        progress.phase("converting", None, "pairs") as advance,
    ):
        result = convert_files(files, out, options, advance, executor if workers or scheduler else None)
    following = f"Next: {command_line('manyheads', 'data', 'split', *result.files)}"
    echo(result.to_json(), [*result.lines(), following], as_json=as_json)
