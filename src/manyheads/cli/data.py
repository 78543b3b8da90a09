"""The verbs `data ...`: those of bitext for plain files, `clean` and `report` for text of a configuration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bitext.commands import Host, convert_command, fetch_command, split_command
from bitext.shell import command_line, quote
from manyheads.cli.data_clean import clean
from manyheads.cli.options import OUTPUT_FOLDER, AsJson, ConfigName, Overrides, option, pass_options
from manyheads.cli.streams import progress_display
from manyheads.cli.verbs import current_settings, echo, verb, verb_group
from manyheads.data import PROGRAM

if TYPE_CHECKING:
    from bitext.split import SplitResult


@verb_group("data")
def data() -> None:
    """Fetch and convert text, divide it into train, valid and test, and report on text before training."""


def _use_corpus(folder: Path) -> Iterator[str]:
    yield f"Use it with: --set {quote(f'data.root={folder}')}"


def _write_settings(result: SplitResult) -> Iterator[str]:
    direction = "--source", result.source, "--target", result.target
    name = f"{result.source}-{result.target}"
    yield f"Next: {command_line('manyheads', 'init', name, '--data', result.root, *direction)}"


HOST = Host(PROGRAM, option, OUTPUT_FOLDER, progress_display, echo, _use_corpus, _write_settings)
verb("data convert", data)(convert_command(HOST))
verb("data fetch", data)(fetch_command(HOST))
verb("data split", data)(split_command(HOST))
data.add_command(clean)


@dataclass(frozen=True)
class _ReportOptions:
    config: ConfigName
    overrides: Overrides
    as_json: AsJson


@verb("data report", data)
@pass_options(_ReportOptions)
def _report(options: _ReportOptions) -> None:
    """Report counts and lengths of the text of a configuration, the pairs that training keeps, and problems.

    CONFIG is a TOML file or the name of a recipe. `manyheads doctor CONFIG` prints the same report, and examines
    the settings and a new model, too.
    """
    from manyheads.config.load import load_config, resolve_recipe

    config = load_config(resolve_recipe(options.config), options.overrides)

    # imports torch: only once the configuration is valid
    from manyheads.runs.examine_config import examine_config_text

    with progress_display() as progress:
        result = examine_config_text(config, options.config, listener=progress)
    language = current_settings().language or "en"
    echo(result.to_json(language), result.lines(language), as_json=options.as_json)


VERBS = {"data": data}
