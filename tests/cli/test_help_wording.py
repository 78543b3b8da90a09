"""Every help text is a sentence, not a fragment, with each range and default in words."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from manyheads.cli.main import _Program, program

# First words that begin a fragment, and how to begin instead.
BANNED_BEGINNINGS = {
    **dict.fromkeys(("Of", "For", "With", "By", "In", "On", "From"), "name the quantity before what it belongs to"),
    **dict.fromkeys(
        ("That", "What", "Which", "Who", "Whoever", "Whether"), "name the thing, not a clause about it"
    ),
    **dict.fromkeys(("How", "Where", "When"), "write the quantity: number, directory, duration"),
    **dict.fromkeys(("It", "Its", "They", "Those", "These", "This", "One", "He"), "put a noun before a pronoun"),
    **dict.fromkeys(("Less", "More", "No", "Only", "Below", "Above"), "begin with a verb or the quantity"),
}
SENTENCE = re.compile(r"[A-Z][\w-]*\b.*[.:]\Z", re.DOTALL)
RANGE_OF_CLICK = re.compile(r"x[<>]=?\d|\d<=?x|RANGE")


def faults(text: str) -> list[str]:
    """Return what is wrong with the wording of a help text, with the reason."""
    found = []
    first = text.split(maxsplit=1)[0] if text.split() else ""
    if first in BANNED_BEGINNINGS:
        found.append(f'a text that begins with "{first}" is a fragment: {BANNED_BEGINNINGS[first]}')
    if not SENTENCE.match(text):
        found.append("a text begins with a word in upper case (a verb or a quantity) and ends with a full stop")
    return found


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Yield (command line, command, context) of a command and of all below it."""
    yield context.command_path, command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, click.Context(inner, info_name=name, parent=context))


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a help text in one line each; tables, marked with a backspace, are left out."""
    return [" ".join(block.split()) for block in text.split("\n\n") if block.strip() and "\b" not in block]


def help_texts() -> Iterator[tuple[str, str]]:
    """Yield (where the text is shown, text) of every help text of the program."""
    for verb, (_, line) in _Program.verbs.items():
        yield f"manyheads, line of {verb}", line
    for path, command, context in COMMANDS:
        for number, paragraph in enumerate(paragraphs(command.help or ""), start=1):
            yield f"{path}, paragraph {number}", paragraph
        if command.short_help:
            yield f"{path}, line in its group", command.short_help
        for parameter in command.get_params(context):
            if isinstance(parameter, click.Option):
                yield f"{path} {parameter.opts[-1]}", parameter.help or ""


COMMANDS = list(commands(program, click.Context(program, info_name="manyheads")))
TEXTS = dict(help_texts())


def test_the_checked_texts_cover_every_verb_and_many_options() -> None:
    assert {f"manyheads {verb}" for verb in _Program.verbs} <= {path for path, *_ in COMMANDS}
    assert len(TEXTS) > 200
    assert "manyheads translate --ensemble" in TEXTS


def test_a_help_text_is_a_sentence() -> None:
    found = {(where, text): faults(text) for where, text in TEXTS.items()}
    assert not [f"{where}: {text!r}: " + "; ".join(wrong) for (where, text), wrong in found.items() if wrong]


def test_ranges_are_in_words_and_defaults_are_shown() -> None:
    every = [
        (path, context, parameter)
        for path, command, context in COMMANDS
        for parameter in command.get_params(context)
    ]
    for path, context, parameter in every:
        record = parameter.get_help_record(context)
        if not isinstance(parameter, click.Option) or record is None:
            continue
        line = "  ".join(record)
        name = f"{path} {parameter.opts[-1]}"
        assert not RANGE_OF_CLICK.search(line), f"{name}: write the range in words and name the value: {line}"
        value = parameter.get_default(context)
        if not parameter.is_flag and isinstance(value, int | float | str) and value != "":
            assert f"default: {value}" in line, f"{name}: show the default {value}: {line}"


def options_by_name() -> dict[str, dict[str, click.Option]]:
    """Return the options of all verbs: name -> verb -> option."""
    found: dict[str, dict[str, click.Option]] = {}
    for path, command, context in COMMANDS:
        for option in command.get_params(context):
            if isinstance(option, click.Option):
                for name in option.opts:
                    found.setdefault(name, {})[path] = option
    return found


OPTIONS = options_by_name()
# Options that have another kind of value by verb: what the verb writes, and a kind of attention or of model.
VARYING_OPTIONS = ("-o", "--output", "--kind", "--from", "--to", "--format")
OTHER_FILES = ("--keys", "--general", "--glossary", "--suggestions", "--rejected", "--html")


def test_an_option_has_one_kind_of_value_in_all_verbs() -> None:
    context = click.Context(program)
    for name, verbs in OPTIONS.items():
        kinds = {(option.is_flag, option.make_metavar(context)) for option in verbs.values()}
        assert len(kinds) == 1 or name in VARYING_OPTIONS, f"{name} means {kinds} in {', '.join(verbs)}"


def test_options_for_languages_files_and_destinations_have_consistent_names() -> None:
    assert {option.metavar for name in ("--source", "--target") for option in OPTIONS[name].values()} == {
        "LANGUAGE"
    }
    files = {name for name, verbs in OPTIONS.items() for option in verbs.values() if option.metavar == "FILE"}
    assert all(name.endswith("-file") for name in files - {*VARYING_OPTIONS, *OTHER_FILES})
    assert list(OPTIONS["-o"]) == list(OPTIONS["--output"])
    assert {f"manyheads {verb}" for verb in WRITING_VERBS} <= set(OPTIONS["-o"])
    assert {f"manyheads {verb}" for verb in COMPUTING_VERBS} <= set(OPTIONS["--device"])
    assert {f"manyheads {verb}" for verb in DECODING_VERBS} == set(OPTIONS["--beam"])
    assert not {"--out", "--save", "--reference"} & set(OPTIONS)
    assert all(set(verbs) == {path for path, *_ in COMMANDS} for verbs in map(OPTIONS.get, ("-h", "--help", "-q")))


WRITING_VERBS = (
    "train", "train average", "demo", "inspect", "curves", "export", "import", "evaluate", "translate", "classify",
    "generate",
)  # fmt: skip
COMPUTING_VERBS = (
    "train", "demo", "inspect", "evaluate", "translate", "classify", "generate", "doctor", "serve",
)  # fmt: skip
DECODING_VERBS = ("translate", "evaluate", "inspect", "serve")


@pytest.mark.parametrize(
    "text", ["Of --sample.", "That a text waits.", "What decodes.", "x source tokens.", "Missing full stop", ""]
)
def test_a_fragment_is_noticed(text: str) -> None:
    assert faults(text)
