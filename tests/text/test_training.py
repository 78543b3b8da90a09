"""Trained subwords: the size of a vocabulary, its characters, and the lines that the library reads."""

from __future__ import annotations

import subprocess
import sys

import pytest

from manyheads.config.schema import TokenizerConfig
from manyheads.errors import ConfigError
from manyheads.text.training import _training_lines, train_subwords

SUBWORD_KINDS = ("bpe", "unigram")


@pytest.mark.parametrize("kind", SUBWORD_KINDS)
def test_a_vocabulary_too_large_for_the_text_is_refused_with_the_largest_possible(
    kind: str, german: list[str]
) -> None:
    with pytest.raises(ConfigError, match="vocab_size = 9000 is more than the text of de allows") as caught:
        train_subwords(TokenizerConfig(kind=kind, vocab_size=9_000), german, "de")
    largest = int(str(caught.value).rpartition("at most ")[2].rstrip("."))
    assert train_subwords(TokenizerConfig(kind=kind, vocab_size=largest), german, "de").size == largest
    with pytest.raises(ConfigError, match=f"at most {largest}"):
        train_subwords(TokenizerConfig(kind=kind, vocab_size=largest + 1), german, "de")


@pytest.mark.parametrize("kind", SUBWORD_KINDS)
@pytest.mark.parametrize("size", [9, 261])
def test_a_vocabulary_too_small_for_the_characters_is_refused_with_the_smallest_possible(
    kind: str, size: int, german: list[str]
) -> None:
    def config(size: int) -> TokenizerConfig:
        return TokenizerConfig(kind=kind, vocab_size=size)

    with pytest.raises(ConfigError, match=f"vocab_size = {size} is too small for the text of de") as caught:
        train_subwords(config(size), german, "de")
    smallest = int(str(caught.value).rpartition("at least ")[2].rstrip("."))
    assert train_subwords(config(smallest), german, "de").size == smallest
    with pytest.raises(ConfigError, match=f"at least {smallest}"):
        train_subwords(config(smallest - 1), german, "de")


@pytest.mark.parametrize("kind", SUBWORD_KINDS)
def test_a_small_vocabulary_has_no_bytes_and_unseen_characters_are_unknown(kind: str, german: list[str]) -> None:
    config = TokenizerConfig(kind=kind, vocab_size=80)
    tokenizer = train_subwords(config, german, "de")
    assert tokenizer.decode(tokenizer.encode(["Hund 漢 Hund▁"])[0]) == "Hund <unk> Hund<unk>"
    assert [tokenizer.decode(ids) for ids in tokenizer.encode(german)] == german


@pytest.mark.parametrize("kind", SUBWORD_KINDS)
def test_of_more_characters_than_pieces_the_rarest_get_none(kind: str, german: list[str]) -> None:
    rare = [f"Hund {chr(code)}" for code in range(0x4E00, 0x4E00 + 100)]
    tokenizer = train_subwords(TokenizerConfig(kind=kind, vocab_size=340), german * 400 + rare, "de")
    assert tokenizer.size == 340
    assert "ß" in tokenizer.texts
    assert not {line[-1] for line in rare} & set(tokenizer.texts)
    assert tokenizer.decode(tokenizer.encode(rare)[0]) == rare[0]


@pytest.mark.parametrize("kind", SUBWORD_KINDS)
def test_split_digits_makes_every_digit_a_token(kind: str, german: list[str]) -> None:
    numbered = [f"2024 {line} 1999 2024" for line in german]
    for split in (False, True):
        config = TokenizerConfig(kind=kind, vocab_size=90, split_digits=split)
        tokenizer = train_subwords(config, numbered, "de")
        (ids,) = tokenizer.encode(["2024"])
        digits = [piece for piece in tokenizer.pieces(ids) if piece != "▁"]
        assert (digits == list("2024")) == split
        assert tokenizer.decode(ids) == "2024"


def test_training_lines_may_contain_characters_that_the_library_reserves(german: list[str]) -> None:
    config = TokenizerConfig(vocab_size=340)
    marked = [f"▅ {text.replace(' ', '▁')}" for text in german]
    assert train_subwords(config, marked, "de").sha256 == train_subwords(config, german, "de").sha256


@pytest.mark.parametrize("length", [1, 999, 1000, 1001, 5000])
def test_training_lines_are_short_and_nothing_is_lost(length: int) -> None:
    for text in ("x" * length, ("Hunde und " * length)[:length].strip(), "길" * length):
        lines = list(_training_lines(TokenizerConfig(), [text, "Ende"]))
        assert "".join(lines) == text + "Ende"
        assert max(len(line.encode()) for line in lines) <= 4_192
        if " " in text:
            assert all(line.startswith(" ") for line in lines[1:-1])  # cut at blanks


def test_characters_of_a_long_line_get_pieces(german: list[str]) -> None:
    long_line = "Ελληνικά " * 2_000
    tokenizer = train_subwords(TokenizerConfig(vocab_size=340), [*german, long_line], "de")
    assert not any(piece.startswith("<0x") for piece in tokenizer.pieces(tokenizer.encode(["Ελληνικά"])[0]))


def test_training_prints_nothing(german: list[str]) -> None:
    """The log level of the library is set once for a process, hence a separate process."""
    program = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "from manyheads.config.schema import TokenizerConfig\n"
        "from manyheads.text.training import train_subwords\n"
        f"print(train_subwords(TokenizerConfig(vocab_size=340), {german!r}, 'de').size)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("340\n", "")
