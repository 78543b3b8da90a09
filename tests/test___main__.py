"""`python -m manyheads` is the program `manyheads`, whichever of its standard streams are closed or full."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import chain, combinations, cycle
from pathlib import Path

import pytest

from tests.checkpoint.test_directory import begin_run, make_config, make_model, named_tensors

STREAMS = ("<&-", ">&-", "2>&-")
CLOSED = [" ".join(some) for some in chain.from_iterable(combinations(STREAMS, count) for count in (1, 2, 3))]
needs_shell = pytest.mark.skipif(sys.platform == "win32", reason="no Unix shell")
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")


def run_with(streams: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the program with redirections of the shell."""
    command = ["sh", "-c", f'"$@" {streams}', "sh", sys.executable, "-m", "manyheads", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a translation run with random weights."""
    directory = begin_run(tmp_path_factory.mktemp("streams") / "run")
    directory.publish(named_tensors(make_model(make_config())))
    return directory.path


def test_the_module_runs_the_program_and_ends_with_its_exit_code() -> None:
    done = run_with("", "no-such-verb")
    assert done.returncode == 2
    assert "no-such-verb" in done.stderr


@needs_shell
def test_closed_streams_change_no_exit_code() -> None:
    commands = ((["--version"], 0), (["--help"], 0), (["recipes"], 0), (["no-such-verb"], 2))
    for streams, (arguments, code) in zip(CLOSED, cycle(commands), strict=False):
        done = run_with(streams, *arguments)
        assert done.returncode == code, streams
        assert "Traceback" not in done.stdout + done.stderr


@needs_shell
@pytest.mark.parametrize("streams", ["<&-", ">&-", CLOSED[-1]])
def test_a_translation_with_closed_streams_is_refused(run, streams) -> None:
    done = run_with(streams, "translate", str(run), stdin="a\n")
    name = "input" if "<" in streams else "output"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("" if "2>" in streams else f"error: standard {name} is closed. Give ")


@needs_shell
@needs_full
def test_messages_that_cannot_be_written_are_lost_and_results_are_an_error(run) -> None:
    done = run_with("2>/dev/full", "translate", str(run), stdin="a\n")
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert run_with("2>/dev/full", "no-such-verb").returncode == 2
    for arguments in (["translate", str(run)], ["recipes"]):
        done = run_with(">/dev/full", *arguments, stdin="a\n")
        assert (done.returncode, done.stderr.splitlines()[-1]) == (
            3, "error: output: No space left on device. Free some space, and give the same command again."
        )  # fmt: skip
        assert run_with(">/dev/full 2>/dev/full", *arguments, stdin="a\n").returncode == 3


@needs_shell
@needs_full
@pytest.mark.parametrize(("streams", "code"), [(">/dev/full", 3), (">&-", 2)])
def test_a_key_that_could_not_be_shown_is_not_stored(tmp_path: Path, streams: str, code: int) -> None:
    keys = tmp_path / "keys.json"
    assert run_with("", "serve", "keys", "add", str(keys), "first").returncode == 0
    before = keys.read_bytes()
    assert run_with(streams, "serve", "keys", "add", str(keys), "second").returncode == code
    assert keys.read_bytes() == before
