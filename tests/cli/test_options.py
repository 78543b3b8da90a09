"""An option of the command line has the default and the meaning that the library documents for its field."""

from __future__ import annotations

from dataclasses import dataclass, fields

import click
import pytest

from manyheads.cli.main import _Program, program
from manyheads.cli.options import _attribute_texts, field_option
from manyheads.search.options import Sampling, SearchOptions
from manyheads.serving.settings import ServeSettings


@dataclass(frozen=True)
class Example:
    """An example.

    Attributes:
        top_k: keep the top_k likeliest tokens,
            and drop all others.
        loud: print in upper case.

    Further text: not of an attribute.
    """

    top_k: int = 7
    loud: bool = False


@click.command()
@field_option(Example, "top_k", "N", note=". Requires --loud.")
@field_option(Example, "loud")
def example(top_k: int, loud: bool) -> None:
    """Print the values."""
    click.echo(f"{top_k} {loud}")


def options_of(verb: str) -> dict[str, click.Option]:
    """Return the options of a verb by the name of their value."""
    command = program.get_command(click.Context(program), verb)
    assert command is not None
    return {one.name: one for one in command.params if isinstance(one, click.Option) and one.name}


def test_a_field_gives_name_default_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    top_k, loud = (one for one in example.params if isinstance(one, click.Option))
    assert top_k.opts == ["--top-k"]
    assert top_k.help == "Keep the N likeliest tokens, and drop all others. Requires --loud."
    assert loud.is_flag
    assert loud.help == "Print in upper case."
    example.main(["--loud"], standalone_mode=False)
    assert capsys.readouterr().out == "7 True\n"


@pytest.mark.parametrize("owner", [Sampling, SearchOptions, ServeSettings])
def test_every_field_is_documented(owner: type) -> None:
    assert set(_attribute_texts(owner)) >= {field.name for field in fields(owner)}


@pytest.mark.parametrize(
    ("verb", "owner"), [("translate", Sampling), ("generate", Sampling), ("serve", ServeSettings)]
)
def test_a_verb_has_an_option_for_every_field_with_its_default(verb: str, owner: type) -> None:
    assert verb in _Program.verbs
    options = options_of(verb)
    for field in fields(owner):
        default = options[field.name].get_default(click.Context(click.Command(verb)))
        assert (default or None) == (field.default or None), field.name


def test_translate_has_an_option_for_every_field_but_those_that_other_options_set() -> None:
    assert {field.name for field in fields(SearchOptions)} - set(options_of("translate")) == {
        "beam_size",  # --beam
        "sampling",  # --sample
        "token_scores",  # --json
        "max_length_offset",  # --set, also the next
        "batch_tokens",
    }
