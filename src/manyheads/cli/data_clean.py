"""`data clean`: remove pairs that harm the training, with the reason for each."""

from __future__ import annotations

import os
from pathlib import Path

from bitext.shell import command_line
from manyheads.cli.options import config_argument, executor_options, folder_option, json_option, set_option
from manyheads.cli.streams import progress_display
from manyheads.cli.verbs import echo, verb


@verb("data clean")
@config_argument
@set_option
@folder_option(required=True, help="Folder to write the cleaned text, the removed pairs and the report into.")
@executor_options("clean")
@json_option
def clean(
    config: str,
    overrides: tuple[str, ...],
    out: Path,
    workers: int | None,
    scheduler: str | None,
    as_json: bool,
) -> None:
    """Remove pairs that hurt a training from its text: wrong language, copies, cut or unrelated lines, and more.

    CONFIG is a TOML file or the name of a recipe; its section [clean] has the thresholds. The command that trains
    on the text that is left is printed at the end. Every removed pair is saved with its reason and its scores in
    removed.tsv.gz; report.html shows examples. The same command resumes a cleaning that was interrupted.
    """
    from manyheads.config.load import load_config, resolve_recipe
    from manyheads.config.load.toml import to_toml

    path = resolve_recipe(config)
    settings = load_config(path, overrides)

    # imports torch: only once the configuration is valid
    from manyheads.runs.clean import clean as clean_text

    with progress_display() as progress:
        report = clean_text(settings, out, workers=workers, scheduler=scheduler, listener=progress)
    limit = [] if settings.data.limit is None else ["data.limit=none"]  # what is left was read with it
    kept = [text for text in overrides if not text.strip().startswith(("data.train", "data.limit", "clean."))]
    train = to_toml([_from_root(out / name, settings.data.root) for name in report.files])
    words = [word for text in (*kept, *limit, f"data.train={train}") for word in ("--set", text)]
    command = command_line("manyheads", "train", Path(config), *words, "-o", Path("runs") / f"{path.stem}-clean")
    following = [f"Next: {command}"]
    if path == Path(config):  # no recipe: a file of the user
        following.append(f"or write into [data] of {path}: train = {train}")
    echo(report.to_json(), [*report.lines(), *following], as_json=as_json)


def _from_root(file: Path, root: str) -> str:
    """Return a file as `data.train` names it: from `data.root`, or absolute if they do not lie together."""
    file, folder, current = file.resolve(), Path(root).expanduser().resolve(), Path.cwd()
    together = file.is_relative_to(current) and folder.is_relative_to(current)
    return Path(os.path.relpath(file, folder) if together or file.is_relative_to(folder) else file).as_posix()
