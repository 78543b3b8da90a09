"""Measure how long the command line takes to answer.

python benchmarks/startup.py [--json]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from functools import partial

from harness import Document, in_turn, main, option, spread

COMMANDS = {"--help": ["--help"], "usage error": ["train"], "unknown recipe": ["train", "no-such-recipe"]}


def measure(arguments: argparse.Namespace) -> Document:
    """Return the wall time of whole processes, in turn, after one of each as a warm-up."""
    commands = {
        name: partial(subprocess.run, [sys.executable, "-m", "manyheads", *words], capture_output=True)
        for name, words in COMMANDS.items()
    }
    return {"rows": {name: spread(times) for name, times in in_turn(commands, arguments.repeats).items()}}


OPTIONS = {"--repeats": option(9, "processes of each kind", tiny=1)}

if __name__ == "__main__":
    main(measure, __doc__, OPTIONS, unit="s")
