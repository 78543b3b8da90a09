"""What the kinds of German-English sentence share: to be, and how two texts become a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tools.corpora import english
from tools.corpora.choice import Rng, Sentence, capitalize
from tools.corpora.german.words import Adjective, Phrase

__all__ = ["AND", "LINKS", "Half", "Kinds", "Texts", "be", "being", "finished", "linked", "was"]

Texts = tuple[str, str]  # German and English
Half = tuple[Texts, list[str]]  # two texts and the combinations in them
Kinds = dict[Callable[[Rng], Sentence], float]  # kinds of sentence with their frequencies

AM = ("bin", "bist", "ist", "sind")
WAS = ("war", "warst", "war", "waren")
AND = ("und", "and")
LINKS = (AND, ("aber", "but"))


def finished(texts: Texts, combinations: Iterable[str], mark: str = ".") -> Sentence:
    """The sentence of two texts: capital letters in front, the mark at the end."""
    german, said = texts
    return Sentence(capitalize(german) + mark, capitalize(said) + mark, tuple(combinations))


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
