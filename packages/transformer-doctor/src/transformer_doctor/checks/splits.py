"""Examine how data are split into training and test data."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any
from unittest.mock import patch

from transformer_doctor.catalogue import model_finding
from transformer_doctor.checks.calls import report_errors
from transformer_doctor.report import Finding, Report, make_report

Pair = str | Sequence[str]
Words = tuple[str, ...]
_WORDS = re.compile(r"[^\W\d_]+")
_WRONG = 0.05  # the share of test pairs seen in training from which on a score means little
_LONG_ENOUGH = 4  # words from which on one other word makes a near copy
# Words from which on only all of them are compared: each is left out in turn, which takes n * n steps.
_MAX_CHARACTERS = 120


@report_errors
def examine_split(train: Sequence[Pair], test: Sequence[Pair]) -> Report:
    """Examine the data of training and of testing, texts or pairs of texts.

    A near copy has the same words, but for case, punctuation and figures; or, from four words on (and below
    120), all but one.
    """
    return make_report(list(_overlap(train, test)), ["test data do not stand in the training data"])


@report_errors
def examine_split_function(split: Callable[[], tuple[Sequence[Pair], Sequence[Pair]]]) -> Report:
    """Examine a function that splits data into training and test data, called twice."""
    train, test = split()
    again = split()[1]
    findings = list(_overlap(train, test))
    first, second = ({_text_of(pair) for pair in part} for part in (test, again))
    if first != second:
        evidence = f"called twice, {len(first - second)} of {len(first)} test pairs are others"
        findings.append(model_finding("unseeded-split", evidence))
    with suppress(Exception):  # code that inspects the replaced functions may fail
        elsewhere = {_text_of(pair) for pair in _in_another_process(split)[1]}
        if first == second != elsewhere:
            evidence = f"in a process with another hash() and order of sets, {len(first - elsewhere)}"
            findings.append(model_finding("unseeded-split", f"{evidence} of {len(first)} test pairs are others"))
    asked = ["test data do not stand in the training data", "the split is the same at every run"]
    return make_report(findings, asked)


def _in_another_process(split: Callable[[], Any]) -> Any:
    """Call a function as if in another process: with another salt of hash(), order of sets, and process id."""
    plain = hash

    class OtherOrder(set[Any]):
        def __iter__(self) -> Iterator[Any]:
            return iter([*super().__iter__()][::-1])

    def salted(value: Any) -> int:
        return plain(value) if isinstance(value, (int, float)) else plain(("another process", value))

    process = os.getpid() + 1
    with patch("builtins.hash", salted), patch("builtins.set", OtherOrder), patch("os.getpid", lambda: process):
        return split()


def _overlap(train: Sequence[Pair], test: Sequence[Pair]) -> Iterator[Finding]:
    exact = {_text_of(pair) for pair in train}
    near = {key for pair in train for key in near_keys(words_of(pair))}
    same = [pair for pair in test if _text_of(pair) in exact]
    alike = [pair for pair in test if _text_of(pair) not in exact and near & set(near_keys(words_of(pair)))]
    share = (len(same) + len(alike)) / max(len(test), 1)
    if share == 0:
        return
    evidence = f"{len(same)} of {len(test)} test pairs stand in the training data, and near copies of {len(alike)}"
    yield model_finding("tested-on-training-data", f"{evidence} more", "error" if share >= _WRONG else "note")


def _text_of(pair: Pair) -> str:
    return pair if isinstance(pair, str) else "\t".join(pair)


def words_of(pair: Pair) -> Words:
    """Return the words of a pair, case folded."""
    return tuple(_WORDS.findall(_text_of(pair).casefold()))


def near_keys(words: Words) -> Iterator[Words]:
    """Yield keys, one of which near copies share: the words, and the words with each one left out in turn."""
    if words:  # sums of numbers have none
        yield words
    if _LONG_ENOUGH <= len(words) < _MAX_CHARACTERS:
        for index in range(len(words)):
            yield ("", *words[:index], "_", *words[index + 1 :])
