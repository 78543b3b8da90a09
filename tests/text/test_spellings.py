"""Spellings: every way in which pieces make up a phrase."""

from __future__ import annotations

import pytest
from tests.text.test_interface import TOKENIZERS

from manyheads.text.tokenizer import UNK


@pytest.mark.parametrize("phrase", ["Hund", "der Hund", "läuft", "singt"])
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_all_ways_are_found_and_all_read_the_same(kind, phrase) -> None:
    tokenizer = TOKENIZERS[kind]
    ways = tokenizer.spellings(phrase, 10_000)
    assert ways[0] == tokenizer.encode([phrase])[0]
    assert len({tuple(way) for way in ways}) == len(ways)
    assert {tokenizer.decode(way) for way in ways} == {phrase}
    pieces = set(tokenizer.pieces(range(4, tokenizer.size)))

    def count(text: str) -> int:
        """The number of ways, by recursion over the first piece."""
        return 1 if not text else sum(count(text[end:]) for end in range(1, len(text) + 1) if text[:end] in pieces)

    assert len(ways) == count("▁" + phrase.replace(" ", "▁"))
    assert len(ways) > 1 or phrase == "läuft"


def test_the_shortest_come_first() -> None:
    ways = TOKENIZERS["bpe"].spellings("der Hund", 10_000)
    assert TOKENIZERS["bpe"].spellings("der Hund", 5)[1:] == ways[1:5]
    assert [len(way) for way in ways[1:]] == sorted(len(way) for way in ways[1:])


def test_a_long_phrase_takes_no_time() -> None:
    ways = TOKENIZERS["bpe"].spellings("der Hund läuft über die Straße " * 20, 64)
    assert len(ways) == 64


@pytest.mark.parametrize("kind", ["characters", "bytes"])
def test_other_tokenizers_have_one_way(kind) -> None:
    assert TOKENIZERS[kind].spellings("Hund", 9) == TOKENIZERS[kind].encode(["Hund"])


def test_what_the_vocabulary_lacks_is_unknown_or_bytes() -> None:
    assert UNK in TOKENIZERS["characters"].spellings("Ж", 9)[0]
    assert len(TOKENIZERS["bpe"].spellings("Ж", 9)) == 1
