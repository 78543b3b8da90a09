"""Whether a model is tested on what it was trained on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from manyheads.doctor.defects import found
from manyheads.doctor.report import Finding, Report, make_report

__all__ = ["examine_split", "examine_split_function"]

Pair = str | Sequence[str]
WORDS = re.compile(r"[^\W\d_]+")
WRONG = 0.05  # the share of test pairs seen in training from which on a score means little
LONG_ENOUGH = 4  # words from which on one other word makes a near copy
TOO_LONG = (
    120  # words from which on only all of them are compared: each is left out in turn, which takes n * n steps
)


def examine_split(train: Sequence[Pair], test: Sequence[Pair]) -> Report:
    """Examine the data of training and of testing, texts or pairs of texts.

    A near copy has the same words, but for case, punctuation and figures; or, from four words on (and below
    120), all but one.
    """
    return make_report(list(overlap(train, test)), ["test data do not stand in the training data"])


def examine_split_function(split: Callable[[], tuple[Sequence[Pair], Sequence[Pair]]]) -> Report:
    """Examine a function that splits data into training and test data, called twice."""
    train, test = split()
    again = split()[1]
    findings = list(overlap(train, test))
    first, second = ({text_of(pair) for pair in part} for part in (test, again))
    if first != second:
        evidence = f"called twice, {len(first - second)} of {len(first)} test pairs are others"
        findings.append(found("unseeded-split", evidence))
    asked = ["test data do not stand in the training data", "the split is the same at every run"]
    return make_report(findings, asked)


def overlap(train: Sequence[Pair], test: Sequence[Pair]) -> Iterator[Finding]:
    """How many test pairs were seen in training, exactly or nearly."""
    exact = {text_of(pair) for pair in train}
    near = {key for pair in train for key in near_keys(text_of(pair))}
    same = [pair for pair in test if text_of(pair) in exact]
    alike = [pair for pair in test if text_of(pair) not in exact and near & set(near_keys(text_of(pair)))]
    share = (len(same) + len(alike)) / max(len(test), 1)
    if share == 0:
        return
    evidence = (
        f"{len(same)} of {len(test)} test pairs stand in the training data, and near copies of {len(alike)} more"
    )
    yield found("tested-on-training-data", evidence, "error" if share >= WRONG else "note")


def text_of(pair: Pair) -> str:
    """A pair as one text."""
    return pair if isinstance(pair, str) else "\t".join(pair)


def near_keys(text: str) -> Iterator[tuple[str, ...]]:
    """Keys of which near copies share one: the words, and the words without each of them in turn."""
    words = tuple(WORDS.findall(text.casefold()))
    yield words
    if LONG_ENOUGH <= len(words) < TOO_LONG:
        for place in range(len(words)):
            yield ("", *words[:place], "_", *words[place + 1 :])
