"""Text that grows with its tokens: never taken back, and in the end the text of all tokens."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.conftest import GERMAN

from manyheads.config.schema import TokenizerConfig
from manyheads.text.interface import growing_text
from manyheads.text.tokenizer import Tokenizer, train_tokenizers

TEXTS = [*GERMAN, "der Hund läuft und singt, zwei Hunde ☃ a b c"]
KINDS = ["bpe", "unigram", "characters", "bytes"]


def tokenizer(kind: str) -> Tokenizer:
    size = {"vocab_size": 340} if kind in ("bpe", "unigram") else {}
    config = TokenizerConfig.model_validate({"kind": kind} | size)
    return train_tokenizers(config, TEXTS, TEXTS, "de", "de").target


TOKENIZERS = {kind: tokenizer(kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_the_pieces_are_the_text_of_all_tokens(kind, data) -> None:
    known = TOKENIZERS[kind]
    ids = data.draw(st.lists(st.integers(0, known.size - 1), max_size=12))
    assert "".join(growing_text(known, ids)) == known.decode(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_each_token_shows_at_once_but_for_unfinished_characters(kind) -> None:
    known = TOKENIZERS[kind]
    (ids,) = known.encode(["zwei Hunde ☃ über"])
    taken: list[int] = []

    def tokens():
        for token in ids:
            taken.append(token)
            yield token

    shown = ""
    for piece in growing_text(known, tokens()):
        assert piece
        shown += piece
        assert shown == known.decode(taken)
        assert "\ufffd" not in shown
    assert shown == "zwei Hunde ☃ über"


def test_bytes_that_become_no_character_show_in_the_end() -> None:
    known = TOKENIZERS["bytes"]
    assert list(growing_text(known, [4 + 0xE2, 4 + 0x98])) == ["\ufffd"]
    assert "".join(growing_text(known, [4 + 0xE2, 4 + ord("a")])) == "\ufffda"


def test_no_tokens_are_no_pieces() -> None:
    assert list(growing_text(TOKENIZERS["bpe"], [])) == []
