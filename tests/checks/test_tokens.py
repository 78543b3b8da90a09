"""Unknown tokens, failed round trips, unusual lengths and vocabularies are named."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.checks.severities import severities

from manyheads.checks.evidence import QuotedLines
from manyheads.checks.tokens import (
    SideTokens,
    Vocabulary,
    count_tokens,
    count_vocabulary,
    entropy,
    length_findings,
    side_findings,
    size_findings,
    use_findings,
)
from manyheads.config.schema import TokenizerConfig
from manyheads.text.training import train_subwords


def test_entropy_is_that_of_the_distribution() -> None:
    assert entropy([5, 5, 0]) == pytest.approx(math.log(2))
    assert entropy([7]) == 0


def test_vocabularies_that_are_too_large_or_unused_are_named() -> None:
    vocabulary = Vocabulary("vocabulary", 5_000, 900, 100, 800_000)
    assert severities(use_findings(vocabulary)) == {}
    assert severities(use_findings(replace(vocabulary, unused=1_000))) == {"unused-vocabulary": "note"}
    assert severities(use_findings(replace(vocabulary, unused=4_000))) == {"unused-vocabulary": "warning"}
    assert severities(size_findings(vocabulary)) == {}
    assert severities(size_findings(replace(vocabulary, rare=4_000))) == {"vocabulary-too-large": "warning"}


@pytest.mark.parametrize(
    ("text", "unused"),
    [
        (["wonderful wonderland thunder", "museum"], set()),
        (["wonderful wonderland thunder"], {"mu", "eu", "eum"}),  # parts of words that are not there
    ],
)
def test_parts_of_longer_pieces_and_reserved_symbols_need_not_occur(text: list[str], unused: set[str]) -> None:
    config = TokenizerConfig(kind="bpe", vocab_size=290, symbols=("<bt>",))
    tokenizer = train_subwords(config, ["wonderful wonderland thunder", "museum"] * 20, "en")
    tokenizer = tokenizer.with_reserved(config, ["<2ko>"])
    counts = count_tokens(tokenizer, text)
    absent = {piece for piece, count in zip(tokenizer.texts, counts, strict=True) if not count}
    assert unused | {"er", "▁wo", "▁<bt>", "<2ko>", "<0x41>"} <= absent
    multiple = {piece for piece in {*tokenizer.texts} - absent if len(piece.strip("▁")) > 1}
    found = count_vocabulary("vocabulary", tokenizer, counts)
    assert (found.unused, found.pieces) == (len(unused), len(multiple | unused))


def test_unknown_tokens_failed_round_trips_and_long_texts_are_named() -> None:
    sound = SideTokens("valid, source", 10_000, 300, 400, QuotedLines())
    assert severities(side_findings(sound)) == {}
    assert severities(side_findings(replace(sound, unknown=600))) == {"many-unknown": "warning"}
    assert severities(side_findings(replace(sound, unknown=3_000))) == {"many-unknown": "error"}
    assert severities(side_findings(replace(sound, changed=QuotedLines(20)))) == {"round-trip": "warning"}
    assert severities(length_findings(10, 1_000, 128, dropped=True)) == {}
    assert severities(length_findings(100, 1_000, 128, dropped=True)) == {"cut-or-dropped": "warning"}
    assert severities(length_findings(100, 1_000, 128, dropped=False)) == {"cut-or-dropped": "note"}
    assert severities(length_findings(900, 1_000, 128, dropped=False)) == {"cut-or-dropped": "warning"}
