"""Random choices that are the same on every machine, lexicons and sentences: shared by all grammars."""

from __future__ import annotations

import random
import tomllib
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import accumulate
from typing import Any, Generic, TypeVar

__all__ = [
    "BilingualClause",
    "Lexicon",
    "Rng",
    "Sentence",
    "SentenceKinds",
    "TextPair",
    "Weighted",
    "combine",
    "expand",
    "join",
    "make_sentence",
    "read_lexicon",
]

Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)
Noun = TypeVar("Noun")
Adjective = TypeVar("Adjective")
Verb = TypeVar("Verb")
Name = TypeVar("Name")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One meaning in two languages.

    Attributes:
        foreign: the German or Korean sentence.
        english: the English sentence.
        combinations: the pairs of words in a grammatical relation (verb and object, subject and verb, adjective
            and noun ...), such as ``"trinken+Milch"``. They decide which split the sentence belongs to, so every
            sentence with that relation lists it.
    """

    foreign: str
    english: str
    combinations: tuple[str, ...]


class Weighted(Generic[Item_co]):
    """Options with different probabilities: option -> relative frequency."""

    def __init__(self, options: Mapping[Item_co, float]) -> None:
        self.items: tuple[Item_co, ...] = tuple(options)
        sums = list(accumulate(options.values()))  # not sum(): it rounds differently from Python 3.12 on
        self.bounds = [bound / sums[-1] for bound in sums[:-1]]


class Rng:
    """Random choices that are the same in every Python version: only ``random()`` of a seeded generator is used."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def pick(self, options: Sequence[Item]) -> Item:
        """Return one of the options, all equally likely."""
        return options[int(self._random() * len(options))]

    def pick_weighted(self, options: Weighted[Item]) -> Item:
        """Return one of the options with the probability of its relative frequency."""
        return options.items[bisect(options.bounds, self._random())]

    def chance(self, probability: float) -> bool:
        """Return True with a probability."""
        return self._random() < probability


TextPair = tuple[str, str]  # foreign text and its English translation
BilingualClause = tuple[TextPair, list[str]]  # a clause in both languages, and its combinations
SentenceKinds = dict[Callable[[Rng], Sentence], float]  # functions that draw a sentence -> relative frequency


@dataclass(frozen=True, slots=True)
class Lexicon(Generic[Noun, Adjective, Verb, Name]):
    """All words of a language pair by name, and the classes of nouns.

    Attributes:
        kinds: the classes of nouns: class -> names of its nouns.
        tables: all tables of the lexicon file.
    """

    nouns: dict[str, Noun]
    kinds: dict[str, tuple[str, ...]]
    adjectives: dict[str, Adjective]
    verbs: dict[str, Verb]
    names: dict[str, Name]
    tables: dict[str, Any]

    def resolve(self, words: str) -> tuple[Noun, ...]:
        """Return the nouns of a list of classes and nouns, separated by spaces."""
        return tuple(self.nouns[noun] for noun in expand(words, self.kinds))


def expand(words: str, kinds: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names of the nouns in a list of classes and nouns, each once."""
    return tuple(dict.fromkeys(sum((kinds.get(word, (word,)) for word in words.split()), ())))


def make_sentence(texts: TextPair, combinations: Iterable[str], mark: str = ".") -> Sentence:
    """Make a sentence from its two texts: capitalize them and append the punctuation mark."""
    foreign, english = texts
    return Sentence(capitalize(foreign) + mark, capitalize(english) + mark, tuple(combinations))


def read_lexicon(name: str) -> dict[str, Any]:
    """Read the tables of a lexicon of this package, such as ``"german"``."""
    text = files("tools.corpora").joinpath(name, "lexicon.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def combine(*words: str) -> str:
    """Return the name of a combination of words: ``"trinken+Milch"``."""
    return "+".join(words)


def join(*parts: str) -> str:
    """Join the parts that are not empty with spaces."""
    return " ".join([part for part in parts if part])


def capitalize(text: str) -> str:
    """Return a text with its first letter in upper case."""
    return text[0].upper() + text[1:]
