"""Incremental detokenization: text is never retracted, and the pieces add up to the text of all tokens."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.conftest import GERMAN

from manyheads.config.schema import TokenizerConfig
from manyheads.text.interface import growing_text
from manyheads.text.tokenizer import Tokenizer
from manyheads.text.training import train_tokenizers

TEXTS = [*GERMAN, "der Hund läuft und singt, zwei Hunde ☃ a b c"]
KINDS = ["bpe", "unigram", "characters", "bytes"]


def make_tokenizer(kind: str) -> Tokenizer:
    size = {"vocab_size": 340} if kind in ("bpe", "unigram") else {}
    config = TokenizerConfig.model_validate({"kind": kind} | size)
    return train_tokenizers(config, TEXTS, TEXTS, "de", "de").target


TOKENIZERS = {kind: make_tokenizer(kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150)
@given(data=st.data())
def test_the_pieces_add_up_to_the_text_of_all_tokens(kind, data) -> None:
    tokenizer = TOKENIZERS[kind]
    ids = data.draw(st.lists(st.integers(0, tokenizer.size - 1), max_size=12))
    assert "".join(growing_text(tokenizer, ids)) == tokenizer.decode(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_each_token_is_shown_at_once_except_for_incomplete_characters(kind) -> None:
    tokenizer = TOKENIZERS[kind]
    (ids,) = tokenizer.encode(["zwei Hunde ☃ über"])
    taken: list[int] = []

    def tokens():
        for token in ids:
            taken.append(token)
            yield token

    shown = ""
    for piece in growing_text(tokenizer, tokens()):
        assert piece
        shown += piece
        assert shown == tokenizer.decode(taken)
        assert "\ufffd" not in shown
    assert shown == "zwei Hunde ☃ über"


SNOW = "☃".encode()


@pytest.mark.parametrize(
    ("data", "source", "text", "broken"),
    [
        (b"a" + SNOW, "", "a☃", 0),
        (SNOW[:2], "", "", 1),
        (SNOW[:2] + b"a" + SNOW[2:] + SNOW, "", "a☃", 2),
        (b"\xff\x80" + SNOW, "", "☃", 2),
        (b"a" + SNOW[:2] + b"b", "der ☃ da", "a☃b", 1),
        (b"a" + SNOW[:2], "der ☃ da", "a☃", 1),
        (SNOW[:1], "☃ ☀", "", 1),
        (SNOW[:2], "☃ ☀", "", 1),
        ("\ufffd".encode() + SNOW[:1], "", "\ufffd", 1),
    ],
)
def test_bytes_that_form_no_character_are_left_out_or_completed_from_the_source(data, source, text, broken) -> None:
    tokenizer = TOKENIZERS["bytes"]
    ids = [4 + byte for byte in data]
    whole, count = tokenizer.whole_characters(ids, source)
    assert (tokenizer.decode(whole), count) == (text, broken)
    assert "".join(growing_text(tokenizer, ids, source)) == text
    assert tokenizer.decode(ids) == data.decode(errors="ignore")


def test_no_tokens_give_no_pieces() -> None:
    assert list(growing_text(TOKENIZERS["bpe"], [])) == []
