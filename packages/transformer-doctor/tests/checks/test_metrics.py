"""Figures that depend on the batching, and scores that are not BLEU, are named."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from sacrebleu import corpus_bleu, sentence_bleu

from transformer_doctor import examine_bleu, examine_evaluation

LOSSES = [[2.0, 1.5, 2.5, 1.0], [4.0], [0.5, 0.7], [3.0, 3.5, 2.9]]


def evaluated(batches: list[Any], *, how: str) -> float:
    means = [sum(losses) / len(losses) for losses in batches]
    tokens = [loss for losses in batches for loss in losses]
    return {
        "right": math.exp(sum(tokens) / len(tokens)),
        "right loss": sum(tokens) / len(tokens),
        "means": math.exp(sum(means) / len(means)),
        "means of losses": sum(means) / len(means),
        "means of perplexities": sum(map(math.exp, means)) / len(means),
        "last": math.exp(means[-1]),
        "worst": math.exp(max(means)),
    }[how]


@pytest.mark.parametrize(
    ("how", "names"),
    [
        ("right", []),
        ("right loss", []),
        ("means", ["mean-of-batch-means"]),
        ("means of losses", ["mean-of-batch-means"]),
        ("means of perplexities", ["mean-of-batch-means"]),
        ("last", ["last-batch-loss"]),
        ("worst", ["mean-of-batch-means"]),
    ],
)
def test_figures_that_depend_on_the_batching_are_named(how: str, names: list[str]) -> None:
    merged = [loss for losses in LOSSES for loss in losses]
    report = examine_evaluation(lambda batches: evaluated(batches, how=how), LOSSES, merged)
    assert report.names == names


def sacre(hypotheses: list[str], references: list[str]) -> float:
    return corpus_bleu(hypotheses, [references]).score


def test_sacrebleu_itself_is_bleu_as_percent_and_as_share() -> None:
    assert not examine_bleu(sacre).findings
    assert not examine_bleu(lambda *texts: sacre(*texts) / 100).findings


def test_bleu_of_changed_outputs_is_named_by_what_does_not_change_it() -> None:
    changes: dict[str, Callable[[str], str]] = {
        "capital letters": str.lower,
        "commas": lambda text: text.replace(",", ""),
        "another end": lambda text: " ".join(text.split()[:100]),
    }
    for words, change in changes.items():

        def changed(hypotheses: list[str], references: list[str], change: Callable[[str], str] = change) -> float:
            return sacre([*map(change, hypotheses)], [*map(change, references)])

        (finding,) = examine_bleu(changed).findings
        assert (finding.name, words in finding.evidence) == ("not-bleu", True)


def test_scores_that_are_not_bleu_are_named() -> None:
    def sentences(hypotheses: list[str], references: list[str]) -> float:
        scores = [
            sentence_bleu(hypothesis, [reference]).score
            for hypothesis, reference in zip(hypotheses, references, strict=True)
        ]
        return sum(scores) / len(scores)

    def swallowing(hypotheses: list[str], references: list[str]) -> float:
        kept = [pair for pair in zip(hypotheses, references, strict=True) if pair[0]]
        return sacre([hypothesis for hypothesis, _ in kept], [reference for _, reference in kept])

    def characters(hypotheses: list[str], references: list[str]) -> float:
        return corpus_bleu(hypotheses, [references], tokenize="char").score

    assert examine_bleu(sentences).names == ["not-bleu"]
    assert examine_bleu(characters).names == ["not-bleu"]
    assert examine_bleu(swallowing).names == ["errors-swallowed"]
    assert sorted(examine_bleu(lambda *texts: swallowing(*texts) + 1).names) == ["errors-swallowed", "not-bleu"]
