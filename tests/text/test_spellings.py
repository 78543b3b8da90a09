"""Spellings: every segmentation of a phrase into pieces of the vocabulary."""

from __future__ import annotations

import pytest
from tests.text.test_interface import TOKENIZERS

from manyheads.text.tokenizer import UNK


@pytest.mark.parametrize("phrase", ["Hund", "der Hund", "läuft", "singt"])
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_all_spellings_are_found_and_decode_to_the_phrase(kind, phrase) -> None:
    tokenizer = TOKENIZERS[kind]
    spellings = tokenizer.spellings(phrase, 10_000)
    assert spellings[0] == tokenizer.encode([phrase])[0]
    assert len({tuple(spelling) for spelling in spellings}) == len(spellings)
    assert {tokenizer.decode(spelling) for spelling in spellings} == {phrase}
    pieces = set(tokenizer.pieces(range(4, tokenizer.size)))

    def count(text: str) -> int:
        """Return the number of spellings, by recursion over the first piece."""
        return 1 if not text else sum(count(text[end:]) for end in range(1, len(text) + 1) if text[:end] in pieces)

    assert len(spellings) == count("▁" + phrase.replace(" ", "▁"))
    assert len(spellings) > 1 or phrase == "läuft"


def test_the_shortest_spellings_come_first() -> None:
    spellings = TOKENIZERS["bpe"].spellings("der Hund", 10_000)
    assert TOKENIZERS["bpe"].spellings("der Hund", 5)[1:] == spellings[1:5]
    assert [len(spelling) for spelling in spellings[1:]] == sorted(len(spelling) for spelling in spellings[1:])


def test_the_spellings_of_a_long_phrase_are_limited() -> None:
    spellings = TOKENIZERS["bpe"].spellings("der Hund läuft über die Straße " * 20, 64)
    assert len(spellings) == 64


@pytest.mark.parametrize("kind", ["characters", "bytes"])
def test_character_and_byte_tokenizers_have_one_spelling(kind) -> None:
    assert TOKENIZERS[kind].spellings("Hund", 9) == TOKENIZERS[kind].encode(["Hund"])


def test_characters_outside_the_vocabulary_are_unknown_or_bytes() -> None:
    assert UNK in TOKENIZERS["characters"].spellings("Ж", 9)[0]
    assert len(TOKENIZERS["bpe"].spellings("Ж", 9)) == 1
