"""Findings about tokens: unknown ones, round trips, size of the vocabulary, and texts that are cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from manyheads.doctor.before.text import of
from manyheads.doctor.catalogue import config_finding
from manyheads.doctor.evidence import Example, share, shown
from manyheads.doctor.report import Finding

__all__ = ["SideTokens", "Vocabulary", "length_findings", "side_findings", "vocabulary_findings"]

# Share of a held-out side's tokens that are unknown. Of whole words seen twice, 3 % of Multi30k's German are.
UNKNOWN, UNKNOWN_WRONG = 0.05, 0.2
CHANGED = 0.01  # of the texts that hold nothing unknown
RARE = 5  # times; less often, a piece is hardly moved from where it was drawn
TOO_RARE = 0.65  # of the pieces; 0.51 of 8,000 pieces of SST-2
CUT, CUT_WRONG = 0.05, 0.2


@dataclass(frozen=True)
class SideTokens:
    """Counts of the tokens of one side of a split, or of a sample of it.

    Attributes:
        name: such as "valid, source".
        tokens, unknown: how many, and how many of them are unknown.
        texts: those without an unknown token; changed: of these, those that do not come back from their ids.
        examples: some of the changed ones, and what came back.
    """

    name: str
    tokens: int
    unknown: int
    texts: int
    changed: int
    examples: Sequence[Example] = field(default=())


@dataclass(frozen=True)
class Vocabulary:
    """Counts of the pieces of a vocabulary, without special symbols and bytes.

    Attributes:
        pieces: how many; rare: those that come less than five times in train; unused: those that never come.
        tokens: of train, on all sides that share the vocabulary.
    """

    name: str
    pieces: int
    rare: int
    unused: int
    tokens: int


def side_findings(side: SideTokens) -> Iterator[Finding]:
    """Yield findings about unknown tokens, and texts that do not come back from their ids."""
    unknown = share(side.unknown, side.tokens)
    if unknown > UNKNOWN:
        evidence = f"{side.name}: {of(side.unknown, side.tokens)} tokens are <unk>"
        yield config_finding("many-unknown", evidence, "error" if unknown > UNKNOWN_WRONG else None)
    if share(side.changed, side.texts) > CHANGED:
        evidence = f"{side.name}: {of(side.changed, side.texts)} texts without an unknown token do not come back"
        yield config_finding("round-trip", evidence + shown(side.examples))


def vocabulary_findings(vocabulary: Vocabulary) -> Iterator[Finding]:
    """Yield a finding if the vocabulary is too large for the text."""
    if share(vocabulary.rare, vocabulary.pieces) > TOO_RARE:
        yield config_finding(
            "vocabulary-too-large",
            f"{vocabulary.name}: {of(vocabulary.rare, vocabulary.pieces)} pieces come less than {RARE} times in "
            f"the {vocabulary.tokens:,} tokens of train, {vocabulary.unused:,} of them never",
        )


def length_findings(longer: int, whole: int, limit: int, *, dropped: bool) -> Iterator[Finding]:
    """Yield a finding about texts longer than data.max_length."""
    part = share(longer, whole)
    if part > CUT:
        what = "are dropped" if dropped else "are cut"
        evidence = f"train: {of(longer, whole)} have more than {limit:,} tokens and {what}"
        yield config_finding("cut-or-dropped", evidence, None if part > CUT_WRONG or dropped else "note")
