"""Forms of to be, and coordinated main clauses, shared by the kinds of German-English sentence."""

from __future__ import annotations

from tools.corpora import english
from tools.corpora.choice import BilingualClause, TextPair
from tools.corpora.german.words import Adjective, Phrase

__all__ = ["AND", "CONJUNCTIONS", "adjective_verb_last", "be", "coordinated", "was"]

AM = ("bin", "bist", "ist", "sind")
WAS = ("war", "warst", "war", "waren")
AND = ("und", "and")
CONJUNCTIONS = (AND, ("aber", "but"))


def coordinated(conjunction: TextPair, first: BilingualClause, second: BilingualClause) -> BilingualClause:
    """Join two main clauses with und or aber."""
    texts = (f"{first[0][0]}, {conjunction[0]} {second[0][0]}", f"{first[0][1]}, {conjunction[1]} {second[0][1]}")
    return texts, [*first[1], *second[1]]


def be(subject: Phrase) -> TextPair:
    """Return the present form of to be: (bin, am)."""
    return AM[subject.person], english.be(subject.person)


def was(subject: Phrase) -> TextPair:
    """Return the past form of to be: (war, was)."""
    return WAS[subject.person], english.was(subject.person)


def adjective_verb_last(subject: Phrase, adjective: Adjective, verb: TextPair) -> TextPair:
    """Return a verb-last clause with an adjective: sie müde war | she was tired."""
    return (
        f"{subject.nominative} {adjective.predicative} {verb[0]}",
        f"{subject.english} {verb[1]} {adjective.english}",
    )
