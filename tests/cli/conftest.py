"""What tests of commands share: a command with what it printed, and the calls of the library that it makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from manyheads.cli.main import run
from manyheads.errors import ManyheadsError


@dataclass(frozen=True)
class Printed:
    """What a command wrote to standard output and to standard error."""

    out: str
    err: str


Call = Callable[..., Printed]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Return a function that runs a command of some words, expects its exit code, and returns what it printed."""

    def call(*words: object, code: int = 0) -> Printed:
        capsys.readouterr()
        assert run([str(word) for word in words]) == code
        return Printed(*capsys.readouterr())

    return call


Recorded = list[tuple[tuple[Any, ...], dict[str, Any]]]
Record = Callable[..., Recorded]


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Record:
    """Return a function that replaces functions, by their paths, with one that records its arguments and fails."""

    def record(*paths: str) -> Recorded:
        calls: Recorded = []

        def fail(*positional: object, **named: object) -> None:
            calls.append((positional, named))
            raise ManyheadsError("enough")

        for path in paths:
            monkeypatch.setattr(path, fail)
        return calls

    return record
