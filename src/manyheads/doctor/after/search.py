"""Judging decoding: what must not differ, and by how much it did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from manyheads.doctor.after.known import found
from manyheads.doctor.defects import found as defect
from manyheads.doctor.report import Finding

__all__ = ["Batching", "Decoding", "batching_findings", "decoding_findings"]

CLOSE = 1e-3  # nats, float32: sums in another order
SAME = 1e-4  # relative


@dataclass(frozen=True)
class Batching:
    """The same texts in large and in small batches (invariant L): nats a prediction."""

    large: float
    small: float


@dataclass(frozen=True)
class Decoding:
    """Some sentences, decoded in several ways.

    Attributes:
        sentences: how many.
        others_beside: outputs that are others alone, or in another order, than all together (D).
        cache: largest difference of a token's log-probability, step by step, from teacher forcing, in nats (E).
        beam_one: greedy outputs that are others with a beam of 1 (M).
        score: largest difference of an output's log-probability from the teacher-forced one, in nats (M).
        example: a source whose output differs, for the evidence.
    """

    sentences: int
    others_beside: int
    cache: float
    beam_one: int
    score: float
    example: str = ""


def batching_findings(batching: Batching) -> Iterator[Finding]:
    """L: no figure depends on the batches."""
    if abs(batching.large - batching.small) > SAME * abs(batching.large):
        evidence = f"{batching.large:.6g} nats a prediction in large batches, {batching.small:.6g} in small ones"
        yield found("loss-depends-on-batching", evidence)


def decoding_findings(decoding: Decoding) -> Iterator[Finding]:
    """D, E and M."""
    told = f'; such as "{decoding.example}"' if decoding.example else ""
    count = decoding.sentences
    if decoding.others_beside:
        evidence = f"{decoding.others_beside} of {count} sentences have another output alone than with others{told}"
        yield defect("depends-on-the-batch", evidence)
    if decoding.cache > CLOSE:
        evidence = f"a token's log-probability differs by up to {decoding.cache:.2g} nats from teacher forcing"
        yield defect("cache-differs", evidence)
    if decoding.beam_one:
        evidence = f"{decoding.beam_one} of {count} outputs with a beam of 1 are not the greedy ones{told}"
        yield found("beam-one-differs", evidence)
    if decoding.score > CLOSE:
        evidence = (
            f"the log-probability of an output differs by up to {decoding.score:.2g} nats from teacher forcing"
        )
        yield found("score-differs", evidence)
