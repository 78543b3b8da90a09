"""An option of the command line has the default and the meaning that the library documents for its field."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import click
import pytest
from tests.cli.conftest import Call, Record

from manyheads.cli.main import _Program, program
from manyheads.cli.options import (
    OUTPUT,
    OUTPUT_FILE,
    OutputPath,
    _attribute_texts,
    field_option,
    gather,
    pass_options,
)
from manyheads.cli.verbs import _SHARED_HELP, TEXTS
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


top_k = field_option(Example, "top_k", "N", note=". Requires --loud.")
given = gather(Example, "given", top_k, field_option(Example, "loud"))


@dataclass(frozen=True)
class ExampleOptions:
    first: Annotated[int, click.option("--first", type=int, default=1)]
    given: Annotated[Example, given]
    last: Annotated[tuple[str, ...], click.argument("last", nargs=-1)]


@click.command()
@pass_options(ExampleOptions)
def example(options: ExampleOptions) -> None:
    """Print the values."""
    click.echo(repr(options))


def options_of(verb: str) -> dict[str, click.Option]:
    """Return the options of a verb by the name of their value."""
    command = program.get_command(click.Context(program), verb)
    assert command is not None
    return {
        parameter.name: parameter
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.name
    }


def test_a_field_gives_name_default_and_help() -> None:
    _, top_k, loud = (parameter for parameter in example.params if isinstance(parameter, click.Option))
    assert top_k.opts == ["--top-k"]
    assert top_k.help == "Keep the N likeliest tokens, and drop all others. Requires --loud."
    assert loud.is_flag
    assert loud.help == "Print in upper case."


def test_a_verb_receives_one_object_and_its_help_shows_the_options_in_the_order_of_the_fields(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert [parameter.name for parameter in example.params] == ["first", "top_k", "loud", "last"]
    example.main(["--loud", "a", "b"], standalone_mode=False)
    assert capsys.readouterr().out == f"{ExampleOptions(1, Example(7, loud=True), ('a', 'b'))}\n"


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
        "sampling",  # --sample
        "token_scores",  # --json
        "max_length_offset",  # --set, also the next
        "batch_tokens",
    }


# --- outputs ---


def verbs(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield each verb with its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        verb = group.get_command(context, name)
        assert verb is not None
        yield (*path, name), verb
        if isinstance(verb, click.Group):
            yield from verbs(verb, (*path, name))


VERBS = dict(verbs(program))
WRITTEN = {"output", "out", "dest", "page", "rejected", "suggestions", "folder of init", "root of data fetch"}
NAMES_OF_FILES = re.compile(r"FILE|RUN|DIR|CONFIG|PLAN|RECIPE|MODEL|DEST|PATH|CORRECTIONS|SOURCE$|TARGET$")


def test_every_help_text_is_that_of_an_option() -> None:
    shown = {
        (" ".join(words), parameter.opts[-1], getattr(parameter, "help", ""))
        for words in VERBS
        for parameter in VERBS[words].params
    }
    texts = {(path, f"--{name}", text) for path in TEXTS for name, text in TEXTS[path].get("options", {}).items()}
    assert texts - shown == set()
    assert set(_SHARED_HELP.values()) <= {text for *_, text in shown}


def paths_of(verb: click.Command) -> list[click.Parameter]:
    return [parameter for parameter in verb.params if isinstance(parameter.type, click.Path)]


def clashes() -> Iterator[tuple[tuple[str, ...], click.Parameter, click.Parameter]]:
    for words, verb in VERBS.items():
        for output in paths_of(verb):
            if output.type in (OUTPUT, OUTPUT_FILE):
                yield from (
                    (words, input_, output) for input_ in paths_of(verb) if not isinstance(input_.type, OutputPath)
                )


def command_line_of(words: tuple[str, ...], values: dict[click.Parameter, Path]) -> list[str]:
    """Return a command line with these values, and with the name "other" for what else must be given."""
    arguments: list[str] = []
    options: list[str] = []
    for parameter in VERBS[words].params:
        if parameter in values or parameter.required:
            choices = getattr(parameter.type, "choices", ["other"])
            value = str(values.get(parameter, choices[0]))
            arguments += [value] if isinstance(parameter, click.Argument) else []
            options += [parameter.opts[-1], value] if isinstance(parameter, click.Option) else []
        elif isinstance(parameter, click.Argument) and parameter.nargs == 1:
            arguments += ["other"]
    return [*words, *options, "--", *arguments]


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_every_path_of_a_verb_is_declared_as_an_input_or_as_an_output(words: tuple[str, ...]) -> None:
    for parameter in VERBS[words].params:
        metavar = parameter.metavar or parameter.human_readable_name
        named = NAMES_OF_FILES.search(metavar) and not metavar.startswith("SECTION.")
        if named and "LANGUAGE" not in metavar and parameter.name not in ("source", "target", "text"):
            assert isinstance(parameter.type, click.Path), f"{parameter.name} is a path"
        if isinstance(parameter.type, click.Path):
            written = {parameter.name, f"{parameter.name} of {' '.join(words)}"} & WRITTEN
            assert isinstance(parameter.type, OutputPath) == bool(written), f"{parameter.name}: which is written?"


@pytest.mark.parametrize(
    ("words", "input_", "output"),
    [*clashes()],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else value.name,
)
@pytest.mark.parametrize("kind", ["same", "link", "hard link"])
def test_no_output_may_be_an_input(
    words: tuple[str, ...], input_: click.Parameter, output: click.Parameter, kind: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, call: Call,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    path, other = Path("text"), Path("text") if kind == "same" else Path("other name")
    path.write_text("precious\n")
    if kind == "link":
        other.symlink_to(path)
    elif kind == "hard link":
        other.hardlink_to(path)
    err = call(*command_line_of(words, {input_: path, output: other}), code=2).err
    label = input_.opts[-1] if isinstance(input_, click.Option) else input_.human_readable_name
    assert err == f"error: {other} is the input ({label}); write to another file.\n"
    assert path.read_text() == other.read_text() == "precious\n"


def test_standard_output_may_not_be_an_input(tmp_path: Path) -> None:
    """`>> FILE` would translate its own output for ever."""
    path = tmp_path / "text"
    path.write_text("precious\n")
    with path.open("ab") as stdout:
        command = [sys.executable, "-m", "manyheads", "translate", "RUN", str(path)]
        done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2, "error: standard output is the input ([FILE]...); write to another file.\n"
    )  # fmt: skip
    assert path.read_text() == "precious\n"


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (["-o", "new", "--html", "new"], "new is the same name for --output and --html. Give two names."),
        (["-o", "new", "--html", "folder/../new"], "is the same name for --output and --html"),
        (["-o", "old", "--rejected", "link"], "link is the same name for --output and --rejected"),
        (["-o", "missing/new"], "missing/new cannot be written: there is no folder missing."),
        (["-o", "old/new"], "old/new cannot be written: there is no folder old."),
        (["-o", "n" * 300], "cannot be written: File name too long. Choose a shorter name."),
        (["-o", "folder"], "is a directory"),
        (["-o", "/dev/null", "--rejected", "/dev/null"], "suggestions cannot be read"),
    ],
)
def test_outputs_are_checked_before_any_work(
    outputs: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("old").write_text("old")
    Path("link").symlink_to("old")
    code = 3 if "read" in message else 2
    assert message in call("corrections", "review", "suggestions", *outputs, code=code).err
    assert Path("old").read_text() == "old"


def test_a_recipe_and_a_new_run_may_have_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: Record, call: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    calls = record("manyheads.runs.train.train")
    call("train", "demo-de-en", "-o", "demo-de-en", code=1)
    assert calls
