"""`init`: write a configuration file to edit, from a recipe or for the user's own text."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from bitext.files import locked_beside, os_errors, replacing, write_atomically
from bitext.shell import command_line
from manyheads.cli.options import OUTPUT_FOLDER, PATH, RECIPE, Device, language_option, option, pass_options
from manyheads.cli.streams import progress_display
from manyheads.cli.verbs import announce_loading, verb
from manyheads.errors import DataError, UsageError

if TYPE_CHECKING:
    from bitext.discover import FoundText


@dataclass(frozen=True)
class _InitOptions:
    folder: Annotated[Path, click.argument("folder", metavar="DIR", type=OUTPUT_FOLDER)]
    recipe: Annotated[str | None, option("--from", "recipe", type=RECIPE, metavar="RECIPE")]
    root: Annotated[Path | None, option("--data", "root", type=PATH, metavar="PATH")]
    source: Annotated[str | None, language_option("--source", show_default="as the names of the files show")]
    target: Annotated[str | None, language_option("--target", show_default="as the names of the files show")]
    minutes: Annotated[float | None, option("--minutes", type=click.FloatRange(min=0, min_open=True), metavar="N")]
    yes: Annotated[bool, option("--yes", is_flag=True)]
    device: Device


@verb("init")
@pass_options(_InitOptions)
def init(options: _InitOptions) -> None:
    """Write the configuration file DIR/DIR.toml for you to edit: a copy of a recipe, or settings for your own text.

    Settings chosen for your own text are explained in comments. They depend on the size of the text and, with
    --minutes, on the speed of this machine, which is measured in a few seconds. Text that is not divided into train
    and valid yet is divided into DIR/data, after a question (see `manyheads data split`).
    """
    if (options.recipe is None) == (options.root is None):
        raise click.UsageError("give either --from RECIPE to copy, or --data PATH of your own text.")
    if options.recipe is not None and (options.source or options.target or options.minutes or options.yes):
        raise click.UsageError("--source, --target, --minutes and --yes are for your own text (--data).")
    path = options.folder / f"{options.folder.resolve().name}.toml"
    _refuse_existing(path)
    if options.recipe is not None:
        _copy_recipe(options.recipe, path)
    elif options.root is not None:
        _configure_text(options, options.root, path)


def _copy_recipe(recipe: str, path: Path) -> None:
    """Copy a recipe or plan, and print the next commands."""
    from manyheads.config.load import resolve_recipe
    from manyheads.improve.build.plan import plan_paths

    plan = plan_paths().get(recipe)
    _write(path, (plan or resolve_recipe(recipe)).read_bytes())
    build = f"  {command_line('manyheads', 'build', path, '--dry-run')}"
    click.echo("\n".join([f"{path}: edit it, then", *([build] if plan else _next_steps(path))]))


def _configure_text(options: _InitOptions, root: Path, path: Path) -> None:
    """Write settings for a text; a text without train and valid is divided first."""
    from bitext.discover import find_text
    from manyheads.data import PROGRAM

    text = find_text(root, options.source, options.target, PROGRAM)
    if text.undivided:
        _divide_text(text, root, path, options.yes)
        root = path.parent / "data"
        text = find_text(root, text.source, text.target, PROGRAM)

    announce_loading()
    from manyheads.runs.suggest import suggest

    with progress_display() as progress:
        suggestion = suggest(
            text, root, path.parent, minutes=options.minutes, device=options.device, listener=progress
        )
    _write(path, suggestion.toml.encode())
    click.echo(f"{path}: settings for {suggestion.pairs:,} pairs of {text.source} and {text.target} in {root}")
    click.echo("\n".join([*suggestion.lines(), "Edit the file, then", *_next_steps(path)]))


def _divide_text(text: FoundText, root: Path, path: Path, agreed: bool) -> None:
    """Divide a text into the folder `data` beside the configuration file, after a question.

    Raises:
        DataError: there is no terminal for the question, or the answer is no; the message holds the command.
    """
    from bitext.commands import divide
    from bitext.split import SplitOptions
    from manyheads.cli.data import HOST

    out = path.parent / "data"
    named = " and ".join(file.name for file in text.undivided)
    missing = " and ".join(name for name in ("train", "valid") if name not in text.splits)
    problem = f"{root} holds {named}, but no {missing}"
    direction = ["--source", text.source, "--target", text.target]
    no_test = ["--test", "0"] if "test" in text.splits else []
    command = command_line("manyheads", "data", "split", *text.undivided, *direction, *no_test, "-o", out)
    following = command_line("manyheads", "init", path.parent, "--data", out, *direction)
    if out.is_dir() and any(out.iterdir()):
        raise DataError(f"{out} holds a text already. Remove the folder, or use the text:\n  {following}")
    interactive = not agreed and sys.stdin.isatty() and sys.stdout.isatty()
    if interactive:
        click.echo(f"{problem}. This command divides the text:\n  {command}")
        agreed = click.confirm("Run it now?", default=True)
    if not agreed:
        raise DataError(
            f"{problem}. Add --yes to let this command divide the text, or divide it first:\n"
            f"  {command}\n  {following}"
        )
    test = _existing_files(root, text)
    result = divide(HOST, text.undivided, out, (text.source, text.target), SplitOptions(test=0 if test else None))
    click.echo("\n".join(result.lines()))
    for file in test:
        with replacing(out / file.name) as draft:
            shutil.copyfile(file, draft)
        click.echo(f"{out / file.name}: copied from {root}")


def _existing_files(root: Path, text: FoundText) -> list[Path]:
    from bitext.file_names import existing

    names = (
        (f"{text.splits['test']}.{language}" for language in (text.source, text.target))
        if "test" in text.splits
        else ()
    )
    return [path for name in names if (path := existing(root / name))]


def _next_steps(path: Path) -> list[str]:
    """Return the next commands, and the run directory that the training writes."""
    return [
        f"  {command_line('manyheads', 'doctor', path)}    examines the text, the settings and a new model",
        f"  {command_line('manyheads', 'train', path)}     writes the run {Path('runs') / path.stem}",
    ]


def _write(path: Path, content: bytes) -> None:
    """Write a new file; raise `UsageError` if it cannot be written."""
    with locked_beside(path, UsageError), os_errors(f"{path} cannot be written", UsageError):
        _refuse_existing(path)
        write_atomically(path, content)


def _refuse_existing(path: Path) -> None:
    if os.path.lexists(path):
        raise UsageError(f"{path} is there already; choose another folder, or delete it.")


VERBS = {"init": init}
