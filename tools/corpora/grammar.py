"""What makes the sentences of a language pair, and a lower bound of how many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from tools.corpora.choice import Kinds, Rng, Sentence, Weighted

__all__ = ["Grammar", "count_statements"]

Words = TypeVar("Words")


class Part(Protocol):
    """Some kinds of sentence."""

    def kinds(self) -> Kinds:
        """The kinds of sentence made here."""
        ...


class Grammar(Generic[Words]):
    """All kinds of sentence of a language pair, and the words that they are made of."""

    def __init__(self, words: Words, parts: Iterable[Part], count: Callable[[Words], int]) -> None:
        self.words = words
        self.kinds = Weighted({kind: share for part in parts for kind, share in part.kinds().items()})
        self.count_sentences = count

    def draw(self, rng: Rng) -> Sentence:
        """Make one sentence."""
        return rng.weigh(self.kinds)(rng)

    def count(self) -> int:
        """A lower bound of the number of different sentences."""
        return self.count_sentences(self.words)


def count_statements(subjects: int, statements: Iterable[tuple[str, set[str], int]]) -> int:
    """Count statements of a subject, a verb in the past, a time and an object.

    Each part is counted as its set of different texts, and each choice of parts is a sentence that the grammar can
    make. Other tenses and word orders, denials, questions and all other kinds of sentence are left out.

    Args:
        subjects: number of different subjects.
        statements: of each use of a verb its name, the texts of its objects, and the number of its times.
    """
    objects: dict[str, set[str]] = {}
    times: dict[str, int] = {}
    for verb, texts, number in statements:
        objects[verb] = objects.get(verb, set()) | texts
        times[verb] = min(times.get(verb, number), number)
    return sum(subjects * times[verb] * len(texts) for verb, texts in objects.items())
