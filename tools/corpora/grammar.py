"""The grammar of a language pair, and a lower bound of the number of its sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from tools.corpora.choice import Rng, Sentence, SentenceKinds, Weighted

__all__ = ["Grammar", "count_statements"]

SamplerT = TypeVar("SamplerT")


class SentenceGroup(Protocol):
    """A group of functions that draw sentences of related kinds."""

    def kinds(self) -> SentenceKinds:
        """Return the functions that draw a sentence, with their frequencies."""
        ...


class Grammar(Generic[SamplerT]):
    """All kinds of sentence of a language pair, and the sampler of their clauses."""

    def __init__(
        self, sampler: SamplerT, groups: Iterable[SentenceGroup], count: Callable[[SamplerT], int]
    ) -> None:
        self.sampler = sampler
        self.kinds = Weighted({kind: share for group in groups for kind, share in group.kinds().items()})
        self.count_sentences = count

    def draw(self, rng: Rng) -> Sentence:
        """Draw a sentence."""
        return rng.pick_weighted(self.kinds)(rng)

    def count(self) -> int:
        """Return a lower bound of the number of different sentences."""
        return self.count_sentences(self.sampler)


def count_statements(subjects: int, statements: Iterable[tuple[str, set[str], int]]) -> int:
    """Count statements of a subject, a verb in the past, a time and an object.

    Each constituent is counted as its set of different texts; each choice of constituents is a sentence that the
    grammar can make. Other tenses, word orders, negations, questions and other kinds of sentence are not counted.

    Args:
        subjects: number of different subjects.
        statements: for each use of a verb its name, the texts of its objects, and the number of its times.
    """
    objects: dict[str, set[str]] = {}
    times: dict[str, int] = {}
    for verb, texts, number in statements:
        objects[verb] = objects.get(verb, set()) | texts
        times[verb] = min(times.get(verb, number), number)
    return sum(subjects * times[verb] * len(texts) for verb, texts in objects.items())
