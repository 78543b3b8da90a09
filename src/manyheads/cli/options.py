"""Options that several verbs share, and options that fill the fields of a dataclass of the library."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, get_type_hints

import click
from click.shell_completion import CompletionItem

from bitext import commands
from bitext.files import os_errors
from manyheads.cli.korean import in_korean, is_korean
from manyheads.errors import UsageError

if TYPE_CHECKING:
    from click.types import OptionHelpExtra


class OutputPath(click.Path):
    """A path that a verb writes. Every other `click.Path` is one that it reads."""


class _Engine(click.Choice[str]):
    """The engines by name; that of an earlier version is refused with what to use in its place."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == "ctranslate2":
            from manyheads.inference.engines import check_engine

            check_engine(value)
        return super().convert(value, param, ctx)


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_Options = TypeVar("_Options")
PATH = click.Path(path_type=Path)
OUTPUT = OutputPath(path_type=Path, readable=False)
OUTPUT_FOLDER = OutputPath(path_type=Path, file_okay=False, readable=False)
OUTPUT_FILE = OutputPath(path_type=Path, dir_okay=False, readable=False)
_MAX_COUNT = 1_000_000_000  # of a number without a narrower limit; helps leave it out
ENGINE = _Engine(["auto", "native", "torch"])
COUNT = click.IntRange(1, _MAX_COUNT)
NOT_NEGATIVE = click.IntRange(0, _MAX_COUNT)


class _Option(click.Option):
    """An option whose help states its range in words ("at least 1", not "x>=1"), and a number as N or X."""

    def make_metavar(self, ctx: click.Context) -> str:
        if self.metavar is None and isinstance(self.type, click.types.IntParamType | click.types.FloatParamType):
            return "N" if isinstance(self.type, click.types.IntParamType) else "X"
        return super().make_metavar(ctx)

    def get_help_extra(self, ctx: click.Context) -> OptionHelpExtra:
        """Return click's additions to the help text: the range in words, a default in words without parentheses."""
        words = in_korean if is_korean(ctx) else str
        extra = super().get_help_extra(ctx)
        if isinstance(self.show_default, str):
            extra["default"] = words(self.show_default)
        if "range" in extra:
            extra["range"] = _range_in_words(self.type, words)
        if self.required:
            extra["required"] = words("required")
        return extra


def _range_in_words(number_type: click.ParamType[Any], words: Callable[[str], str]) -> str:
    """Return the range of a number type, such as "at least 1" or "above 0, at most 1"."""
    assert isinstance(number_type, click.IntRange | click.FloatRange)
    limited = number_type.max is not None and number_type.max < _MAX_COUNT
    if number_type.min is not None and limited and not (number_type.min_open or number_type.max_open):
        return words("{} to {}").format(number_type.min, number_type.max)
    bounds = []
    if number_type.min is not None:
        bounds.append(words("above {}" if number_type.min_open else "at least {}").format(number_type.min))
    if limited:
        bounds.append(words("below {}" if number_type.max_open else "at most {}").format(number_type.max))
    return ", ".join(bounds)


def check_outputs(context: click.Context) -> None:
    """Check the outputs of a parsed command line, standard output among them, against its inputs and each other.

    All names of a file are one, as of a link; pipes and devices may be named twice.

    Raises:
        UsageError: an output is an input or another output, or cannot be written, as without a folder.
    """
    named = [
        (parameter, str(path))
        for parameter in context.command.get_params(context)
        if isinstance(parameter.type, click.Path) and (value := context.params.get(parameter.name or ""))
        for path in (value if isinstance(value, tuple) else [value])
    ]
    read: dict[object, str] = {}
    for parameter, path in named:
        for name in (path, path.rpartition(":")[0]):  # FILE.py:NAME is a model
            with suppress(OSError):
                if not isinstance(parameter.type, OutputPath) and (place := _file_id(name, 0)):
                    read[place] = _label(parameter)
    with suppress(OSError):
        if (place := _file_id("-", 1)) in read:
            raise UsageError(f"standard output is the input ({read[place]}); write to another file.")
    written: dict[object, str] = {}
    for parameter, path in named:
        if not isinstance(parameter.type, OutputPath):
            continue
        with os_errors(f"{path} cannot be written", UsageError):
            if parameter.type is OUTPUT_FILE and not Path(path).parent.is_dir():
                raise UsageError(f"{path} cannot be written: there is no folder {Path(path).parent}.")
            try:
                place = _file_id(path, 1)
            except FileNotFoundError:
                place = os.path.realpath(path)
        if place in read:
            raise UsageError(f"{path} is the input ({read[place]}); write to another file.")
        if place in written:
            raise UsageError(
                f"{path} is the same name for {written[place]} and {_label(parameter)}. Give two names."
            )
        if place is not None:
            written[place] = _label(parameter)


def _file_id(path: str, stream: int) -> object:
    """Return the identity of a file under any of its names, None for no file; "-" is a standard stream."""
    status = os.fstat(stream) if path == "-" else os.stat(path)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _label(parameter: click.Parameter) -> str:
    """Return the name of a parameter, such as --output or SOURCE."""
    return parameter.opts[-1] if isinstance(parameter, click.Option) else parameter.human_readable_name


option = partial(click.option, cls=_Option, show_default=True)


class _RecipeOrPath(click.Path):
    """Name of a recipe, or path of a file."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[str]]:
        """Complete the names of recipes; if none begins with the word, the paths of files."""
        from manyheads.config.load import recipe_paths

        names = [CompletionItem(name) for name in recipe_paths() if name.startswith(incomplete)]
        return names or super().shell_complete(ctx, param, incomplete)


RECIPE = _RecipeOrPath()


def pass_options(owner: type[_Options]) -> Callable[[Callable[[_Options], None]], Callable[..., None]]:
    """Return the decorator of a verb that takes its arguments and options as one object.

    The class of the object is a dataclass. Each field has its declaration, a decorator of click, in its annotation:

        @dataclass(frozen=True)
        class _AverageOptions:
            run: Run
            last: Annotated[int | None, option("--last", type=COUNT)]

    The help text of an option without `help` is in verbs.toml.
    """

    def decorate(function: Callable[[_Options], None]) -> Callable[..., None]:
        @wraps(function)
        def command(**values: Any) -> None:
            function(owner(**values))

        declarations = [hint.__metadata__[0] for hint in get_type_hints(owner, include_extras=True).values()]
        return _declare(command, declarations)

    return decorate


def gather(make: Callable[..., object], name: str, *declarations: Decorator) -> Decorator:
    """Return the decorator that adds options; the command receives what `make` returns for them, as `name`.

    `make` is called with the values of the options by their names, as a dataclass of the library is.
    """
    probe = _declare(lambda: None, declarations)
    names = [parameter.name or "" for parameter in click.command()(probe).params]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def gathered(**values: Any) -> Any:
            own = {key: values.pop(key) for key in names}
            return command(**values, **{name: make(**own)})

        return _declare(gathered, declarations)

    return decorate


def _declare(command: Callable[..., Any], declarations: Sequence[Decorator]) -> Callable[..., Any]:
    """Decorate a command, so that its help shows the options in this order."""
    for declaration in reversed(declarations):
        command = declaration(command)
    return command


def _source_and_target(to_language: str, from_language: str) -> tuple[str, str]:
    return from_language, to_language


class Executor(NamedTuple):
    """Options for the processes that compute the shards of a text; see `bitext.commands.executor_options`."""

    workers: int | None = None
    scheduler: str | None = None


def executor_options(work: str, *, threads: str = "") -> Decorator:
    """Return the decorator with --workers and --scheduler; the command receives an `Executor` as `executor`."""
    return gather(Executor, "executor", commands.executor_options(option, work, threads=threads))


def run_output_option(default: str) -> Decorator:
    """Return `--output`, the run directory to write; `default` is shown in the help."""
    return option("-o", "--output", type=OUTPUT, metavar="RUN", show_default=default)


language_option = partial(option, metavar="LANGUAGE")
beam_option = option("--beam", "beam_size", type=COUNT, show_default="search.beam_size of the run")

# Fields of the options of several verbs.
Run = Annotated[Path, click.argument("run", type=PATH)]
InputFile = Annotated[Path, click.argument("file", type=PATH, default="-")]
ConfigName = Annotated[str, click.argument("config", type=RECIPE)]
Overrides = Annotated[tuple[str, ...], option("--set", "overrides", multiple=True, metavar="SECTION.KEY=VALUE")]
Device = Annotated[str, option("--device", default="auto", metavar="NAME")]
Languages = Annotated[  # (source, target); "" leaves out the choice
    tuple[str, str],
    gather(
        _source_and_target,
        "languages",
        language_option("--to", "to_language", default="", show_default=False),
        language_option("--from", "from_language", default="", show_default=False),
    ),
]
Output = Annotated[Path | None, option("-o", "--output", type=OUTPUT_FILE, metavar="FILE", show_default="stdout")]
AsJson = Annotated[bool, option("--json", "as_json", is_flag=True)]


def with_device(overrides: tuple[str, ...], device: str | None) -> tuple[str, ...]:
    """Return the overrides, with `training.device` added if the option `--device` was given."""
    return overrides if device is None else (*overrides, f"training.device={device}")


def field_option(
    owner: type, name: str, metavar: str | None = None, *, flag: str | None = None, note: str = ".", **settings: Any
) -> Decorator:
    """Return the option that fills a field of a dataclass, with the default and the help text of the field.

    Args:
        owner: the dataclass; its docstring describes each field in the section "Attributes".
        name: name of the field.
        metavar: placeholder of the value; in the help text it replaces a field name such as top_k.
        flag: name of the option; by default the name of the field, with hyphens.
        note: end of the help text, instead of its full stop.
        settings: further settings of `click.option`; `help` replaces the text of the field, None by that of
            verbs.toml.
    """
    default = {field.name: field.default for field in dataclasses.fields(owner)}[name]
    text = _attribute_texts(owner).get(name, "").removesuffix(".")
    text = text[:1].upper() + text[1:] + note
    if metavar and "_" in name:
        text = re.sub(rf"\b{name}\b", metavar, text)
    arguments: dict[str, Any] = {
        "default": default,
        "is_flag": isinstance(default, bool),
        "metavar": metavar,
        "help": text,
    }
    return option(flag or f"--{name.replace('_', '-')}", name, **arguments | settings)


@cache
def _attribute_texts(owner: type) -> dict[str, str]:
    """Return the description of each attribute from the docstring of a class, each as one line."""
    _, _, section = (inspect.getdoc(owner) or "").partition("Attributes:\n")
    entries = re.findall(r"^    (\w+): (.+(?:\n {8}.+)*)", section, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}
