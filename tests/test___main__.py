"""`python -m manyheads` is the program `manyheads`."""

from __future__ import annotations

import subprocess
import sys


def test_it_runs_the_program_and_ends_with_its_exit_code() -> None:
    command = [sys.executable, "-m", "manyheads", "no-such-verb"]
    mistake = subprocess.run(command, capture_output=True, text=True, check=False)
    assert mistake.returncode == 2
    assert "no-such-verb" in mistake.stderr
