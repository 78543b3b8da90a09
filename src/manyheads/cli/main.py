"""The program `manyheads`: its verbs and its exit codes.

Exit codes: 0 success, 1 failure (internal error, failed training or comparison; of `doctor`, problems found),
2 usage or configuration, 3 data or a run directory, 4 a missing extra, 129 SIGHUP, 130 Ctrl-C, 141 stdout was
closed by its reader (`| head`), 143 SIGTERM.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Literal, cast

import click

from bitext.files import CURES, cure_of
from manyheads import __version__
from manyheads.cli.korean import usage_error_in_korean
from manyheads.cli.signals import WORDS, StopSignals, Terminated, follows_another, is_follower
from manyheads.cli.verbs import INTERRUPTED, LANGUAGES, SECTIONS, TEXTS, Settings, VerbGroup, in_color
from manyheads.errors import ManyheadsError, UsageError, missing_training, printable

_COMPLETION = "_MANYHEADS_COMPLETE"  # the environment variable of click's scripts
_OUTPUT_CLOSED = 141


class _Program(VerbGroup):
    """The verbs of `verbs.toml`; the module of a verb is imported only when that verb is used.

    Attributes:
        verbs: (module, help line) of each verb, in the order of the help. The module holds the commands in `VERBS`.
    """

    verbs: ClassVar[Mapping[str, tuple[str, str]]] = {
        name: (f"manyheads.cli.{TEXTS[name]['module']}", TEXTS[name]["help"])
        for names in SECTIONS.values()
        for name in names
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the verbs, in the order of the help."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb; return None for an unknown name."""
        if cmd_name not in self.verbs:
            return None
        commands: Mapping[str, click.Command] = importlib.import_module(self.verbs[cmd_name][0]).VERBS
        return commands[cmd_name]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the name and the help line of each verb by section, without importing it."""
        width = max(map(len, self.verbs))
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), self.verbs[name][1]) for name in names])


@click.group(cls=_Program, epilog=TEXTS["manyheads"]["epilog"])
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
def program() -> None:
    """Train, check, inspect and serve Transformer models.

    To show the arguments and options of a command, type: manyheads COMMAND -h.
    """


def main(signals: StopSignals | None = None) -> None:
    """Run the command line of this process, and exit with its exit code.

    `signals` are the handlers that the program has installed.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    code = run(sys.argv[1:], signals)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _OUTPUT_CLOSED
    except OSError as error:
        code = code or _report_unwritable(error, Settings())
    if signals is not None and signals.received:  # without waiting for threads that still compute
        os._exit(code)
    if code:  # Python must not flush the rest of the buffer at exit, which may fail again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def run(arguments: Sequence[str], signals: StopSignals | None = None) -> int:
    """Run one command line and return the exit code. A user's mistake is printed to stderr as one `error:` line.

    `signals` are the handlers that the program has installed.
    """
    settings = Settings()
    try:
        settings.language = _language_of(arguments)
        if instruction := os.environ.get(_COMPLETION):
            from click.shell_completion import shell_complete

            return shell_complete(program, {}, "manyheads", _COMPLETION, instruction)
        with program.make_context("manyheads", list(arguments), obj=settings) as context:
            program.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        return _report_error(error, _usage_message(error, settings.language), 2, settings)
    except ManyheadsError as error:
        return _report_error(error, str(error), error.exit_code, settings)
    except (KeyboardInterrupt, click.Abort):
        _print_end("interrupted")
        return INTERRUPTED
    except Terminated as end:
        (number,) = end.args
        _print_end(WORDS[number])
        return 128 + number
    except BrokenPipeError:
        return _OUTPUT_CLOSED
    except OSError as error:
        return _report_unwritable(error, settings) if error.errno in CURES else _report_internal_error(error)
    except Exception as error:
        if user_error := _for_users(error, arguments):
            return _report_error(error, str(user_error), user_error.exit_code, settings)
        if signals is not None and signals.received:  # a library has replaced the signal's exception
            _print_end(WORDS[signals.received])
            return 128 + signals.received
        return _report_internal_error(error)  # a fault of the program: its traceback is printed, not hidden
    return 0


def _language_of(arguments: Sequence[str]) -> Literal["en", "ko"] | None:
    """Return the language that --lang names, for a --help that stands before it, else that of the environment.

    Raises:
        UsageError: the environment names a language that the program lacks.
    """
    environment = os.environ.get("MANYHEADS_LANG") or None
    if environment not in (None, *LANGUAGES):
        raise UsageError(
            f"MANYHEADS_LANG={environment} is no language of the program. Use {' or '.join(LANGUAGES)}."
        )
    given = [word for before, word in pairwise(arguments) if before == "--lang"]
    given += [word.removeprefix("--lang=") for word in arguments if word.startswith("--lang=")]
    chosen = next((language for language in LANGUAGES if language in given), environment)
    return cast('Literal["en", "ko"] | None', chosen)


def _for_users(error: Exception, arguments: Sequence[str]) -> Any:
    """Return an error with an `exit_code`, which a user can mend: the doctor's, or that of a missing package."""
    if isinstance(error, ModuleNotFoundError):
        return missing_training(error, " ".join(("manyheads", *arguments[:1])))
    return error if hasattr(error, "exit_code") else None


def _print_end(word: str) -> None:
    """Print how the program was ended; the first of several processes does."""
    if not is_follower():
        click.echo(word, err=True)


def _report_unwritable(error: OSError, settings: Settings) -> int:
    """Print that an output cannot be written, and return the exit code."""
    return _report_error(error, f"{error.filename or 'output'}: {error.strerror}. {cure_of(error)}", 3, settings)


def _print_traceback(error: BaseException) -> None:
    """Print the traceback of an exception, whose texts may hold control characters."""
    import traceback  # slow to import

    for line in "".join(traceback.format_exception(error)).rstrip("\n").split("\n"):
        click.echo(printable(line), err=True)


def _report_internal_error(error: Exception) -> int:
    """Print the traceback of a fault of the program, and return the exit code."""
    if follows_another(error):
        return 1
    _print_traceback(error)
    click.echo("This is a fault of manyheads, not yours. Please report it with the lines above.", err=True)
    return 1


def _report_error(error: Exception, message: str, code: int, settings: Settings) -> int:
    """Print a mistake of the user as one `error:` line, and return the exit code."""
    if follows_another(error):
        return code
    if settings.debug:
        _print_traceback(error)
    click.echo(
        click.style("error:", fg="red", bold=True) + f" {printable(message)}", err=True, color=in_color(sys.stderr)
    )
    return code


def _usage_message(error: click.ClickException, language: str | None) -> str:
    """Return click's message as one line, followed by the command that shows the right usage."""
    message = " ".join(error.format_message().split())
    context = error.ctx if isinstance(error, click.UsageError) else None
    message = f"{message} See: {context.command_path} --help" if context else message
    return usage_error_in_korean(message) if language == "ko" else message
