"""Options, lazy import and output that the verbs of the command line share."""

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
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Protocol, TextIO

import click

from manyheads.data.lines import InvalidUtf8, decode_lines, read_lines
from manyheads.errors import UsageError

if TYPE_CHECKING:
    from click.types import OptionHelpExtra

__all__ = [
    "INTERRUPTED",
    "LazyGroup",
    "Settings",
    "Verb",
    "VerbGroup",
    "device_option",
    "echo_json",
    "echo_result",
    "in_color",
    "input_lines",
    "json_option",
    "open_output",
    "option",
    "output_option",
    "program_name",
    "set_option",
    "settings_of",
    "text_line",
]

INTERRUPTED = 130  # the exit code after Ctrl-C


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


def settings_of(context: click.Context) -> Settings:
    """Return the `Settings` of this command line, creating them on first use."""
    return context.find_root().ensure_object(Settings)


def in_color(stream: TextIO) -> bool:
    """Return whether to print colours: never with NO_COLOR, always with FORCE_COLOR, else on a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def store_common_option(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Store a common option in `Settings`, where an option that was given before the verb stays set."""
    settings = settings_of(context)
    settings.quiet |= value and parameter.name == "quiet"
    settings.verbose |= value and parameter.name == "verbose"
    settings.debug |= value and parameter.name == "debug"


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


class Option(click.Option):
    """An option whose help states its range in words: "at least 1" instead of click's "x>=1"."""

    def get_help_extra(self, ctx: click.Context) -> OptionHelpExtra:
        """Return click's additions to the help text: the range in words, a default in words without parentheses."""
        extra = super().get_help_extra(ctx)
        if isinstance(self.show_default, str):
            extra["default"] = self.show_default
        if "range" in extra:
            extra["range"] = range_in_words(self.type)
        return extra


def range_in_words(number_type: click.ParamType[Any]) -> str:
    """Return the range of a number type, such as "at least 1" or "above 0, at most 1"."""
    assert isinstance(number_type, click.IntRange | click.FloatRange)
    if (
        number_type.min is not None
        and number_type.max is not None
        and not (number_type.min_open or number_type.max_open)
    ):
        return f"{number_type.min} to {number_type.max}"
    bounds = []
    if number_type.min is not None:
        bounds.append(f"{'above' if number_type.min_open else 'at least'} {number_type.min}")
    if number_type.max is not None:
        bounds.append(f"{'below' if number_type.max_open else 'at most'} {number_type.max}")
    return ", ".join(bounds)


option = partial(click.option, cls=Option, show_default=True)


class Verb(click.Command):
    """A command that also takes the common options; its epilog holds an example."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the verb's own parameters, then the common options."""
        return [*super().get_params(ctx), *COMMON_OPTIONS]


class VerbGroup(click.Group):
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

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the group's own parameters, then the common options."""
        return [*super().get_params(ctx), *COMMON_OPTIONS]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the name and the help line of each verb."""
        with formatter.section("Verbs"):
            formatter.write_dl(self.help_lines())

    def help_lines(self) -> list[tuple[str, str]]:
        """Return (name, help line) of each verb."""
        return [(name, command.get_short_help_str(70)) for name, command in self.commands.items()]


class LazyGroup(VerbGroup):
    """A group that imports the module of a verb only when that verb is used.

    Attributes:
        verbs: (module, help line) of each verb, in the order of the help. The module holds the commands in `VERBS`.
    """

    verbs: ClassVar[Mapping[str, tuple[str, str]]]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the verbs, in the order of the help."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb; returns None for an unknown name."""
        if cmd_name not in self.verbs:
            return None
        commands: Mapping[str, click.Command] = importlib.import_module(self.verbs[cmd_name][0]).VERBS
        return commands[cmd_name]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a verb; raises `click.UsageError` with the most similar name for an unknown verb."""
        if args[0] not in self.verbs:
            near = get_close_matches(args[0], self.verbs, 1)
            raise click.UsageError(f"no verb {args[0]}{f'; did you mean {near[0]}?' if near else '.'}", ctx)
        return super().resolve_command(ctx, args)

    def help_lines(self) -> list[tuple[str, str]]:
        """Return (name, help line) of each verb, without importing it."""
        return [(name, line) for name, (_, line) in self.verbs.items()]


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def json_option() -> Decorator:
    """Add `--json`."""
    return option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout.")


def device_option() -> Decorator:
    """Add `--device`."""
    return option(
        "--device",
        default="auto",
        metavar="NAME",
        help="Device to compute on: cpu, cuda, cuda:1, or auto (a GPU if there is one, else the CPU).",
    )


def set_option() -> Decorator:
    """Add `--set`, which may be repeated."""
    return option(
        "--set",
        "overrides",
        multiple=True,
        metavar="SECTION.KEY=VALUE",
        help="Override a setting of the configuration; may be repeated.",
    )


def output_option(content: str) -> Decorator:
    """Add `--output`, the file for the content named; "-" means stdout."""
    return option(
        "--output",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        show_default="stdout",
        help=f"Write the {content} to FILE; - is stdout.",
    )


def echo_json(document: object) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False))


class Result(Protocol):
    """The result of a verb: a JSON document for programs, and lines for people."""

    def to_json(self) -> dict[str, Any]:
        """Return the document."""
        ...

    def lines(self) -> list[str]:
        """Return the lines."""
        ...


def echo_result(result: Result, *, as_json: bool) -> None:
    """Print the result of a verb, as one JSON document or as lines."""
    if as_json:
        echo_json(result.to_json())
        return
    for line in result.lines():
        click.echo(line)


@contextmanager
def open_output(path: Path | None) -> Iterator[BinaryIO]:
    """Open a file for writing bytes; None and "-" mean stdout.

    Raises:
        UsageError: the file cannot be written.
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
    """Encode a text as exactly one line of UTF-8; line ends inside it become spaces."""
    return text.replace("\r", " ").replace("\n", " ").encode(errors="replace") + b"\n"


def input_lines(file: Path, invalid_utf8: InvalidUtf8) -> Iterator[str]:
    """Return the lines of a file (also .gz, .xz, .zst), or of standard input for "-".

    The first line is read at once, so that an unreadable input is reported before an output file is opened and
    its former content is lost.

    Raises:
        DataError: the file is missing or damaged, or (during iteration) a line is not UTF-8.
    """
    if str(file) == "-":
        lines = decode_lines(sys.stdin.buffer, "standard input", invalid_utf8=invalid_utf8)
        return (line.text for line in lines)
    texts = read_lines(file, invalid_utf8=invalid_utf8)
    return chain(list(islice(texts, 1)), texts)


def program_name() -> str:
    """Return the command that starts this program: its name if it is on the PATH, else its path."""
    if shutil.which("manyheads"):
        return "manyheads"
    script = Path(sys.executable).with_name("manyheads")
    if not script.is_file():
        return f"{sys.executable} -m manyheads"
    inside = script.is_relative_to(Path.cwd())
    return str(script.relative_to(Path.cwd()) if inside else script)
