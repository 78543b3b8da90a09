"""The command line of bitext: `convert`, `split` and `fetch` of `commands`, `clean` and `report` on plain files."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, get_args

import click

from bitext import __version__
from bitext.cleaning.options import CleanOptions, RuleName
from bitext.commands import (
    PATH,
    Host,
    check_files,
    convert_command,
    executor_options,
    fetch_command,
    languages_of,
    split_command,
)
from bitext.errors import BitextError
from bitext.files import cure_of
from bitext.program import BITEXT

_MAX_RATIO = 9.0  # of the lengths of two sides, above which a report counts a pair as a mistake
_INTERRUPTED = 130  # exit code after Ctrl-C


class _Progress:
    """Messages on stderr, and on a terminal a bar for each step of a known size."""

    def message(self, text: str) -> None:
        click.echo(text, err=True)

    @contextmanager
    def phase(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Callable[[int], object]]:
        if not total or not sys.stderr.isatty():
            self.message(f"{name} ...")
            yield lambda count: None
            return
        with click.progressbar(length=total, label=name, file=sys.stderr) as bar:
            yield bar.update


@contextmanager
def _open_progress() -> Iterator[_Progress]:
    yield _Progress()


def _echo(document: object, lines: Iterable[str], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False))
        return
    for line in lines:
        click.echo(line)


_option = partial(click.option, show_default=True)
_HOST = Host(BITEXT, _option, click.Path(path_type=Path, file_okay=False, readable=False), _open_progress, _echo)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
def program() -> None:
    """Convert, divide, clean, report on and fetch parallel text."""


program.command("convert")(convert_command(_HOST))
program.command("split")(split_command(_HOST))
program.command("fetch")(fetch_command(_HOST))


def _text_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the files of a text and their languages."""
    source = _HOST.language("--source", "ending of the first FILE", "Language of the first text.")
    target = _HOST.language("--target", "ending of the second FILE", "Language of the second text.")
    files = click.argument("files", metavar="FILE [FILE]", nargs=-1, required=True, type=PATH)
    return files(source(target(command)))


@program.command()
@_text_options
@_HOST.output(required=True, help="Folder to write the kept text, the removed pairs and the report into.")
@_option(
    "--off",
    multiple=True,
    metavar="RULE",
    type=click.Choice(get_args(RuleName)),
    help=f"Rule or repair that is not applied; may be repeated: {', '.join(get_args(RuleName))}.",
)
@_option(
    "--max-ratio",
    type=float,
    default=CleanOptions.max_ratio,
    metavar="X",
    help="Largest ratio of the length of a side to what the other side suggests.",
)
@_option(
    "--loss",
    type=float,
    default=CleanOptions.loss,
    metavar="X",
    help="Share of good pairs that the lexical score may remove.",
)
@executor_options(_option, "clean")
@_HOST.json
def clean(
    files: tuple[Path, ...],
    source: str | None,
    target: str | None,
    out: Path,
    off: tuple[RuleName, ...],
    max_ratio: float,
    loss: float,
    workers: int | None,
    scheduler: str | None,
    as_json: bool,
) -> None:
    """Repair parallel text, and remove pairs that hurt a training: wrong language, copies, cut lines, and more.

    FILE FILE are two texts of equally many lines, in files named by their languages, such as corpus.de corpus.en,
    also packed (.gz, .xz, .zst); or FILE is one .tsv or .jsonl file. Every removed pair is saved with its reason
    and its scores in removed.tsv.gz; report.html shows examples. The same command resumes a cleaning that was
    interrupted.
    """
    from bitext.cleaning.corpus import clean_text, text_of_files
    from bitext.pairs import TextFiles

    check_files(files)
    text = TextFiles.of(files, languages_of(files, source, target))
    options = CleanOptions(off, max_ratio, loss)
    progress = _Progress()
    report = clean_text(
        text_of_files(text, options, files[0].name.partition(".")[0]),
        out,
        options,
        progress.phase,
        progress.message,
        workers=workers,
        scheduler=scheduler,
    )
    _echo(report.to_json(), report.lines(), as_json=as_json)


@program.command()
@_text_options
@_HOST.json
def report(files: tuple[Path, ...], source: str | None, target: str | None, as_json: bool) -> None:
    """Report counts and lengths of parallel text, duplicates, overlaps of its splits, and what a filter would drop.

    FILE FILE are two texts of equally many lines, in files named by their languages; or FILE is one .tsv or .jsonl
    file; or FILE is a folder with the files of train, valid and test, as `bitext split` writes them.
    """
    from bitext.discover import find_text
    from bitext.filtering import FilterRules, fault_of_pair
    from bitext.pairs import Pair, TextFiles, read_pairs
    from bitext.report import report as measure

    if len(files) == 1 and files[0].is_dir():
        found = find_text(files[0], source, target)
        languages = found.source, found.target
        texts = {
            split: tuple(files[0] / f"{name}.{language}" for language in languages)
            for split, name in found.splits.items()
        } or {"train": found.undivided}
    else:
        check_files(files)
        languages, texts = languages_of(files, source, target), {"train": files}
    pairs: dict[str, Iterable[Pair]] = {
        split: read_pairs(TextFiles.of(paths, languages)) for split, paths in texts.items()
    }
    rules = FilterRules(partial(fault_of_pair, max_ratio=_MAX_RATIO))
    result = measure(languages, pairs, lambda text: " ".join(text.split()), rules)
    _echo(result.to_json(), result.lines(), as_json=as_json)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return the exit code; a user's mistake is printed as one `error:` line."""
    try:
        program.main(list(arguments), prog_name="bitext", standalone_mode=False)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BitextError as error:
        click.echo(f"error: {error}", err=True)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return _INTERRUPTED
    except OSError as error:
        click.echo(f"error: {error.filename or 'output'}: {error.strerror}. {cure_of(error)}", err=True)
        return 3
    return 0
