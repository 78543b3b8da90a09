"""What the kinds of Korean-English sentence share: adjectives as predicates, and two texts as a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tools.corpora.choice import Rng, Sentence, capitalize
from tools.corpora.korean.hangul import Predicate
from tools.corpora.korean.verbs import conclude, long_denial

__all__ = ["Half", "Kinds", "Texts", "finished", "quality"]

Texts = tuple[str, str]  # Korean and English
Half = tuple[Texts, list[str]]  # two texts and the combinations in them
Kinds = dict[Callable[[Rng], Sentence], float]  # kinds of sentence with their frequencies


def finished(texts: Texts, combinations: Iterable[str], mark: str = ".") -> Sentence:
    """The sentence of two texts: a capital letter in front of the English, the mark at the end of both."""
    korean, said = texts
    return Sentence(korean + mark, capitalize(said) + mark, tuple(combinations))


def quality(adjective: Predicate, mode: str, honorific: bool, negative: bool) -> str:
    """An adjective as predicate: 커요, 컸어요, 크지 않아요, 친절하세요."""
    if negative:
        return f"{adjective.stem}지 {long_denial(mode, honorific)}"
    return conclude(adjective, mode, honorific, False)
