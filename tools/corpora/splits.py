"""Draw the sentences of the grammars for train, valid and test.

A sentence is drawn as a meaning and expressed in both languages, so that each has one correct translation, in both
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
BUCKETS = 20  # of the hashes of combinations: one is held out for test, one for valid


def fingerprint(text: str) -> int:
    """Return a hash of a text that is the same on every machine."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


@cache
def split_of(combination: str) -> Split:
    """Return the split that a combination may occur in, by its hash: the same on every machine."""
    bucket = fingerprint(combination) % BUCKETS
    return "test" if bucket == 0 else "valid" if bucket == 1 else "train"


def belongs(sentence: Sentence, split: Split) -> bool:
    """Return whether a sentence has only combinations of train and of this split, and of this one at least one."""
    splits = {split_of(combination) for combination in sentence.combinations}
    return splits <= {"train", split} and (split == "train" or split in splits)


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
    """Return the pairs of all splits, train first, one a line: foreign sentence, tab, English sentence."""
    pairs = [sentence for split in CORPUS_SIZES for sentence in sentences(name, split)]
    return "".join(f"{sentence.foreign}\t{sentence.english}\n" for sentence in pairs)


def count_sentences(name: str) -> int:
    """Return a lower bound of the number of different sentences of a corpus."""
    return GRAMMARS[name]().count()
