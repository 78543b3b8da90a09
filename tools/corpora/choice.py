"""What all grammars share: random choices, the same on every machine; lexicons; and the pair that is made."""

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
    "Half",
    "Kinds",
    "Lexicon",
    "Rng",
    "Sentence",
    "Texts",
    "Weighted",
    "combine",
    "expanded",
    "finished",
    "join",
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
        combinations: the pairs of lexical choices that stand in a grammatical relation in it (verb and object,
            subject and verb, adjective and noun ...), such as ``"trinken+Milch"``. They decide which split it
            belongs to, so every sentence with that relation names it.
    """

    foreign: str
    english: str
    combinations: tuple[str, ...]


class Weighted(Generic[Item_co]):
    """Options that are not equally frequent: option -> relative frequency."""

    def __init__(self, options: Mapping[Item_co, float]) -> None:
        self.items: tuple[Item_co, ...] = tuple(options)
        sums = list(accumulate(options.values()))  # not sum(): it rounds differently from Python 3.12 on
        self.bounds = [bound / sums[-1] for bound in sums[:-1]]


class Rng:
    """Random choices that are the same in every Python version: only ``random()`` of a seeded generator is used."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def pick(self, options: Sequence[Item]) -> Item:
        """One of the options, all equally likely."""
        return options[int(self._random() * len(options))]

    def weigh(self, options: Weighted[Item]) -> Item:
        """One of the options by their frequencies."""
        return options.items[bisect(options.bounds, self._random())]

    def chance(self, probability: float) -> bool:
        """True in that share of the cases."""
        return self._random() < probability


Texts = tuple[str, str]  # foreign and English
Half = tuple[Texts, list[str]]  # two texts and the combinations in them
Kinds = dict[Callable[[Rng], Sentence], float]  # kinds of sentence with their frequencies


@dataclass(frozen=True, slots=True)
class Lexicon(Generic[Noun, Adjective, Verb, Name]):
    """All words by their name, and the noun classes by name.

    Attributes:
        tables: all tables of the lexicon, as read.
    """

    nouns: dict[str, Noun]
    kinds: dict[str, tuple[str, ...]]
    adjectives: dict[str, Adjective]
    verbs: dict[str, Verb]
    names: dict[str, Name]
    tables: dict[str, Any]

    def resolve(self, words: str) -> tuple[Noun, ...]:
        """The nouns meant by a list of classes and nouns."""
        return tuple(self.nouns[noun] for noun in expanded(words, self.kinds))


def expanded(words: str, kinds: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """A list of classes and nouns as the nouns, each once."""
    return tuple(dict.fromkeys(sum((kinds.get(word, (word,)) for word in words.split()), ())))


def finished(texts: Texts, combinations: Iterable[str], mark: str = ".") -> Sentence:
    """The sentence of two texts: capital letters in front, the mark at the end."""
    foreign, said = texts
    return Sentence(capitalize(foreign) + mark, capitalize(said) + mark, tuple(combinations))


def read_lexicon(name: str) -> dict[str, Any]:
    """The tables of a lexicon of this package, such as ``"german"``."""
    text = files("tools.corpora").joinpath(name, "lexicon.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def combine(*words: str) -> str:
    """The name of a combination of lexical choices: ``"trinken+Milch"``."""
    return "+".join(words)


def join(*parts: str) -> str:
    """The parts that are not empty, with a space between them."""
    return " ".join([part for part in parts if part])


def capitalize(text: str) -> str:
    """The text with its first letter large, the others as they are."""
    return text[0].upper() + text[1:]
