"""The program `manyheads`: its verbs and its exit codes.

Exit codes: 0 success, 1 failure (internal error, failed training or comparison; of `doctor`, problems found),
2 usage or configuration, 3 data or a run directory, 4 a missing extra, 130 Ctrl-C, 141 stdout was closed by its
reader (`| head`), 143 SIGTERM.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import ClassVar

import click

from manyheads import __version__
from manyheads.cli.verbs import INTERRUPTED, LazyGroup, Settings, in_color
from manyheads.errors import ManyheadsError

__all__ = ["main", "program", "run"]

OUTPUT_CLOSED = 141
EPILOG = """\b
Examples:
  manyheads demo
  manyheads train multi30k-en-de-tiny --set data.root=data/multi30k
  echo "A dog runs." | manyheads translate runs/multi30k-en-de-tiny

\b
Exit codes:
  0    success
  1    failure: an internal error, a failed training or comparison;
       for `doctor`, problems were found
  2    wrong usage or configuration
  3    unusable data or run directory
  4    an optional package is missing; the message says how to install it
  130  interrupted by Ctrl-C (`train` saves a checkpoint first)
  143  ended by SIGTERM (`train` saves a checkpoint first)

\b
Environment:
  NO_COLOR          disable colours
  FORCE_COLOR       enable colours even without a terminal
  MANYHEADS_NATIVE  decode on the CPU with torch (0) or with the C decoder (1);
                    default: the one that was measured to be faster
  CC                C compiler that builds the C decoder
  XDG_CACHE_HOME    directory for compiled code; default: ~/.cache

Read docs/index.md in the source for a tutorial, every verb and every setting."""


class Program(LazyGroup):
    """The verbs, in the order in which a new user needs them."""

    verbs: ClassVar[Mapping[str, tuple[str, str]]] = {
        "demo": ("manyheads.cli.train", "Train a small translator on built-in text in about a minute."),
        "recipes": ("manyheads.cli.recipes", "List the recipes and their measured results."),
        "init": ("manyheads.cli.recipes", "Write a configuration file for you to edit."),
        "show-config": ("manyheads.cli.recipes", "Show every setting of a configuration, with its meaning."),
        "data": ("manyheads.cli.data", "Fetch public corpora, and report on text before training."),
        "train": ("manyheads.cli.train", "Train a model; run the same command again to resume."),
        "bench": ("manyheads.cli.bench", "Measure how fast this machine trains and translates."),
        "average": ("manyheads.cli.train", "Average the last checkpoints of a run."),
        "evaluate": ("manyheads.cli.evaluate", "Score a run on its test set, or compare it with another run."),
        "translate": ("manyheads.cli.translate", "Translate text: one output line for each input line."),
        "inspect": ("manyheads.cli.inspect", "Show attention, probabilities and other internals of a model."),
        "curves": ("manyheads.cli.inspect", "Plot the training curves of runs."),
        "export": ("manyheads.cli.export", "Convert a run for another program, and compare the outputs."),
        "import": ("manyheads.cli.export", "Import a pretrained model of transformers as a run."),
        "push": ("manyheads.cli.export", "Upload the model of a run to the Hugging Face hub."),
        "doctor": ("manyheads.cli.doctor", "Find problems in this machine, a configuration or a run."),
        "museum": ("manyheads.cli.doctor", "Show typical defects of Transformer code in small programs."),
        "classify": ("manyheads.cli.classify", "Classify text: one output line for each input line."),
        "generate": ("manyheads.cli.generate", "Generate text with a language model."),
        "serve": ("manyheads.cli.serve", "Serve models over HTTP: LibreTranslate's REST interface."),
        "keys": ("manyheads.cli.serve", "Create, list and remove the API keys of a server."),
    }


@click.group(cls=Program, epilog=EPILOG)
@click.version_option(__version__, message="%(prog)s %(version)s")
def program() -> None:
    """Train, check, inspect and serve Transformer models."""


def main() -> None:
    """Run the command line of this process, and exit with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = OUTPUT_CLOSED
    if code == OUTPUT_CLOSED:  # Python must not flush the rest of the buffer at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return the exit code. A user's mistake is printed to stderr as one `error:` line."""
    settings = Settings()
    try:
        if "_MANYHEADS_COMPLETE" in os.environ:
            program.main([], prog_name="manyheads")
        with program.make_context("manyheads", list(arguments), obj=settings) as context:
            program.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        return report_error(error, usage_message(error), 2, settings)
    except ManyheadsError as error:
        return report_error(error, str(error), error.exit_code, settings)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        return OUTPUT_CLOSED
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            return report_internal_error()
        return report_error(error, f"{error.filename or 'output'}: {error.strerror}. Free some space.", 3, settings)
    except Exception:
        return report_internal_error()
    return 0


def report_internal_error() -> int:
    """Print the traceback of the exception being handled, and return the exit code."""
    traceback.print_exc()
    click.echo("This is a fault of manyheads, not yours. Please report it with the lines above.", err=True)
    return 1


def report_error(error: Exception, message: str, code: int, settings: Settings) -> int:
    """Print a mistake of the user as one `error:` line, and return the exit code."""
    if settings.debug:
        traceback.print_exception(error)
    click.echo(click.style("error:", fg="red", bold=True) + f" {message}", err=True, color=in_color(sys.stderr))
    return code


def usage_message(error: click.ClickException) -> str:
    """Return click's message as one line, followed by the command that shows the right usage."""
    message = " ".join(error.format_message().split())
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"{message} See: {context.command_path} --help" if context else message
