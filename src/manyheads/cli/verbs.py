"""Base classes of the verbs: the common options, the texts of `verbs.toml`, and the printing of results."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, Protocol, TextIO, TypeVar

import click

from bitext.shell import command_line, quote
from manyheads.cli.korean import KoreanFormatter, is_korean
from manyheads.cli.options import check_outputs
from manyheads.cli.signals import importing
from manyheads.errors import printable
from manyheads.results import Note

LANGUAGES = ("en", "ko")
INTERRUPTED = 130  # the exit code after Ctrl-C
_REMOVED = {  # a verb or option of an earlier version -> what to use in its place
    "bench": "Measure with benchmarks/training_speed.py CONFIG or benchmarks/decoding_speed.py RUN.",
    "export --device": "Give it to the command that scores the export: manyheads evaluate RUN --against DEST.",
    "export --force": "Leave it out: manyheads evaluate RUN --against DEST measures what a quantization costs.",
    "translate --geometric": "Leave it out: --ensemble averages the probabilities of the models.",
}
TEXTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("verbs.toml").read_text("utf-8"))
SECTIONS: dict[str, list[str]] = TEXTS.pop("sections")  # title -> verbs, in the order of the help
_SHARED_HELP: dict[str, str] = TEXTS.pop("options")  # name of an option -> help, where a verb has no other


@dataclass
class Settings:
    """The verbosity of one command line.

    Attributes:
        quiet: print results and errors only.
        verbose: print every progress report, and verdicts that need no action.
        debug: also print the traceback of a user's mistake.
        language: language of help, verdicts, reports, pictures and model cards; None if the user chose none.
    """

    quiet: bool = False
    verbose: bool = False
    debug: bool = False
    language: Literal["en", "ko"] | None = None


def current_settings() -> Settings:
    """Return the `Settings` of the command line that is being run, creating them on first use."""
    return click.get_current_context().find_root().ensure_object(Settings)


def announce_loading(after: float = 2.0) -> None:
    """Print a message if libraries are still being loaded after some seconds, as torch on a busy machine.

    Nothing is printed if torch is loaded, with --quiet, or if stderr is no terminal.
    """
    if "torch" in sys.modules or current_settings().quiet or not sys.stderr.isatty():
        return
    main = threading.main_thread().ident

    def announce() -> None:
        if importing(sys._current_frames().get(main or 0)):
            click.echo("loading torch", err=True)

    timer = threading.Timer(after, announce)
    timer.daemon = True
    timer.start()


def in_color(stream: TextIO) -> bool:
    """Return whether to print colours: never with NO_COLOR, always with FORCE_COLOR, else on a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def _store(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Store a common option in `Settings`, unless it was not given here: it may stand before or after the verb."""
    if value:
        vars(current_settings())[parameter.name or ""] = value


_common_option = partial(click.Option, is_eager=True, expose_value=False, callback=_store)
_COMMON_OPTIONS = (
    _common_option(("-q", "--quiet"), is_flag=True, help="Print results and errors only."),
    _common_option(
        ("-v", "--verbose"), is_flag=True, help="Print more progress messages, and verdicts that need no action."
    ),
    _common_option(("--debug",), is_flag=True, help="Show the traceback of an error."),
    _common_option(
        ("--lang", "language"),
        type=click.Choice(LANGUAGES),
        help="Language of help, verdicts, reports, pictures and model cards.",
    ),
)
_COMMON_NAMES = {name for flag in _COMMON_OPTIONS for name in flag.opts}


class Verb(click.Command):
    """A command that also takes the common options; its epilog holds an example."""

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Return the names of the option that prints the help."""
        return ["-h", "--help"]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the verb's own parameters, then the common options."""
        return [*super().get_params(ctx), *_COMMON_OPTIONS]

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the arguments, and check the outputs that they name."""
        try:
            context = super().make_context(info_name, args, parent, **extra)
        except click.NoSuchOption as error:
            name = f"{info_name} {error.option_name}"
            if name not in _REMOVED:
                raise
            raise click.UsageError(f"the option {name} is gone. {_REMOVED[name]}", error.ctx) from error
        if not context.resilient_parsing:
            check_outputs(context)
        return context

    def get_help(self, ctx: click.Context) -> str:
        """Return the help, in Korean with `--lang ko`."""
        formatter = ctx.make_formatter()
        if is_korean(ctx):
            formatter = KoreanFormatter(width=ctx.terminal_width, max_width=ctx.max_content_width)
        self.format_help(ctx, formatter)
        return formatter.getvalue().rstrip("\n")


class VerbGroup(Verb, click.Group):
    """A group of verbs that also takes the common options, and without a verb prints its help."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.invoke_without_command, self.no_args_is_help = True, False
        self.subcommand_metavar = "COMMAND [ARGS]..."

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb, or print the help of the group."""
        result = super().invoke(ctx)
        if ctx.invoked_subcommand is None:
            click.echo(ctx.get_help())
        return result

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a verb; raise `click.UsageError` with the most similar name for an unknown verb."""
        if args[0] not in self.list_commands(ctx) and not ctx.resilient_parsing:
            if args[0] in _REMOVED:
                raise click.UsageError(f"the command {args[0]} is gone. {_REMOVED[args[0]]}", ctx)
            near = _nearest_verb(ctx, args[0])
            raise click.UsageError(f"no command {args[0]}{f'; did you mean {near}?' if near else '.'}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the name and the help line of each verb."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.get_short_help_str(70)) for name, verb in self.commands.items()])


def _nearest_verb(context: click.Context, word: str) -> str:
    """Return the verb below a context whose name is most similar to a word, such as "doctor museum", or ""."""
    group = context.command_path.partition(" ")[2]
    below = [path for path, texts in TEXTS.items() if "help" in texts and path.startswith(group) and path != group]
    paths = [path.removeprefix(group).strip() for path in below]
    names = {path.rpartition(" ")[2]: path for path in sorted(paths, key=lambda path: -path.count(" "))}
    near = get_close_matches(word, names, 1)
    return names[near[0]] if near else ""


class VerbWithSubverbs(VerbGroup):
    """A verb whose first argument may instead name one of the verbs below it.

    A file with the name of such a verb is given as ./name. Arguments are parsed as for a plain command, unless the
    first one names a verb below.
    """

    allow_extra_args = False
    allow_interspersed_args = True
    parse_args = click.Command.parse_args

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command whose context `make_context` returned."""
        return click.Command.invoke(self, ctx) if ctx.command is self else ctx.command.invoke(ctx)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters; none for the context of a verb below, because click would add them to its path."""
        return super().get_params(ctx) if ctx.command is self else []

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Make the context of the verb itself, or of the group of the verbs below if the first argument names one.

        Raises:
            click.UsageError: the first argument is no file, and nearly the name of a verb below.
        """
        words = [word for before, word in pairwise(["", *args]) if before != "--lang" and word not in _COMMON_NAMES]
        first = next(iter(words), "")
        if first in self.commands:
            group = VerbGroup(self.name, commands=self.commands)
            return group.make_context(info_name, args, parent, **extra)
        word = Path(first).name == first and not first.startswith("-")
        near = get_close_matches(first, self.commands, 1, cutoff=0.75) if word else []
        if near and not Path(first).exists() and not extra.get("resilient_parsing"):
            context = click.Context(self, info_name=info_name, parent=parent)
            raise click.UsageError(f"no file or command {first}; did you mean {self.name} {near[0]}?", context)
        return super().make_context(info_name, args, parent, **extra)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage of the verb itself, then a line for each verb below."""
        formatter.write_usage(ctx.command_path, " ".join(click.Command.collect_usage_pieces(self, ctx)))
        for name, verb in self.commands.items():
            pieces = verb.collect_usage_pieces(click.Context(verb, info_name=name, parent=ctx))
            formatter.write_usage(f"{ctx.command_path} {name}", " ".join(pieces), prefix=" " * len("Usage: "))


_Command = TypeVar("_Command", bound=Verb)
Decorator = Callable[[Callable[..., Any]], _Command]


def command(kind: type[_Command], path: str, group: click.Group | None = None) -> Decorator[_Command]:
    """Return the decorator that makes a function a command of a class, with the texts of `verbs.toml`.

    Args:
        kind: class of the command.
        path: words that a user types after `manyheads`, such as "train average".
        group: group of the command; None for a command of the program.
    """
    name, texts = path.rpartition(" ")[2], TEXTS[path]
    help_texts = _SHARED_HELP | texts.get("options", {})

    def add_to_group(function: Callable[..., Any]) -> _Command:
        made = click.command(name, cls=kind, epilog=texts["epilog"], short_help=texts["help"])(function)
        for parameter in made.params:
            if isinstance(parameter, click.Option) and parameter.help is None:
                parameter.help = help_texts[parameter.opts[-1].removeprefix("--")]
        if group is not None:
            group.add_command(made)
        return made

    return add_to_group


verb = partial(command, Verb)
verb_group = partial(command, VerbGroup)
verb_with_subverbs = partial(command, VerbWithSubverbs)


def json_text(document: object) -> str:
    """Return a JSON document as text."""
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)


def echo_json(document: object) -> None:
    """Print one JSON document."""
    click.echo(json_text(document))


def echo(document: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print the result of a verb: one JSON document for programs, or lines for people, `Note`s if verbose."""
    if as_json:
        echo_json(document)
        return
    for line in lines:
        if current_settings().verbose or not isinstance(line, Note):
            click.echo(in_chosen_language(line))


def in_chosen_language(line: str) -> str:
    """Return a line of a result; a verdict is in the language of `--lang`."""
    indent, label, sentence = line.partition("verdict: ")
    if current_settings().language != "ko" or not label or indent.strip():
        return line
    from transformer_doctor.texts import translate

    sentences = verdict_sentences()
    return f"{indent}{sentences['verdict']}: {translate(sentence, sentences)}"


@cache
def verdict_sentences() -> dict[str, str]:
    """Return the Korean forms of verdicts, and of the doctor's observations that stand in them."""
    from transformer_doctor.texts import load_sentences

    verdicts = load_sentences("manyheads.evaluation", "verdicts")
    return verdicts | load_sentences("manyheads.checks", "observations")


def translate_card(folder: Path) -> None:
    """Write the model card of a run or an export in Korean, with `--lang ko`."""
    if current_settings().language == "ko":
        from manyheads.checkpoint.shown_card import write_korean_card

        write_korean_card(folder)


class JsonResult(Protocol):
    """A result that can be printed as JSON."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document."""
        ...


def warn(text: str) -> None:
    """Print a warning to stderr, unless the command line is quiet."""
    if not current_settings().quiet:
        click.echo(f"warning: {printable(text)}", err=True)


def program_name() -> str:
    """Return the command that starts this program: its name if it is on the PATH, else its path."""
    if shutil.which("manyheads"):
        return "manyheads"
    script = Path(sys.executable).with_name("manyheads")
    if not script.is_file():
        return command_line(sys.executable, "-m", "manyheads")
    inside = script.is_relative_to(Path.cwd())
    return quote(script.relative_to(Path.cwd()) if inside else script)
