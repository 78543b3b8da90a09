"""Outputs of sound runs raise no alarm, and those of broken ones are named."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from manyheads.data.defects import repeats
from manyheads.doctor.checks.outputs import output_findings
from manyheads.doctor.report import Finding
from manyheads.evaluation.outputs import Output


def names(findings: Iterable[Finding]) -> dict[str, str]:
    return {finding.name: finding.severity for finding in findings}


def outputs(change: dict[int, str] | None = None, count: int = 40) -> list[Output]:
    lines = [f"a {place} big dog runs over the green lawn" for place in range(count)]
    return [
        Output(place + 1, f"ein {place} großer Hund rennt", line, (change or {}).get(place, line), True)
        for place, line in enumerate(lines)
    ]


def judged(found: list[Output], *, whole_words: bool = False) -> dict[str, str]:
    return names(output_findings(found, whole_words=whole_words))


def test_sound_outputs() -> None:
    assert judged(outputs()) == {}
    assert judged(outputs({3: "dog dog dog dog dog"})) == {}  # one alone is no rule
    assert (
        judged(
            outputs({place: f"<unk> {place} dog runs over the green lawn" for place in range(9)}), whole_words=True
        )
        == {}
    )


def every(text: str, step: int) -> dict[int, str]:
    return {place: text.replace("#", str(place)) for place in range(0, 40, step)}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (every("a # big dog dog dog dog dog the lawn", 10), {"repeats-itself": "warning"}),
        (every("a # big dog and a big dog and a big dog and a big dog and a", 3), {"repeats-itself": "error"}),
        (every("ein # großer Hund rennt", 10), {"copies-its-source": "warning"}),
        (every("a # <unk> dog runs over the green lawn", 10), {"writes-unknown": "warning"}),
        (every("", 13), {"nothing-said": "warning"}),
        (every("a # big dog runs", 1), {"too-short": "error"}),
        (every("a # big dog runs over the", 1), {"too-short": "warning"}),
        (every("a # big dog runs over the green lawn in front of a house", 1), {"too-long": "warning"}),
        (every("a 17 big dog runs over the green lawn", 1), {"same-output": "error"}),
    ],
)
def test_outputs_with_a_fault_are_named(change: dict[int, str], expected: dict[str, str]) -> None:
    assert judged(outputs(change)) == expected


def test_outputs_that_never_end() -> None:
    found = [replace(one, ended=one.line % 10 > 0) for one in outputs()]
    assert judged(found) == {"never-ends": "warning"}


def test_what_is_a_repetition() -> None:
    for text in (
        "no no no no",
        "der Hund und der Hund und der Hund und der Hund und",
        "하하하하하하하하하",
        "a b " * 4,
    ):
        assert repeats(text), text
    for text in ("no no no", "the dog and the cat and the cow", "Hahaha", "1000000", "----------" * 0, "so so"):
        assert not repeats(text), text
