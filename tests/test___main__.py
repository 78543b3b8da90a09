"""`python -m manyheads` is the program `manyheads`."""

from __future__ import annotations

import subprocess
import sys


def test_the_module_runs_the_program_and_ends_with_its_exit_code() -> None:
    command = [sys.executable, "-m", "manyheads", "no-such-verb"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no-such-verb" in done.stderr
