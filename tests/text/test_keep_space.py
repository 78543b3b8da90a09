"""Tokenizers that keep white space restore every text exactly, as language models need (invariant K)."""

from __future__ import annotations

from typing import Any

import pytest

from manyheads.config.schema import TokenizerConfig
from manyheads.text.normalize import unify
from manyheads.text.tokenizer import UNK, Tokenizer, load_tokenizer
from manyheads.text.training import train_tokenizer

TEXT = ["ANNA:\n", "\n", "  Who goes\tthere?  \n", "구름 위로,\n", "\n\n", " no end", "  the  last  \n"] * 9
UNUSUAL_TEXTS = [
    "",
    "\n",
    " ",
    "a b",
    " a",
    "a ",
    "\n\n  \t x\n",
    "  the  last",
    "▁ _ ▁▁\n",
    "🙂\n구름",
    "there?\n",
]


@pytest.fixture(scope="module", params=["characters", "bytes", "bpe", "unigram"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    settings: dict[str, Any] = {"vocab_size": 284} if request.param in ("bpe", "unigram") else {}
    config = TokenizerConfig(kind=request.param, **settings)
    trained = train_tokenizer(config, TEXT, "en", keep_space=True)
    return load_tokenizer(config, "en", trained.to_bytes(), keep_space=True)


@pytest.mark.parametrize("text", [*UNUSUAL_TEXTS, "".join(TEXT)])
def test_a_text_is_restored_exactly(tokenizer: Tokenizer, text: str) -> None:
    (ids,) = tokenizer.encode([text])
    if tokenizer.kind == "characters" and UNK in ids:
        assert len(ids) == len(text)
    else:
        assert tokenizer.decode(ids) == text


def test_the_tokens_of_the_lines_are_the_tokens_of_the_text(tokenizer: Tokenizer) -> None:
    """Files are encoded line by line."""
    ids = [token for row in tokenizer.encode(TEXT) for token in row]
    assert tokenizer.decode(ids) == "".join(TEXT)
    assert tokenizer.encode(["".join(TEXT)])[0] == ids


def test_a_line_end_is_one_token(tokenizer: Tokenizer) -> None:
    (ids,) = tokenizer.encode(["\n"])
    assert len(ids) == 1
    assert tokenizer.encode(["a\n\nb"])[0].count(ids[0]) == 2


def test_the_last_tokens_decode_to_the_end_of_the_text(tokenizer: Tokenizer) -> None:
    """A stop string can therefore be searched in the last tokens alone."""
    (ids,) = tokenizer.encode(["".join(TEXT)])
    for start in range(0, len(ids), 7):
        assert "".join(TEXT).endswith(tokenizer.decode(ids[start:]))


def test_line_ends_of_other_systems_become_line_feeds() -> None:
    assert unify("a\r\nb\rc\n\r\n d ") == "a\nb\nc\n\n d "
    assert unify("\x00e\u0301\ufeff\t") == "é\t"
