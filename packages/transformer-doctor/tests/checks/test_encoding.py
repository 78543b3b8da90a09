"""Wrong tokenizers, vocabularies built from the test set, and batches that cut or pad too much are named."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from specimens.planted import BOS, EOS, PAD
from specimens.planted import padded as padded_rows
from transformer_doctor import examine_collate, examine_encoding, examine_vocabulary

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


def names(source: Words, target: Words, used: tuple[Words, Words] | None = None) -> list[str]:
    def encode_pair(one: str, two: str) -> tuple[list[int], list[int]]:
        own = used or (source, target)
        return own[0].encode(one), own[1].encode(two)

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
    assert names(german, english, used=(german, german)) == ["wrong-tokenizer"]
    assert names(german, english, used=(english, german)) == ["wrong-tokenizer"]


def test_marks_are_no_text_and_a_lossy_tokenizer_fails_the_round_trip() -> None:
    class Lossy(Words):
        def encode(self, text: str) -> list[int]:
            return super().encode(text.replace("book", "boo"))

    german, english = Words(GERMAN), Lossy(ENGLISH)

    def encode(one: str, two: str) -> tuple[list[int], list[int]]:
        return german.encode(one), [BOS + 900, *english.encode(two), EOS + 900]

    marks = (BOS + 900, EOS + 900)
    report = examine_encoding(encode, PAIRS, source=german, target=english, marks=marks)
    assert report.names == ["round-trip"]
    assert "2 of 3 target texts" in report.findings[0].evidence


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


MARKS = {"vocab_size": 23, "pad": PAD, "bos": BOS, "eos": EOS}
Rows = list[list[int]]


def padded(rows: Rows, length: int = 0) -> Tensor:
    """Pad rows to the longest, or to a length."""
    ids = padded_rows(rows)
    return torch.nn.functional.pad(ids, (0, max(0, length - ids.size(1))), value=PAD)


def batch(sources: Rows, targets: Rows, *, limit: int, fixed: int = 0) -> dict[str, Tensor]:
    return {
        "source": padded([[*row[: limit - 1], EOS] for row in sources], fixed),
        "target": padded([[BOS, *row[: limit - 2], EOS] for row in targets], fixed),
    }


@pytest.mark.parametrize(
    ("limit", "fixed", "expected"),
    [
        (5000, 0, []),
        (64, 0, ["end-kept-on-cut-targets", "silent-cut"]),
        (5000, 64, ["fixed-padding"]),
        (64, 64, ["end-kept-on-cut-targets", "fixed-padding", "silent-cut"]),
    ],
)
def test_cut_rows_and_fixed_padding_are_named(limit: int, fixed: int, expected: list[str]) -> None:
    report = examine_collate(lambda *rows: batch(*rows, limit=limit, fixed=fixed), **MARKS)
    assert sorted(report.names) == expected


def test_cutting_without_an_end_symbol_and_with_a_warning_is_no_defect() -> None:
    def collate(sources: Rows, targets: Rows) -> tuple[Tensor, Tensor]:
        if max(map(len, sources)) > 60:
            warnings.warn("1 source was cut", stacklevel=1)
        return padded([row[:60] for row in sources]), padded([[BOS, *row, EOS][:60] for row in targets])

    assert not examine_collate(collate, **MARKS).findings


def test_labels_of_a_hugging_face_batch_are_read_instead_of_its_mask() -> None:
    """Labels of Hugging Face are padded with -100, and its mask holds integers too."""

    def collate(sources: Rows, targets: Rows) -> dict[str, Tensor]:
        ids, labels = batch(sources, targets, limit=64).values()
        return {
            "input_ids": ids,
            "attention_mask": (ids != PAD).long(),
            "labels": labels.masked_fill(labels == PAD, -100),
        }

    assert sorted(examine_collate(collate, **MARKS).names) == ["end-kept-on-cut-targets", "silent-cut"]


def test_labels_that_are_padded_below_zero_to_one_length_are_named() -> None:
    def collate(sources: Rows, targets: Rows) -> dict[str, Tensor]:
        labels = padded([[*row, EOS] for row in targets], 2100)
        return {"input_ids": padded(sources), "labels": labels.masked_fill(labels == PAD, -100)}

    assert examine_collate(collate, **MARKS).names == ["fixed-padding"]
