"""What the verbs of the command line have in common: options, lazy import, output."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Protocol, TextIO

import click

from manyheads.data.lines import InvalidUtf8, decode_lines, read_lines
from manyheads.errors import UsageError

__all__ = [
    "INTERRUPTED",
    "LazyGroup",
    "Settings",
    "Verb",
    "VerbGroup",
    "echo_json",
    "echo_result",
    "in_color",
    "input_lines",
    "json_option",
    "opened_output",
    "output_option",
    "program_name",
    "set_option",
    "settings_of",
    "text_line",
]

INTERRUPTED = 130  # the exit code after Ctrl-C


@dataclass
class Settings:
    """How much the program tells.

    Attributes:
        quiet: only results and errors.
        verbose: every report.
        debug: the traceback of a user's mistake too.
    """

    quiet: bool = False
    verbose: bool = False
    debug: bool = False


def settings_of(context: click.Context) -> Settings:
    """The one `Settings` of this command line."""
    return context.find_root().ensure_object(Settings)


def in_color(stream: TextIO) -> bool:
    """Whether to colour: NO_COLOR forbids it, FORCE_COLOR asks for it, else a terminal gets it."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def note(context: click.Context, option: click.Parameter, given: bool) -> None:
    """Remember a common option; one given before the verb stays when it is not repeated after it."""
    settings = settings_of(context)
    settings.quiet |= given and option.name == "quiet"
    settings.verbose |= given and option.name == "verbose"
    settings.debug |= given and option.name == "debug"


def flag(*names: str, text: str) -> click.Option:
    """A common option without a value."""
    return click.Option(names, is_flag=True, is_eager=True, expose_value=False, callback=note, help=text)


COMMON_OPTIONS = (
    flag("-q", "--quiet", text="Tell results and errors only."),
    flag("-v", "--verbose", text="Tell more on the way."),
    flag("--debug", text="Show the traceback of an error."),
)


class Verb(click.Command):
    """A command that also takes the common options; its epilog holds an example."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters, then the common ones."""
        return [*super().get_params(ctx), *COMMON_OPTIONS]


class VerbGroup(click.Group):
    """Verbs under one name; it also takes the common options, and without a verb shows its help."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.invoke_without_command, self.no_args_is_help = True, False
        self.subcommand_metavar = "VERB [ARGS]..."

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb, or show the help."""
        found = super().invoke(ctx)
        if ctx.invoked_subcommand is None:
            click.echo(ctx.get_help())
        return found

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters, then the common ones."""
        return [*super().get_params(ctx), *COMMON_OPTIONS]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help lines."""
        with formatter.section("Verbs"):
            formatter.write_dl(self.help_lines())

    def help_lines(self) -> list[tuple[str, str]]:
        """(name, help line) of each verb."""
        return [(name, command.get_short_help_str(70)) for name, command in self.commands.items()]


class LazyGroup(VerbGroup):
    """Verbs of which only the one that is asked for is imported.

    Attributes:
        verbs: (module, help line) of each, in the order of a first visit. The module holds them in `VERBS`.
    """

    verbs: ClassVar[Mapping[str, tuple[str, str]]]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in order."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb."""
        if cmd_name not in self.verbs:
            return None
        found: Mapping[str, click.Command] = importlib.import_module(self.verbs[cmd_name][0]).VERBS
        return found[cmd_name]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a verb, or say which is nearest."""
        if args[0] not in self.verbs:
            near = get_close_matches(args[0], self.verbs, 1)
            raise click.UsageError(f"no verb {args[0]}{f'; did you mean {near[0]}?' if near else '.'}", ctx)
        return super().resolve_command(ctx, args)

    def help_lines(self) -> list[tuple[str, str]]:
        """(name, help line) of each verb, without importing it."""
        return [(name, line) for name, (_, line) in self.verbs.items()]


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def json_option() -> Decorator:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")


def set_option() -> Decorator:
    """`--set`, any number of times."""
    return click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="SECTION.KEY=VALUE",
        help="Replace a setting; may be repeated.",
    )


def output_option(what: str) -> Decorator:
    """`--output`, "-" for stdout."""
    return click.option(
        "--output",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help=f"Where the {what} go.",
    )


def echo_json(document: object) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False))


class Result(Protocol):
    """What a verb has found: a document for programs, and lines for people."""

    def to_json(self) -> dict[str, Any]:
        """The document."""
        ...

    def lines(self) -> list[str]:
        """The lines."""
        ...


def echo_result(result: Result, *, as_json: bool) -> None:
    """Print what a verb has found."""
    if as_json:
        echo_json(result.to_json())
        return
    for line in result.lines():
        click.echo(line)


@contextmanager
def opened_output(path: Path | None) -> Iterator[BinaryIO]:
    """A file to write bytes to, or stdout for none and for "-".

    Raises:
        UsageError: it cannot be written.
    """
    if path is None or str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        file = path.open("wb")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from error
    with file:
        yield file


def text_line(text: str) -> bytes:
    """A text as exactly one line of UTF-8, whatever line ends are in it."""
    return text.replace("\r", " ").replace("\n", " ").encode(errors="replace") + b"\n"


def input_lines(file: Path, invalid_utf8: InvalidUtf8) -> Iterator[str]:
    """The lines of a file (also .gz, .xz, .zst), or of standard input for "-".

    A file that cannot be read is told at once, before an output is opened and what was in it is lost.

    Raises:
        DataError: the file is missing or damaged; while lines are taken, also that they are no UTF-8.
    """
    if str(file) == "-":
        lines = decode_lines(sys.stdin.buffer, "standard input", invalid_utf8=invalid_utf8)
        return (line.text for line in lines)
    texts = read_lines(file, invalid_utf8=invalid_utf8)
    return chain(list(islice(texts, 1)), texts)


def program_name() -> str:
    """How this program is called from here: its name when it is on the PATH, else where it lies."""
    if shutil.which("manyheads"):
        return "manyheads"
    script = Path(sys.executable).with_name("manyheads")
    if not script.is_file():
        return f"{sys.executable} -m manyheads"
    inside = script.is_relative_to(Path.cwd())
    return str(script.relative_to(Path.cwd()) if inside else script)
