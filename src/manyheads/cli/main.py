"""The program `manyheads`: its verbs, and how it ends.

Exit codes: 0 done, 1 a fault of ours, 2 usage or configuration, 3 data or a run directory, 4 a missing extra,
130 Ctrl-C, 141 the reader of the output has gone (`| head`), 143 a request to end.
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
  0    done
  1    a fault of manyheads; of `doctor`, that something is wrong
  2    usage or configuration
  3    data, or a run directory
  4    a part is missing; the message says how to install it
  130  Ctrl-C, 143 a request to end; of `train`, all is saved

\b
Environment:
  NO_COLOR, FORCE_COLOR  no colours, or colours also where no terminal is
  MANYHEADS_NATIVE=0     decode on the CPU by torch; 1: by the C decoder; else the one measured faster here
  CC                     the C compiler
  XDG_CACHE_HOME         where compiled code is kept; ~/.cache if not set

The book: every verb, every setting, a tutorial: docs/index.md of the source."""


class Program(LazyGroup):
    """The verbs, in the order of a first visit."""

    verbs: ClassVar[Mapping[str, tuple[str, str]]] = {
        "demo": ("manyheads.cli.train", "Train a small translator on built-in text in about a minute."),
        "recipes": ("manyheads.cli.recipes", "List the recipes and their measured results."),
        "init": ("manyheads.cli.recipes", "Copy a recipe into a folder, to edit."),
        "show-config": ("manyheads.cli.recipes", "Show every setting of a configuration, with its meaning."),
        "data": ("manyheads.cli.data", "Fetch public text, and report on text before training."),
        "train": ("manyheads.cli.train", "Train a model; the same line again resumes."),
        "bench": ("manyheads.cli.bench", "Measure how fast this machine trains and translates."),
        "average": ("manyheads.cli.train", "Average the last checkpoints of a run."),
        "evaluate": ("manyheads.cli.evaluate", "Score a run on its test set, or against another run."),
        "translate": ("manyheads.cli.translate", "Translate text: lines in, lines out."),
        "inspect": ("manyheads.cli.inspect", "Show what a text does inside a model."),
        "curves": ("manyheads.cli.inspect", "Show how training went."),
        "export": ("manyheads.cli.export", "Write a run for another program, and compare both."),
        "import": ("manyheads.cli.export", "Make a run of a model of transformers."),
        "push": ("manyheads.cli.export", "Put the model of a run on the Hugging Face hub."),
        "doctor": ("manyheads.cli.doctor", "Say what is wrong with this machine, a configuration or a run."),
        "museum": ("manyheads.cli.doctor", "Show the defects of tutorials at work."),
        "classify": ("manyheads.cli.classify", "Label text: lines in, labels out."),
        "generate": ("manyheads.cli.generate", "Let a language model go on with a text."),
        "serve": ("manyheads.cli.serve", "Serve runs: LibreTranslate's REST interface."),
        "keys": ("manyheads.cli.serve", "Make and remove the keys of a server."),
    }


@click.group(cls=Program, epilog=EPILOG)
@click.version_option(__version__, message="%(prog)s %(version)s")
def program() -> None:
    """Train, check, look into and serve a Transformer of your own."""


def main() -> None:
    """Run the command line of this process, and end it with the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = OUTPUT_CLOSED
    if code == OUTPUT_CLOSED:  # what is left in the buffer must not be tried again when Python ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit code. Mistakes of the user go to stderr as one `error:` line."""
    settings = Settings()
    try:
        if "_MANYHEADS_COMPLETE" in os.environ:
            program.main([], prog_name="manyheads")
        with program.make_context("manyheads", list(arguments), obj=settings) as context:
            program.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as mistake:
        return report(mistake, usage_message(mistake), 2, settings)
    except ManyheadsError as mistake:
        return report(mistake, str(mistake), mistake.exit_code, settings)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        return OUTPUT_CLOSED
    except OSError as fault:
        if fault.errno not in (errno.ENOSPC, errno.EDQUOT):
            return our_fault()
        return report(fault, f"{fault.filename or 'output'}: {fault.strerror}. Free some space.", 3, settings)
    except Exception:
        return our_fault()
    return 0


def our_fault() -> int:
    """Print the traceback of the exception being handled; returns the exit code."""
    traceback.print_exc()
    click.echo("This is a fault of manyheads, not yours. Please report it with the lines above.", err=True)
    return 1


def report(mistake: Exception, message: str, code: int, settings: Settings) -> int:
    """Print a mistake of the user; returns the exit code."""
    if settings.debug:
        traceback.print_exception(mistake)
    click.echo(click.style("error:", fg="red", bold=True) + f" {message}", err=True, color=in_color(sys.stderr))
    return code


def usage_message(mistake: click.ClickException) -> str:
    """What click says, in one line, and where the right usage stands."""
    message = " ".join(mistake.format_message().split())
    context = mistake.ctx if isinstance(mistake, click.UsageError) else None
    return f"{message} See: {context.command_path} --help" if context else message
