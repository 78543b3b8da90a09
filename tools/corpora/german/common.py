"""What the kinds of German-English sentence share: to be, and two main clauses in a row."""

from __future__ import annotations

from tools.corpora import english
from tools.corpora.choice import Half, Texts
from tools.corpora.german.words import Adjective, Phrase

__all__ = ["AND", "LINKS", "be", "being", "linked", "was"]

AM = ("bin", "bist", "ist", "sind")
WAS = ("war", "warst", "war", "waren")
AND = ("und", "and")
LINKS = (AND, ("aber", "but"))


def linked(link: Texts, first: Half, second: Half) -> Half:
    """Two main clauses with und or aber between them."""
    texts = (f"{first[0][0]}, {link[0]} {second[0][0]}", f"{first[0][1]}, {link[1]} {second[0][1]}")
    return texts, [*first[1], *second[1]]


def be(subject: Phrase) -> Texts:
    """The present of to be: (bin, am)."""
    return AM[subject.person], english.be(subject.person)


def was(subject: Phrase) -> Texts:
    """The past of to be: (war, was)."""
    return WAS[subject.person], english.was(subject.person)


def being(subject: Phrase, adjective: Adjective, verb: Texts) -> Texts:
    """Verb-last: sie müde war | she was tired."""
    return (
        f"{subject.nominative} {adjective.predicative} {verb[0]}",
        f"{subject.english} {verb[1]} {adjective.english}",
    )
