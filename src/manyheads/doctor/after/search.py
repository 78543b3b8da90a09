"""Findings about decoding, from differences that should be zero."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from manyheads.doctor.catalogue import model_finding, run_finding
from manyheads.doctor.report import Finding

__all__ = ["Batching", "Decoding", "batching_findings", "decoding_findings"]

CLOSE = 1e-3  # nats, float32: sums in another order
SAME = 1e-4  # relative


@dataclass(frozen=True)
class Batching:
    """Loss of the same texts in large and in small batches (invariant L), in nats a prediction."""

    large: float
    small: float


@dataclass(frozen=True)
class Decoding:
    """Differences between several ways to decode the same sentences.

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
    """Yield a finding if the loss depends on the batches (invariant L)."""
    if abs(batching.large - batching.small) > SAME * abs(batching.large):
        evidence = f"{batching.large:.6g} nats a prediction in large batches, {batching.small:.6g} in small ones"
        yield run_finding("loss-depends-on-batching", evidence)


def decoding_findings(decoding: Decoding) -> Iterator[Finding]:
    """Yield findings about neighbours, cache and search (invariants D, E and M)."""
    told = f'; such as "{decoding.example}"' if decoding.example else ""
    count = decoding.sentences
    if decoding.others_beside:
        evidence = f"{decoding.others_beside} of {count} sentences have another output alone than with others{told}"
        yield model_finding("depends-on-the-batch", evidence)
    if decoding.cache > CLOSE:
        evidence = f"a token's log-probability differs by up to {decoding.cache:.2g} nats from teacher forcing"
        yield model_finding("cache-differs", evidence)
    if decoding.beam_one:
        evidence = f"{decoding.beam_one} of {count} outputs with a beam of 1 are not the greedy ones{told}"
        yield run_finding("beam-one-differs", evidence)
    if decoding.score > CLOSE:
        evidence = (
            f"the log-probability of an output differs by up to {decoding.score:.2g} nats from teacher forcing"
        )
        yield run_finding("score-differs", evidence)
