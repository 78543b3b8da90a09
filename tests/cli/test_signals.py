"""Ctrl-C, SIGTERM and SIGHUP while the program starts: one word of output, the right exit code, no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.clocks import Clock

from manyheads.cli import signals
from manyheads.cli.main import run
from manyheads.cli.signals import _REPEAT, WORDS, StopSignals, Terminated

STOPPING = [number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None))]


class Exited(BaseException):
    """The program called `os._exit`."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(signals, "time", clock)
    return clock


def raise_exited(code: int) -> None:
    raise Exited(code)


@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_raises_once_its_repetition_is_ignored_and_a_later_one_ends_the_program_at_once(
    number: signal.Signals, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`timeout` signals a process, and then its whole group."""
    monkeypatch.setattr(os, "_exit", raise_exited)
    handlers = StopSignals()
    with pytest.raises(KeyboardInterrupt if number is signal.SIGINT else Terminated):
        handlers.handle(number, None)
    clock.now += _REPEAT / 2
    handlers.handle(number, None)
    assert handlers.received is number
    clock.now += _REPEAT / 2
    with pytest.raises(Exited, match=str(128 + number)):
        handlers.handle(signal.SIGTERM, None)


@pytest.mark.parametrize("number", STOPPING)
@pytest.mark.parametrize("replaced", [False, True])
def test_an_interrupted_verb_prints_one_word(
    number: signal.Signals, replaced: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Include ImportError, into which numpy turns an exception that is raised while its C code imports."""
    handlers = StopSignals()

    def interrupted(*_: object) -> None:
        try:
            handlers.handle(number, None)
        except BaseException as error:
            raise ImportError if replaced else error from error

    monkeypatch.setattr("manyheads.cli.main._Program.invoke", interrupted)
    assert run(["recipes"], handlers) == 128 + number
    assert capsys.readouterr().err == f"{WORDS[number]}\n"


@pytest.mark.parametrize("ignored", STOPPING)
def test_ignored_signals_stay_ignored(ignored: signal.Signals) -> None:
    before = {number: signal.getsignal(number) for number in STOPPING}
    for number in STOPPING:  # nohup runs the tests with SIGHUP ignored
        signal.signal(number, signal.SIG_IGN if number is ignored else signal.SIG_DFL)
    try:
        StopSignals().install()
        assert [number for number in STOPPING if signal.getsignal(number) is signal.SIG_IGN] == [ignored]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_no_handler_is_installed_in_another_thread() -> None:
    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=StopSignals().install)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "module"),
    [
        (signal.SIGINT, "click"),
        (signal.SIGTERM, "numpy._core"),  # its C code turns an exception into ImportError
        (signal.SIGINT, "torch._C"),
        (signal.SIGTERM, "manyheads.runs"),
        *((number, "click") for number in STOPPING if number not in (signal.SIGINT, signal.SIGTERM)),
    ],
)
def test_a_signal_while_modules_are_imported_prints_one_word(
    number: signal.Signals, module: str, tmp_path: Path
) -> None:
    """Send the signal after Python has printed that it imported the module (-X importtime)."""
    command = [sys.executable, "-X", "importtime", "-m", "manyheads", "demo", "--output", str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("import time:") and line.rpartition("|")[2].strip().startswith(module):
                process.send_signal(number)
                break
        rest = [line.strip() for line in process.stderr if not line.startswith("import time:")]
    assert process.returncode == 128 + number
    assert rest == [WORDS[number]]
