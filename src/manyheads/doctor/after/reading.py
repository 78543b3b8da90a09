"""Findings about the use of source and context, the first token, and classes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from manyheads.doctor.catalogue import run_finding
from manyheads.doctor.evidence import share
from manyheads.doctor.report import Finding

__all__ = [
    "Classes",
    "FirstTokens",
    "Reading",
    "class_findings",
    "context_findings",
    "entropy",
    "first_findings",
    "logged_findings",
    "reading_findings",
]

# Nats a prediction that other sources must cost: 4.6 more in the run multi30k-de-en.
IGNORED, HARDLY = 0.05, 0.3
# The first token costs about what its frequencies alone give at the most; one that was never a label costs more
# than a blind guess, as all other tokens have been preferred to it.
FIRST_MARGIN, FIRST_FACTOR = 1.0, 2.0
# What validation costs now, beside what it cost in training; published weights may be a mean of others.
DEARER, DEARER_FACTOR = 1.0, 1.5
BETTER = 0.02  # accuracy above that of the most frequent class


@dataclass(frozen=True)
class Reading:
    """Loss of held-out examples with their own and with other sources (invariant N), in nats a prediction."""

    own: float
    shuffled: float
    examples: int


@dataclass(frozen=True)
class FirstTokens:
    """Loss of the first target token and of the others, in training pairs (invariant F).

    Attributes:
        first, rest: mean negative log-likelihood, in nats.
        frequencies: nats of a guess that only knows how often each token is the first.
        right: greedy outputs whose first token is right; pairs: of how many.
    """

    first: float
    rest: float
    frequencies: float
    right: int
    pairs: int


@dataclass(frozen=True)
class Classes:
    """Accuracy and predictions of a classifier on the validation texts.

    Attributes:
        accuracy: 0 to 1.
        labels: by name, how often each label is the true one; said: how often it is predicted.
    """

    accuracy: float
    labels: Mapping[str, int]
    said: Mapping[str, int]


def entropy(counts: Iterable[int]) -> float:
    """Return the entropy of a distribution in nats."""
    numbers = [count for count in counts if count > 0]
    total = sum(numbers)
    return -sum(count / total * math.log(count / total) for count in numbers)


def reading_findings(reading: Reading) -> Iterator[Finding]:
    """Yield a finding unless other sources raise the loss (invariant N)."""
    gain = reading.shuffled - reading.own
    if gain < HARDLY:
        evidence = (
            f"{reading.examples:,} validation texts cost {reading.own:.2f} nats a prediction, and "
            f"{reading.shuffled:.2f} with each other's sources"
        )
        yield run_finding("source-ignored", evidence, None if gain < IGNORED else "warning")


def logged_findings(own: float, examples: int, logged: float | None) -> Iterator[Finding]:
    """Compare the validation loss of the weights with the best one in the log of the training, if it has any.

    Args:
        own: the loss now, in nats a prediction.
        examples: of which this is the mean.
        logged: the best one in the log, in the same unit.
    """
    if logged is not None and own > logged + DEARER and own > DEARER_FACTOR * logged:
        evidence = (
            f"the best validation loss in the log is {logged:.2f} nats a prediction; {examples:,} "
            f"validation texts cost {own:.2f} with these weights"
        )
        yield run_finding("training-differs", evidence)


def context_findings(change: float, tokens: int) -> Iterator[Finding]:
    """Yield a finding unless other context raises the loss of a language model (invariant N).

    Args:
        change: by how many nats the loss of a token changes, in the mean, when all tokens but the one before it are
            replaced by those of other text.
        tokens: of which this is the mean.
    """
    if change < IGNORED:
        evidence = (
            f"the loss of {tokens:,} tokens changes by {change:.3f} nats in the mean when all of their context but "
            "the token before is replaced by other text"
        )
        yield run_finding("context-ignored", evidence)


def first_findings(first: FirstTokens) -> Iterator[Finding]:
    """Yield a finding unless the first token is predicted as well as by its frequencies (invariant F)."""
    if first.first > first.frequencies + FIRST_MARGIN and first.first > FIRST_FACTOR * first.rest:
        evidence = (
            f"in training pairs the first target token costs {first.first:.2f} nats, the others {first.rest:.2f}; "
            f"its frequencies alone give {first.frequencies:.2f}; {first.right} of {first.pairs} greedy outputs "
            "begin rightly"
        )
        yield run_finding("first-token-not-learned", evidence)


def class_findings(classes: Classes) -> Iterator[Finding]:
    """Yield findings if the classifier is no better than the most frequent class, or never predicts a class."""
    labels, said = Counter(classes.labels), Counter(classes.said)
    (most, number), total = labels.most_common(1)[0], labels.total()
    if classes.accuracy < share(number, total) + BETTER:
        evidence = f'accuracy is {classes.accuracy:.1%}; always saying "{most}" gives {share(number, total):.1%}'
        yield run_finding("no-better-than-guessing", evidence)
    never = [name for name, count in labels.items() if count and not said[name]]
    if never:
        named = ", ".join(f'"{name}" ({labels[name]:,} texts)' for name in never[:5])
        yield run_finding("class-never-said", f"of {total:,} validation texts none is called {named}")
