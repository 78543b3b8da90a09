"""Tokenizers of the other side or of the wrong language and vocabularies built from the test set are named."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from transformer_doctor import examine_encoding, examine_vocabulary

GERMAN = ["der hund läuft über die nasse straße", "zwei männer sitzen auf einer bank", "eine frau liest ein buch"]
ENGLISH = ["the dog runs across the wet street", "two men are sitting on a bench", "a woman is reading a book"]
PAIRS = list(zip(GERMAN, ENGLISH, strict=True))
UNSEEN = ["museum curators whisper quietly", "violinists admire sculptures"]


class Words:
    """Tokenizer of whole words; unknown words are spelt in characters, so that every text survives a round trip."""

    def __init__(self, texts: Sequence[str], first: int = 0) -> None:
        words = sorted({word for text in texts for word in text.split()})
        letters = [*"abcdefghijklmnopqrstuvwxyzäöüß ."]
        self.pieces = [*letters, *(f" {word}" for word in words)]
        self.ids = {piece: first + number for number, piece in enumerate(self.pieces)}
        self.first = first

    def encode(self, text: str) -> list[int]:
        rows = []
        for word in text.split():
            rows += [self.ids[f" {word}"]] if f" {word}" in self.ids else [self.ids[x] for x in f" {word}"]
        return rows

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self.pieces[token - self.first] for token in ids).strip()


def names(source: Words, target: Words, used: Words | None = None) -> list[str]:
    def encode_pair(one: str, two: str) -> tuple[list[int], list[int]]:
        return source.encode(one), (used or target).encode(two)

    return examine_encoding(encode_pair, PAIRS, source=source, target=target).names


def test_each_side_with_its_own_tokenizer_has_no_finding() -> None:
    assert names(Words(GERMAN), Words(ENGLISH)) == []
    joint = Words([*GERMAN, *ENGLISH])
    assert names(joint, joint) == []


def test_a_tokenizer_of_the_wrong_language_is_named_although_round_trips_succeed() -> None:
    report = names(Words(ENGLISH), Words(GERMAN))
    assert report == ["wrong-tokenizer"]


def test_ids_of_the_other_tokenizer_are_named_although_round_trips_succeed() -> None:
    """The source tokenizer spells target words in letters, whose ids are the same in both tokenizers."""
    german, english = Words(GERMAN), Words(ENGLISH)
    assert names(german, english, used=german) == ["wrong-tokenizer"]


@pytest.mark.parametrize("includes_test_set", [True, False])
def test_a_vocabulary_built_from_the_test_set_is_named(includes_test_set: bool) -> None:
    tokenizer = Words([*ENGLISH, *UNSEEN] if includes_test_set else ENGLISH)
    report = examine_vocabulary(tokenizer, vocab_size=len(tokenizer.pieces), train=ENGLISH, test=UNSEEN)
    assert report.names == (["vocabulary-from-test-set"] if includes_test_set else [])


def test_a_vocabulary_of_much_other_text_has_no_finding() -> None:
    """The vocabulary of a pre-trained model holds words of the test set and many others."""
    others = ["".join(chr(ord("a") + (number // 26**digit) % 26) for digit in range(4)) for number in range(500)]
    tokenizer = Words([*ENGLISH, *UNSEEN, *others])
    report = examine_vocabulary(tokenizer, vocab_size=len(tokenizer.pieces), train=ENGLISH, test=UNSEEN)
    assert report.names == []
