"""Findings about weights, heads and vocabulary of a trained model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from manyheads.doctor.before.text import of
from manyheads.doctor.before.tokens import Vocabulary
from manyheads.doctor.catalogue import run_finding
from manyheads.doctor.evidence import share
from manyheads.doctor.report import Finding

__all__ = ["Head", "head_findings", "is_idle", "vocabulary_findings", "weight_findings"]

EVEN = 0.98  # of the greatest entropy that a head's weights can have
ONE_PLACE = 0.98  # mean weight on the first or the last token
MOSTLY_IDLE = 0.5  # of the heads
UNUSED, MOSTLY_UNUSED = 0.15, 0.5  # of the pieces that are neither bytes nor single characters


@dataclass(frozen=True)
class Head:
    """Weights of one attention head, averaged over texts.

    Attributes:
        name: such as "encoder 1.2" for the second head of the first layer.
        evenness: mean entropy of its weights over the logarithm of the number of tokens it may look at, 0 to 1.
        first, last: mean weight on the first and on the last token, 0 to 1.
    """

    name: str
    evenness: float
    first: float
    last: float


def is_idle(head: Head) -> bool:
    """Return whether the weights of the head do not depend on the text."""
    return head.evenness > EVEN or max(head.first, head.last) > ONE_PLACE


def head_findings(heads: Sequence[Head]) -> Iterator[Finding]:
    """Yield a finding about idle heads."""
    idle = [head.name for head in heads if is_idle(head)]
    if idle:
        named = ", ".join(idle[:6]) + (", ..." if idle[6:] else "")
        severity = "warning" if len(idle) > MOSTLY_IDLE * len(heads) else None
        yield run_finding("idle-heads", f"{of(len(idle), len(heads))} heads: {named}", severity)


def vocabulary_findings(vocabulary: Vocabulary) -> Iterator[Finding]:
    """Yield a finding about pieces that never occurred in training."""
    part = share(vocabulary.unused, vocabulary.pieces)
    if part > UNUSED:
        evidence = f"{vocabulary.name}: {of(vocabulary.unused, vocabulary.pieces)} pieces never come in train"
        yield run_finding("unused-vocabulary", evidence, None if part > MOSTLY_UNUSED else "note")


def weight_findings(broken: Sequence[str]) -> Iterator[Finding]:
    """Yield a finding about tensors with NaN or infinite values, by name."""
    if broken:
        more = ", ..." if broken[5:] else ""
        yield run_finding("weights-not-finite", f"{len(broken)} tensors: {', '.join(broken[:5])}{more}")
