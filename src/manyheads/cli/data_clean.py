"""`data clean`: remove pairs that harm the training, with the reason for each."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from bitext.shell import command_line
from manyheads.cli.options import (
    OUTPUT_FOLDER,
    AsJson,
    ConfigName,
    Executor,
    Overrides,
    executor_options,
    option,
    pass_options,
)
from manyheads.cli.streams import progress_display
from manyheads.cli.verbs import echo, verb


@dataclass(frozen=True)
class _CleanOptions:
    config: ConfigName
    overrides: Overrides
    out: Annotated[Path, option("-o", "--output", "out", type=OUTPUT_FOLDER, metavar="DIR", required=True)]
    executor: Annotated[Executor, executor_options("clean")]
    as_json: AsJson


@verb("data clean")
@pass_options(_CleanOptions)
def clean(options: _CleanOptions) -> None:
    """Remove pairs that hurt a training from its text: wrong language, copies, cut or unrelated lines, and more.

    CONFIG is a TOML file or the name of a recipe; its section [clean] has the thresholds. The command that trains
    on the text that is left is printed at the end. Every removed pair is saved with its reason and its scores in
    removed.tsv.gz; report.html shows examples. The same command resumes a cleaning that was interrupted.
    """
    from manyheads.config.load import load_config, resolve_recipe
    from manyheads.config.load.toml import to_toml

    path = resolve_recipe(options.config)
    config = load_config(path, options.overrides)

    # imports torch: only once the configuration is valid
    from manyheads.runs.clean import clean as clean_text

    with progress_display() as progress:
        workers, scheduler = options.executor
        report = clean_text(config, options.out, workers=workers, scheduler=scheduler, listener=progress)
    limit = [] if config.data.limit is None else ["data.limit=none"]  # what is left was read with it
    own = ("data.train", "data.limit", "clean.")
    kept = [text for text in options.overrides if not text.strip().startswith(own)]
    train = to_toml([_from_root(options.out / name, config.data.root) for name in report.files])
    words = [word for text in (*kept, *limit, f"data.train={train}") for word in ("--set", text)]
    run = Path("runs") / f"{path.stem}-clean"
    following = [f"Next: {command_line('manyheads', 'train', Path(options.config), *words, '-o', run)}"]
    if path == Path(options.config):  # no recipe: a file of the user
        following.append(f"or write into [data] of {path}: train = {train}")
    echo(report.to_json(), [*report.lines(), *following], as_json=options.as_json)


def _from_root(file: Path, root: str) -> str:
    """Return a file as `data.train` names it: from `data.root`, or absolute if they do not lie together."""
    file, folder, current = file.resolve(), Path(root).expanduser().resolve(), Path.cwd()
    together = file.is_relative_to(current) and folder.is_relative_to(current)
    return Path(os.path.relpath(file, folder) if together or file.is_relative_to(folder) else file).as_posix()
