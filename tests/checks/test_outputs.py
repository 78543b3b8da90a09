"""Outputs of sound runs raise no alarm, and those of broken ones are named."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.checks.severities import severities

from manyheads.checks.outputs import _output_findings
from manyheads.evaluation.outputs import Output


def outputs(change: dict[int, str] | None = None, count: int = 40) -> list[Output]:
    lines = [f"a {index} big dog runs over the green lawn" for index in range(count)]
    return [
        Output(index + 1, f"ein {index} großer Hund rennt", line, (change or {}).get(index, line), True)
        for index, line in enumerate(lines)
    ]


def findings_of(found: list[Output], *, whole_words: bool = False) -> dict[str, str]:
    return severities(_output_findings(found, whole_words=whole_words))


def test_sound_outputs_raise_no_alarm() -> None:
    assert findings_of(outputs()) == {}
    assert findings_of(outputs({3: "dog dog dog dog dog"})) == {}  # a single output is not enough
    assert (
        findings_of(
            outputs({index: f"<unk> {index} dog runs over the green lawn" for index in range(9)}), whole_words=True
        )
        == {}
    )


def every_nth(text: str, step: int) -> dict[int, str]:
    """Return a text for every `step`-th output, with its index in the place of #."""
    return {index: text.replace("#", str(index)) for index in range(0, 40, step)}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (every_nth("a # big dog dog dog dog dog the lawn", 10), {"repeats-itself": "warning"}),
        (every_nth("a # big dog and a big dog and a big dog and a big dog and a", 3), {"repeats-itself": "error"}),
        (every_nth("ein # großer Hund rennt", 10), {"copies-its-source": "warning"}),
        (every_nth("a # <unk> dog runs over the green lawn", 10), {"writes-unknown": "warning"}),
        (every_nth("", 13), {"nothing-said": "warning"}),
        (every_nth("a # big dog runs", 1), {"too-short": "error"}),
        (every_nth("a # big dog runs over the", 1), {"too-short": "warning"}),
        (every_nth("a # big dog runs over the green lawn in front of a house", 1), {"too-long": "warning"}),
        (every_nth("a 17 big dog runs over the green lawn", 1), {"same-output": "error"}),
    ],
)
def test_outputs_with_a_fault_are_named(change: dict[int, str], expected: dict[str, str]) -> None:
    assert findings_of(outputs(change)) == expected


def test_outputs_that_never_end_are_named() -> None:
    found = [replace(output, ended=output.line % 10 > 0) for output in outputs()]
    assert findings_of(found) == {"never-ends": "warning"}
