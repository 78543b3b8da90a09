"""`data fetch` and `data report`: fetch corpora, and report on text before training."""

from __future__ import annotations

from pathlib import Path

import click

from manyheads.cli.completion import complete_corpora
from manyheads.cli.options import config_argument, json_option, option, set_option
from manyheads.cli.verbs import current_settings, echo, echo_result, verb, verb_group

__all__ = ["VERBS"]


@verb_group("data")
def data() -> None:
    """Fetch public corpora, and report on text before training."""


@verb("data fetch", data)
@click.argument("name", required=False, shell_complete=complete_corpora)
@option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    default="data",
    metavar="DIR",
    help="Directory in which the folder of the corpus is created.",
)
@json_option
def fetch(name: str | None, root: Path, as_json: bool) -> None:
    """Download the public corpus NAME and verify it; without NAME, list all corpora."""
    from manyheads.cli.progress import open_progress
    from manyheads.data import download

    if name is None:
        corpora = [
            {"name": corpus.name, "description": corpus.description, "terms": corpus.terms}
            for corpus in download.CORPORA.values()
        ]
        lines = ("{name}\n  {description}\n  Terms: {terms}".format(**corpus) for corpus in corpora)
        echo(corpora, lines, as_json=as_json)
        return
    with open_progress(current_settings()) as progress:
        folder = download.fetch(name, root, listener=progress.message)
    echo({"name": name, "root": str(folder)}, [f"Use it with: --set data.root={folder}"], as_json=as_json)


@verb("data report", data)
@config_argument
@set_option
@json_option
def report(config: str, overrides: tuple[str, ...], as_json: bool) -> None:
    """Report counts and lengths of the text of a configuration, and the share that training would use.

    CONFIG is a TOML file or the name of a recipe.
    """
    from manyheads.config.load import load_config, resolve_recipe

    settings = load_config(resolve_recipe(config), overrides)

    # imports torch: only once the configuration is valid
    from manyheads.runs.corpus import data_report

    echo_result(data_report(settings), as_json=as_json)


VERBS = {"data": data}
