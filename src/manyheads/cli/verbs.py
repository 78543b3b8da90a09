"""Base classes of the verbs: the common options, the texts of `verbs.toml`, and the printing of results."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TextIO

import click

__all__ = [
    "INTERRUPTED", "TEXTS", "JsonResult", "Settings", "Verb", "VerbGroup", "current_settings", "echo", "echo_json",
    "echo_result", "in_color", "program_name", "verb", "verb_group", "warn",
]  # fmt: skip

INTERRUPTED = 130  # the exit code after Ctrl-C
TEXTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("verbs.toml").read_text("utf-8"))


@dataclass
class Settings:
    """The verbosity of one command line.

    Attributes:
        quiet: print results and errors only.
        verbose: print every progress report.
        debug: also print the traceback of a user's mistake.
    """

    quiet: bool = False
    verbose: bool = False
    debug: bool = False


def current_settings() -> Settings:
    """Return the `Settings` of the command line that is being run, creating them on first use."""
    return click.get_current_context().find_root().ensure_object(Settings)


def in_color(stream: TextIO) -> bool:
    """Return whether to print colours: never with NO_COLOR, always with FORCE_COLOR, else on a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def store_common_option(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Store a common option in `Settings`, where an option that was given before the verb stays set."""
    assert parameter.name is not None
    vars(current_settings())[parameter.name] |= value


def common_flag(*names: str, text: str) -> click.Option:
    """Return a flag that every verb takes."""
    return click.Option(
        names, is_flag=True, is_eager=True, expose_value=False, callback=store_common_option, help=text
    )


COMMON_OPTIONS = (
    common_flag("-q", "--quiet", text="Print results and errors only."),
    common_flag("-v", "--verbose", text="Print more progress messages."),
    common_flag("--debug", text="Show the traceback of an error."),
)


class Verb(click.Command):
    """A command that also takes the common options; its epilog holds an example."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the verb's own parameters, then the common options."""
        return [*super().get_params(ctx), *COMMON_OPTIONS]


class VerbGroup(Verb, click.Group):
    """A group of verbs that also takes the common options, and without a verb prints its help."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.invoke_without_command, self.no_args_is_help = True, False
        self.subcommand_metavar = "VERB [ARGS]..."

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb, or print the help of the group."""
        result = super().invoke(ctx)
        if ctx.invoked_subcommand is None:
            click.echo(ctx.get_help())
        return result

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the name and the help line of each verb."""
        with formatter.section("Verbs"):
            formatter.write_dl(self.help_lines())

    def help_lines(self) -> list[tuple[str, str]]:
        """Return (name, help line) of each verb."""
        return [(name, command.get_short_help_str(70)) for name, command in self.commands.items()]


def verb(path: str, group: click.Group | None = None) -> Callable[[Callable[..., Any]], click.Command]:
    """Return the decorator that makes a function a verb, with the texts of `verbs.toml`.

    Args:
        path: what a user types after `manyheads`, such as "bench train".
        group: group of the verb; None for a verb of the program.
    """
    make = click.command if group is None else group.command
    texts = TEXTS[path]
    return make(path.rpartition(" ")[2], cls=Verb, epilog=texts["epilog"], short_help=texts["help"])


def verb_group(name: str) -> Callable[[Callable[..., Any]], VerbGroup]:
    """Return the decorator that makes a function a group of verbs, with the texts of `verbs.toml`."""
    return click.group(name, cls=VerbGroup, epilog=TEXTS[name]["epilog"])


def echo_json(document: object) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False))


def echo(document: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print the result of a verb: one JSON document for programs, or lines for people."""
    if as_json:
        echo_json(document)
        return
    for line in lines:
        click.echo(line)


class JsonResult(Protocol):
    """A result for programs."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document."""
        ...


class Result(JsonResult, Protocol):
    """A result for programs and for people."""

    def lines(self) -> list[str]:
        """Return the lines."""
        ...


def echo_result(result: Result, *, as_json: bool) -> None:
    """Print a result as one JSON document or as lines."""
    echo(result.to_json(), result.lines(), as_json=as_json)


def warn(text: str) -> None:
    """Print a warning to stderr, unless the command line is quiet."""
    if not current_settings().quiet:
        click.echo(f"warning: {text}", err=True)


def program_name() -> str:
    """Return the command that starts this program: its name if it is on the PATH, else its path."""
    if shutil.which("manyheads"):
        return "manyheads"
    script = Path(sys.executable).with_name("manyheads")
    if not script.is_file():
        return f"{sys.executable} -m manyheads"
    inside = script.is_relative_to(Path.cwd())
    return str(script.relative_to(Path.cwd()) if inside else script)
