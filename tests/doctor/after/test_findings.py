"""Numbers of sound runs raise no alarm, and those of broken ones are named."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from manyheads.doctor.after.curves import Curves, curve_findings
from manyheads.doctor.after.inside import Head, head_findings, vocabulary_findings, weight_findings
from manyheads.doctor.after.output import Output, output_findings, repeats
from manyheads.doctor.after.reading import (
    Classes,
    FirstTokens,
    Reading,
    class_findings,
    context_findings,
    entropy,
    first_findings,
    logged_findings,
    reading_findings,
)
from manyheads.doctor.after.search import Batching, Decoding, batching_findings, decoding_findings
from manyheads.doctor.before.tokens import (
    SideTokens,
    Vocabulary,
    length_findings,
    side_findings,
)
from manyheads.doctor.before.tokens import vocabulary_findings as vocabulary_findings_before
from manyheads.doctor.report import Finding


def names(findings: Iterable[Finding]) -> dict[str, str]:
    return {finding.name: finding.severity for finding in findings}


def curves(validations: list[float], train: list[float] | None = None, **changes: Any) -> Curves:
    """100 updates between two validations, 10 between two points of training."""
    steps = 100 * len(validations)
    given = train or [6 * math.exp(-place / 10) + 1 for place in range(steps // 10)]
    points = tuple((10 * (place + 1), value) for place, value in enumerate(given))
    scored = tuple((100 * (place + 1), value) for place, value in enumerate(validations))
    return replace(Curves(points, scored, steps, 0), **changes)


SOUND = [5.0, 3.0, 2.2, 1.8, 1.6, 1.5, 1.46, 1.44, 1.43, 1.43]


def test_a_sound_curve() -> None:
    assert names(curve_findings(curves(SOUND), 6.5)) == {}
    assert names(curve_findings(curves([*SOUND, 1.47]), None)) == {}
    assert names(curve_findings(Curves((), (), 0, 0), 6.5)) == {}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (curves([*SOUND, 1.7]), {"over-fitting": "note"}),
        (curves([*SOUND, 2.0, 2.4]), {"over-fitting": "warning"}),
        (curves([6.0, 5.0, 4.2, 3.5, 2.9, 2.4, 2.0, 1.7]), {"under-fitting": "warning"}),
        (curves([5.0, 3.0, 2.5, 2.2, 2.0, 1.9, 1.85, 1.8]), {"under-fitting": "note"}),
        (curves([6.4, 6.4, 6.4, 6.4, 6.4]), {"never-left-chance": "error"}),
        (curves(SOUND, [3.0] * 50 + [2.0] * 30 + [7.0] * 20), {"diverged": "error"}),
        (curves(SOUND, skipped=30), {"updates-skipped": "warning"}),
        (curves(SOUND, total_steps=2_000), {"unfinished": "note"}),
    ],
)
def test_a_curve_with_a_fault_is_named(found: Curves, expected: dict[str, str]) -> None:
    assert names(curve_findings(found, 6.5)) == expected


def test_curves_are_read_from_the_log_whatever_else_it_holds() -> None:
    records: list[dict[str, Any]] = [
        {"kind": "step", "step": 10, "nll": 5.0, "total_steps": 20, "skipped": 0},
        {"kind": "step", "step": 20, "nll": None, "total_steps": 20, "skipped": 3},
        {"kind": "validation", "step": 20, "loss": 4.0},
        {"kind": "validation", "step": 30, "loss": None},
        {"kind": "other"},
    ]
    assert Curves.of(records) == Curves(((10, 5.0),), ((20, 4.0),), 20, 3)


def test_a_source_that_is_not_read() -> None:
    assert names(reading_findings(Reading(1.4, 6.0, 300))) == {}
    assert names(reading_findings(Reading(3.9, 4.1, 300))) == {"source-ignored": "warning"}
    assert names(reading_findings(Reading(4.0, 4.01, 300))) == {"source-ignored": "error"}
    assert names(context_findings(0.8, 300)) == {}
    assert names(context_findings(0.01, 300)) == {"context-ignored": "error"}


def test_a_first_token_that_was_never_a_label() -> None:
    sound = FirstTokens(first=1.1, rest=0.8, frequencies=1.5, right=25, pairs=32)
    assert names(first_findings(sound)) == {}
    assert names(first_findings(replace(sound, first=9.0, right=0))) == {"first-token-not-learned": "error"}
    assert names(first_findings(replace(sound, first=4.0, rest=3.5))) == {}  # of a model that has learned little


def test_entropy_is_that_of_the_distribution() -> None:
    assert entropy([5, 5, 0]) == pytest.approx(math.log(2))
    assert entropy([7]) == 0


def test_a_classifier_that_guesses() -> None:
    sound = Classes(0.8, {"0": 500, "1": 500}, {"0": 480, "1": 520})
    assert names(class_findings(sound)) == {}
    assert names(class_findings(replace(sound, accuracy=0.51))) == {"no-better-than-guessing": "error"}
    one_sided = Classes(0.9, {"0": 900, "1": 100}, {"0": 1_000, "1": 0})
    assert names(class_findings(one_sided)) == {"no-better-than-guessing": "error", "class-never-said": "warning"}


def test_decoding_that_differs() -> None:
    sound = Decoding(16, 0, 3e-6, 0, 2e-6)
    assert names(decoding_findings(sound)) == {}
    assert names(decoding_findings(replace(sound, others_beside=1, example="x"))) == {
        "depends-on-the-batch": "error"
    }
    assert names(decoding_findings(replace(sound, cache=0.2))) == {"cache-differs": "error"}
    assert names(decoding_findings(replace(sound, beam_one=2))) == {"beam-one-differs": "error"}
    assert names(decoding_findings(replace(sound, score=0.2))) == {"score-differs": "error"}
    assert names(batching_findings(Batching(1.40001, 1.4))) == {}
    assert names(batching_findings(Batching(1.45, 1.4))) == {"loss-depends-on-batching": "error"}


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


def test_heads_and_vocabulary_and_weights() -> None:
    busy = [Head(f"encoder 1.{place}", 0.6, 0.1, 0.2) for place in range(8)]
    assert names(head_findings(busy)) == {}
    even, sink = Head("cross 1.1", 0.995, 0.1, 0.1), Head("decoder 2.1", 0.1, 0.99, 0.0)
    assert names(head_findings([*busy, even, sink])) == {"idle-heads": "note"}
    assert names(head_findings([even, even, sink])) == {"idle-heads": "warning"}
    vocabulary = Vocabulary("vocabulary", 5_000, 900, 100, 800_000)
    assert names(vocabulary_findings(vocabulary)) == {}
    assert names(vocabulary_findings(replace(vocabulary, unused=1_000))) == {"unused-vocabulary": "note"}
    assert names(vocabulary_findings(replace(vocabulary, unused=4_000))) == {"unused-vocabulary": "warning"}
    assert names(vocabulary_findings_before(vocabulary)) == {}
    assert names(vocabulary_findings_before(replace(vocabulary, rare=4_000))) == {"vocabulary-too-large": "warning"}
    assert names(weight_findings([])) == {}
    (finding,) = weight_findings(["a.weight", "b.bias"])
    assert (finding.name, finding.evidence) == ("weights-not-finite", "2 tensors: a.weight, b.bias")


def test_unknown_tokens_round_trips_and_lengths() -> None:
    sound = SideTokens("valid, source", 10_000, 300, 400, 0)
    assert names(side_findings(sound)) == {}
    assert names(side_findings(replace(sound, unknown=600))) == {"many-unknown": "warning"}
    assert names(side_findings(replace(sound, unknown=3_000))) == {"many-unknown": "error"}
    assert names(side_findings(replace(sound, changed=20))) == {"round-trip": "warning"}
    assert names(length_findings(10, 1_000, 128, dropped=True)) == {}
    assert names(length_findings(100, 1_000, 128, dropped=True)) == {"cut-or-dropped": "warning"}
    assert names(length_findings(100, 1_000, 128, dropped=False)) == {"cut-or-dropped": "note"}
    assert names(length_findings(900, 1_000, 128, dropped=False)) == {"cut-or-dropped": "warning"}


def test_a_log_that_says_another_loss_than_the_weights_give() -> None:
    assert names(logged_findings(1.40, 300, 1.43)) == {}
    assert names(logged_findings(2.3, 300, 1.4)) == {}  # another text, a mean of weights
    assert names(logged_findings(6.5, 300, 5.0)) == {}
    assert names(logged_findings(12.0, 300, None)) == {}
    assert names(logged_findings(2.6, 300, 1.4)) == {"training-differs": "error"}
    assert names(logged_findings(12.0, 300, 0.03)) == {"training-differs": "error"}
