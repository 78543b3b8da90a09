"""The corpora that come with the package: real words put together by a grammar, no download.

A sentence is drawn as a meaning and said in both languages, so that each has one right translation, in both
directions. Which split a sentence belongs to is decided by the combinations of words in it (verb and object,
subject and verb, adjective and noun ...): a fixed share of all combinations is held out, and every sentence of
valid and test has at least one that never occurs in train.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal

from manyheads.data.corpus import Pair
from manyheads.data.grammars.choice import Dice, Grammar, Sentence
from manyheads.data.grammars.german.grammar import German
from manyheads.data.grammars.korean.grammar import Korean
from manyheads.errors import DataError

__all__ = ["BUILTIN", "CORPUS_SIZES", "Split", "builtin_pairs", "builtin_sentences", "count_sentences"]

Split = Literal["train", "valid", "test"]

CORPUS_SIZES: Mapping[str, int] = MappingProxyType({"train": 20_000, "valid": 500, "test": 500})
BUILTIN: Mapping[str, Callable[[], Grammar]] = MappingProxyType({"de-en": German, "ko-en": Korean})
SHARES = 20  # one twentieth of the combinations is held out for test, one for valid


def fingerprint(text: str) -> int:
    """A number that depends on the text alone, not on the machine."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


@cache
def split_of(combination: str) -> Split:
    """Where a combination may occur: the same on every machine."""
    share = fingerprint(combination) % SHARES
    return "test" if share == 0 else "valid" if share == 1 else "train"


@cache
def grammar(name: str) -> Grammar:
    """The grammar of a corpus.

    Raises:
        DataError: there is no such corpus.
    """
    if name not in BUILTIN:
        raise DataError(f'There is no built-in corpus "{name}". Use one of: {", ".join(BUILTIN)}.')
    return BUILTIN[name]()


def belongs(sentence: Sentence, split: Split) -> bool:
    """Whether all combinations are those of train; or, held out, of train and of this one split."""
    found = {split_of(combination) for combination in sentence.combinations}
    return found <= {"train", split} and (split == "train" or split in found)


@cache
def builtin_sentences(name: str, split: Split) -> tuple[Sentence, ...]:
    """The sentences of one split of a corpus, all different, with their combinations.

    Raises:
        DataError: there is no such corpus or split.
    """
    maker = grammar(name)
    if split not in CORPUS_SIZES:
        raise DataError(f'There is no split "{split}" in the corpus {name}. Use one of: {", ".join(CORPUS_SIZES)}.')
    dice = Dice(fingerprint(f"{name} {split}"))
    found: dict[str, Sentence] = {}
    while len(found) < CORPUS_SIZES[split]:
        sentence = maker.draw(dice)
        if belongs(sentence, split):
            found.setdefault(sentence.foreign, sentence)
    return tuple(found.values())


def builtin_pairs(name: str, split: Split, *, source: str, target: str) -> list[Pair]:
    """The pairs of one split of a corpus, in either direction; the same on every machine.

    Args:
        name: one of `BUILTIN`, such as ``"de-en"``.
        split: train, valid or test.
        source: language translated from: one of the two in the name.
        target: language translated into: the other one.

    Raises:
        DataError: there is no such corpus or split, or it has no such direction.
    """
    sentences = builtin_sentences(name, split)
    foreign, english = name.split("-")
    if {source, target} != {foreign, english}:
        raise DataError(
            f'The built-in corpus {name} has no direction "{source}" to "{target}". '
            f"Use source = {foreign}, target = {english}, or the other way round."
        )
    texts = [(sentence.foreign, sentence.english) for sentence in sentences]
    if source == english:
        texts = [(said, text) for text, said in texts]
    return [Pair(*pair, line) for line, pair in enumerate(texts, 1)]


def count_sentences(name: str) -> int:
    """How many different sentences the grammar of a corpus can make, at least.

    Raises:
        DataError: there is no such corpus.
    """
    return grammar(name).count()
