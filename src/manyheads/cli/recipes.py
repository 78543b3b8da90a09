"""`_recipes` and `show-config`: list and print configurations."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any

import click

from manyheads.cli.options import RECIPE, AsJson, Overrides, option, pass_options
from manyheads.cli.verbs import echo, echo_json, in_color, verb

if TYPE_CHECKING:
    from manyheads.config.schema import Config
    from manyheads.config.schema.base import Section

MEASURED = "Measured:"  # begins the measured result, at the end of the comment at the top of a recipe
_FIRST_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z])")


@verb("recipes")
@option("--json", "as_json", is_flag=True)
def _recipes(as_json: bool) -> None:
    """List the recipes with the model that each trains and its measured result, then the plans of `build`."""
    from manyheads.config.load import recipe_paths
    from manyheads.improve.build.plan import plan_paths

    listed = [
        {"name": name, **headline(path.read_text("utf-8")), **more}
        for paths, more in ((recipe_paths(), {}), (plan_paths(), {"plan": True}))
        for name, path in paths.items()
    ]
    if as_json:
        echo_json(listed)
        return
    for recipe in listed:
        click.secho(recipe["name"], bold=True, color=in_color(sys.stdout))
        result = recipe["measured"] and f"{MEASURED} {recipe['measured']}"
        for text in (recipe["description"], result):
            if text:
                click.echo(click.wrap_text(text, 100, "  ", "  "))


def headline(text: str) -> dict[str, Any]:
    """Return the first sentence of the comment at the top of a recipe, and its measured result or None."""
    lines = takewhile(lambda line: line.startswith("#"), text.split("\n"))
    comment = " ".join(line.lstrip("#").strip() for line in lines)
    description, _, measured = comment.partition(MEASURED)
    return {"description": _FIRST_SENTENCE.split(description, 1)[0].strip(), "measured": measured.strip() or None}


@dataclass(frozen=True)
class _ShowOptions:
    config: Annotated[str | None, click.argument("config", required=False, type=RECIPE)]
    overrides: Overrides
    as_json: AsJson
    schema: Annotated[bool, option("--schema", is_flag=True)]


@verb("show-config")
@pass_options(_ShowOptions)
def show_config(options: _ShowOptions) -> None:
    """Show every setting as TOML: active those that CONFIG or --set sets, commented out those at their defaults.

    CONFIG is a TOML file or the name of a recipe; without it, the defaults are shown. The output is itself a
    configuration, with the same values: delete the # before a default to change it. In editors with TOML support,
    the line `#:schema manyheads.schema.json` at the top of a file enables completion and explanations.
    """
    from manyheads.config.load import json_schema, load_config, parse_config, resolve_recipe

    if options.schema:
        if options.config is not None or options.overrides:
            raise click.UsageError("--schema is the same for every configuration; give it alone.")
        echo_json(json_schema())
        return
    if options.config is None:
        if options.overrides:
            raise click.UsageError("--set needs a CONFIG to change.")
        tree = parse_config({"data": {"source": "de", "target": "en"}}, origin="defaults")
    else:
        tree = load_config(resolve_recipe(options.config), options.overrides)
    echo(tree.model_dump(), _describe(tree), as_json=options.as_json)


def _describe(config: Config) -> Iterator[str]:
    """Yield a configuration as lines of TOML that `load_config` reads, with the meaning of each setting.

    A line that begins with "# " is a meaning; a line that begins with "#" alone is a setting at its default.
    """
    from manyheads.config.schema.base import Section

    for name, value in config:
        if isinstance(value, Section):
            yield from ("", f"[{name}]")
            for key, field in type(value).model_fields.items():
                if not field.internal:
                    yield from _described_setting(key, value)
        else:
            yield from _described_setting(name, config)


def _described_setting(key: str, section: Section) -> Iterator[str]:
    """Yield the lines of one setting of a section: its meaning as a comment, then its value."""
    from manyheads.config.load.toml import to_toml

    field, value = type(section).model_fields[key], vars(section)[key]
    yield from textwrap.wrap(field.description or "", 100, initial_indent="# ", subsequent_indent="# ")
    plain = section.model_dump()[key]  # tables for the stages of a training
    line = f"{key} = {to_toml(plain)}"
    if value != field.default:
        yield line if field.default == "" else f"{line}  # default: {to_toml(field.default)}"
    else:
        yield f"{line}  # same as the default" if key in section.model_fields_set else f"#{line}"


VERBS = {"recipes": _recipes, "show-config": show_config}
