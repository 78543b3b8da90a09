"""A result is shown alike by all commands: figures or report, verdict, next command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from manyheads.results import Note, Result, plain


class Score(NamedTuple):
    name: str
    value: float


@dataclass(frozen=True)
class Part:
    size: int
    names: tuple[str, ...]


class Told:
    def to_json(self) -> dict[str, int]:
        return {"own": 1}


@dataclass(frozen=True)
class Found(Result):
    out: Path
    part: Part | None
    after: str = ""

    def report(self) -> list[str]:
        return [f"{self.out}: found"]

    def verdict(self) -> list[str]:
        return ["it is good", Note("and needs nothing")]

    def following(self) -> str:
        return self.after


def test_a_note_reads_as_its_text() -> None:
    assert Note("all is well") == "all is well"
    assert not isinstance("all is well", Note)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Part(3, ("a",)), {"size": 3, "names": ["a"]}),
        ({"a": [Path("b") / "c", None, 1.5, True, "text"]}, {"a": [str(Path("b/c")), None, 1.5, True, "text"]}),
        ((Score("bleu", 2.0),), [["bleu", 2.0]]),
        ({"inner": Told()}, {"inner": {"own": 1}}),
    ],
)
def test_values_are_made_plain_whatever_holds_them(value: object, expected: object) -> None:
    assert plain(value) == expected


def test_json_has_the_fields_and_the_verdict() -> None:
    assert Found(Path("run"), Part(1, ())).to_json() == {
        "out": "run",
        "part": {"size": 1, "names": []},
        "after": "",
        "verdict": "it is good. and needs nothing",
    }


def test_lines_are_report_verdict_and_next_command_and_that_of_a_note_is_a_note() -> None:
    lines = Found(Path("run"), None, "manyheads translate run").lines()
    assert lines == [
        "run: found", "verdict: it is good", "verdict: and needs nothing", "Next: manyheads translate run",
    ]  # fmt: skip
    assert [isinstance(line, Note) for line in lines] == [False, False, True, False]
    assert Found(Path("run"), None).lines() == lines[:3]
