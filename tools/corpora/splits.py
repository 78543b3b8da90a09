"""Sentences of the grammars, divided into train, valid and test.

A sentence is drawn as a meaning and said in both languages, so that each has one right translation, in both
directions. The combinations of words in it (verb and object, subject and verb, adjective and noun ...) decide its
split: a fixed share of all combinations is held out, and every sentence of valid and test has at least one that
never occurs in train.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from manyheads.data.builtin import CORPUS_SIZES
from manyheads.data.locate import Split
from tools.corpora.choice import Rng, Sentence
from tools.corpora.german.grammar import german_grammar
from tools.corpora.grammar import Grammar
from tools.corpora.korean.grammar import korean_grammar

__all__ = ["GRAMMARS", "corpus_text", "count_sentences", "sentences"]

GRAMMARS: Mapping[str, Callable[[], Grammar[Any]]] = MappingProxyType(
    {"de-en": german_grammar, "ko-en": korean_grammar}
)
SHARES = 20  # one twentieth of the combinations is held out for test, one for valid


def fingerprint(text: str) -> int:
    """Return a number that depends on the text alone, not on the machine."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


@cache
def split_of(combination: str) -> Split:
    """Return the split that a combination may occur in: the same on every machine."""
    share = fingerprint(combination) % SHARES
    return "test" if share == 0 else "valid" if share == 1 else "train"


def belongs(sentence: Sentence, split: Split) -> bool:
    """Whether all combinations are those of train; or, held out, of train and of this one split."""
    found = {split_of(combination) for combination in sentence.combinations}
    return found <= {"train", split} and (split == "train" or split in found)


@cache
def sentences(name: str, split: Split) -> tuple[Sentence, ...]:
    """Draw the sentences of one split of a corpus, all different, with their combinations."""
    grammar = GRAMMARS[name]()
    rng = Rng(fingerprint(f"{name} {split}"))
    drawn: dict[str, Sentence] = {}
    while len(drawn) < CORPUS_SIZES[split]:
        sentence = grammar.draw(rng)
        if belongs(sentence, split):
            drawn.setdefault(sentence.foreign, sentence)
    return tuple(drawn.values())


def corpus_text(name: str) -> str:
    """Return the pairs of all splits, train first: a line is a sentence, a tab, and the English one."""
    pairs = [sentence for split in CORPUS_SIZES for sentence in sentences(name, split)]
    return "".join(f"{sentence.foreign}\t{sentence.english}\n" for sentence in pairs)


def count_sentences(name: str) -> int:
    """Return how many different sentences the grammar of a corpus can make, at least."""
    return GRAMMARS[name]().count()
