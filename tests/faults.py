"""A command of manyheads that is killed, for tests."""

from __future__ import annotations

from faults import run_killed


def kill_command(*words: object, at: str) -> None:
    """Run a command of manyheads, and kill it when it is about to rename a draft to a path that ends in `at`."""
    program = """
import os, sys
from manyheads.cli.main import run
replace = os.replace
os.replace = lambda draft, path: kill() if str(path).endswith(sys.argv[1]) else replace(draft, path)
sys.exit(run(sys.argv[2:]))
"""
    run_killed(program, at, *words)
