"""`recipes`, `init` and `show-config`: configurations to begin with, and to read."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.cli.verbs import Verb, echo_json, in_color, json_option, set_option
from manyheads.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from manyheads.config.schema import Config

__all__ = ["VERBS"]

MEASURED = "Measured:"  # begins the last part of the comment at the head of a recipe: its result
FIRST_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z])")


@click.command(
    cls=Verb,
    epilog="""\b
Example:
  manyheads recipes --json""",
)
@json_option()
def recipes(as_json: bool) -> None:
    """List the recipes: what each trains, and the result that was measured.

    Where fewer updates were measured too, as many as a slower processor makes in the time, their scores are listed.
    """
    from manyheads.config.load import recipe_paths

    found = [
        {"name": name, **headline(path.read_text("utf-8")), "scores": scores_of(path)}
        for name, path in recipe_paths().items()
    ]
    if as_json:
        echo_json(found)
        return
    for recipe in found:
        click.secho(recipe["name"], bold=True, color=in_color(sys.stdout))
        result = recipe["measured"] and f"{MEASURED} {recipe['measured']}"
        table = recipe["scores"] and f"Scores: {recipe['scores']}"
        for text in (recipe["description"], result, table):
            if text:
                click.echo(click.wrap_text(text, 100, "  ", "  "))


def scores_of(path: Path) -> str | None:
    """Return the scores of a configuration file by number of updates; None where it has none for its settings."""
    from manyheads.config.load import load_config

    try:
        config = load_config(path)
    except ConfigError:
        return None  # a file with mistakes can be copied to mend them
    return config.measured.summary() if config.measured.settings == config.fingerprint else None


def headline(text: str) -> dict[str, Any]:
    """The first sentence of the comment a recipe begins with, and its measured result or None."""
    lines = takewhile(lambda line: line.startswith("#"), text.split("\n"))
    comment = " ".join(line.lstrip("#").strip() for line in lines)
    description, _, measured = comment.partition(MEASURED)
    return {"description": FIRST_SENTENCE.split(description, 1)[0].strip(), "measured": measured.strip() or None}


@click.command(
    cls=Verb,
    epilog="""\b
Examples:
  manyheads init swahili --data my/text --source en --target sw
  manyheads init mine --from multi30k-en-de""",
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--from", "recipe", metavar="RECIPE", help="Copy a recipe, or a TOML file.")
@click.option(
    "--data",
    "root",
    type=click.Path(path_type=Path),
    metavar="ROOT",
    help="Look at the text in a folder, and choose by its size.",
)
@click.option("--source", metavar="LANGUAGE", help="With --data: language translated from.")
@click.option("--target", metavar="LANGUAGE", help="With --data: language translated into.")
def init(folder: Path, recipe: str | None, root: Path | None, source: str | None, target: str | None) -> None:
    """Write a configuration to edit, DIR/DIR.toml: a copy of a recipe, or one chosen for your own text.

    What is chosen for your text says why.
    """
    if (recipe is None) == (root is None):
        raise click.UsageError("give either --from RECIPE, or --data ROOT with --source and --target.")
    if recipe is not None:
        from manyheads.config.load import resolve_recipe

        original = resolve_recipe(recipe)
        content, scores = original.read_bytes(), scores_of(original)
    else:
        if root is None or source is None or target is None:
            raise click.UsageError("--data needs the languages: --source and --target.")
        from manyheads import runs

        content, scores = runs.suggest(root, source, target).to_toml().encode(), None
    path = folder / f"{folder.resolve().name}.toml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError as error:
        raise UsageError(f"{path} is there already; choose another folder, or delete it.") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from error
    click.echo(f"{path}: edit it, then")
    click.echo(f"  manyheads data report {path}\n  manyheads train {path}")
    if scores is not None:
        click.echo(f"With the settings and the text as they are: {scores}")


@click.command(
    "show-config",
    cls=Verb,
    epilog="""\b
Examples:
  manyheads show-config
  manyheads show-config multi30k-en-de-tiny --set model.d_model=512
  manyheads show-config --schema > manyheads.schema.json""",
)
@click.argument("config", required=False)
@set_option()
@json_option()
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a configuration, for editors.")
def show_config(config: str | None, overrides: tuple[str, ...], as_json: bool, schema: bool) -> None:
    """Show every setting as TOML: its meaning, its value, and its default where that differs.

    CONFIG is a TOML file, or the name of a recipe; without it the defaults are shown. In an editor with TOML
    support the line `#:schema manyheads.schema.json`, first in a file, brings completion and explanations.
    """
    from manyheads.config.load import json_schema, load_config, parse_config, resolve_recipe

    if schema:
        if config is not None or overrides:
            raise click.UsageError("--schema is the same for every configuration; give it alone.")
        echo_json(json_schema())
        return
    if config is None:
        if overrides:
            raise click.UsageError("--set needs a CONFIG to change.")
        tree = parse_config({"data": {"source": "de", "target": "en"}}, origin="defaults")
    else:
        tree = load_config(resolve_recipe(config), overrides)
    if as_json:
        echo_json(tree.model_dump(mode="json"))
        return
    for line in described(tree):
        click.echo(line)


def described(config: Config) -> Iterator[str]:
    """A configuration as lines of TOML that `load_config` reads back, with each setting's meaning and default."""
    from manyheads.config.schema.section import Section

    for name, value in config:
        if isinstance(value, Section):
            yield from ("", f"[{name}]")
            for key, setting in value:
                yield from described_setting(key, setting, type(value).model_fields[key])
        else:
            yield from described_setting(name, value, type(config).model_fields[name])


def described_setting(key: str, value: object, field: FieldInfo) -> Iterator[str]:
    """The lines of one setting."""
    from manyheads.config.load import to_toml

    if field.description:
        yield f"# {field.description}"
    mark = ""
    if not field.is_required() and field.default != "":  # what is named for one task only has none
        mark = "  # default" if value == field.default else f"  # default: {to_toml(field.default)}"
    yield f"{key} = {to_toml(value)}{mark}"


VERBS = {"recipes": recipes, "init": init, "show-config": show_config}
