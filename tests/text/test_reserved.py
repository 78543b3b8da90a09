from __future__ import annotations

import re

import pytest

from manyheads.config.schema import TokenizerConfig
from manyheads.errors import UsageError
from manyheads.text.reserved import NONCHARACTERS as CHARACTERS
from manyheads.text.reserved import language_symbol, remove_noncharacters
from manyheads.text.tokenizer import Tokenizer, load_tokenizer
from manyheads.text.training import train_tokenizer

RESERVED = (language_symbol("fr"), "<term>", "</term>", "<keep-1>")
SENTENCE = "Der Hund schläft im Garten."


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def reserving(request: pytest.FixtureRequest, german: list[str]) -> Tokenizer:
    config = TokenizerConfig(kind=request.param, vocab_size=330, sampling=0.3, reserved=RESERVED)
    trained = train_tokenizer(config, german, "de")
    return load_tokenizer(config, "de", trained.to_bytes())


def with_characters(text: str) -> str:
    for symbol, character in CHARACTERS.items():
        text = text.replace(symbol, character)
    return text


def test_no_text_spells_a_reserved_symbol_and_the_symbol_has_no_text(reserving: Tokenizer) -> None:
    assert sorted(reserving.reserved) == sorted(RESERVED)
    ids = set(reserving.reserved.values())
    typed = [f"{symbol} Hund{symbol}" for symbol in RESERVED]
    typed += [*CHARACTERS.values(), f"Hund {CHARACTERS['<term>']}"]
    for text in typed:
        (encoded,) = reserving.encode([text])
        assert ids.isdisjoint(encoded)
        assert ids.isdisjoint(reserving.sample([text], 1)[0])
        assert reserving.decode(encoded) == text
    (encoded,) = reserving.encode([SENTENCE])
    assert reserving.decode([reserving.reserved["<to-fr>"], *encoded, reserving.reserved["<keep-1>"]]) == SENTENCE
    assert reserving.pieces([reserving.reserved["<to-fr>"]]) == ["<to-fr>"]


@pytest.mark.parametrize(
    "text", [SENTENCE, "", "Der <term>cat</term>, <keep-1>", "<keep-1><keep-1> Hund", "<term></term>"]
)
def test_the_texts_between_symbols_are_encoded_each_alone(reserving: Tokenizer, text: str) -> None:
    texts = re.split("[\ufdd0-\ufdd9]", with_characters(text))
    (ids,) = reserving.encode_marked([with_characters(text)])
    reserved = set(reserving.reserved.values())
    assert [i for i in ids if i not in reserved] == [i for part in reserving.encode(texts) for i in part]
    assert [reserving.pieces([i])[0] for i in ids if i in reserved] == [
        symbol for symbol in text.replace("<", " <").replace(">", "> ").split() if symbol in RESERVED
    ]
    assert reserving.encode_marked(["x", with_characters(text)])[1] == ids


def test_texts_with_symbols_are_sampled_by_their_seed(reserving: Tokenizer) -> None:
    texts = [with_characters(f"{SENTENCE} <term>Garten</term> {SENTENCE}")] * 3
    assert reserving.encode_marked(texts, 4) == reserving.encode_marked(texts, 4)
    assert reserving.encode_marked(texts, 4) != reserving.encode_marked(texts, 5)


def test_a_symbol_that_the_vocabulary_lacks_is_an_error(reserving: Tokenizer) -> None:
    with pytest.raises(UsageError, match="no symbol <keep-2>"):
        reserving.encode_marked([CHARACTERS["<keep-2>"]])
    text = remove_noncharacters(f"Hund{CHARACTERS['<keep-2>']}")
    assert reserving.encode_marked([text]) == reserving.encode(["Hund"])
