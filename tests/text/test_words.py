from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest

from manyheads.config.schema import TokenizerConfig
from manyheads.errors import ConfigError, MissingExtraError, RunError, UsageError
from manyheads.text.tokenizer import UNK, Tokenizer, load_tokenizer
from manyheads.text.training import train_tokenizers
from manyheads.text.vocabulary import Stored
from manyheads.text.words import WordTokenizer, _word_splitter

MULTI30K = Path(__file__).parents[3] / "shared" / "data" / "multi30k"
GERMAN = ["Der Hund schläft.", "Der Hund bellt, z. B. nachts.", "die Katze schläft"]
ENGLISH = ["The dog doesn't sleep.", "The dog barks."]


@pytest.fixture(autouse=True)
def needs_spacy() -> None:
    pytest.importorskip("spacy")


def german_tokenizer(texts: list[str], *, min_count: int = 1, lowercase: bool = False) -> WordTokenizer:
    """Return a German word tokenizer trained on these texts."""
    return WordTokenizer.train(TokenizerConfig(kind="words", min_count=min_count, lowercase=lowercase), texts, "de")


@pytest.mark.slow
@pytest.mark.weekly
@pytest.mark.skipif(not MULTI30K.exists(), reason="the Multi30k corpus is missing")
@pytest.mark.parametrize(("language", "published"), [("de", 7_853), ("en", 5_893)])
def test_the_vocabularies_of_multi30k_have_the_published_sizes(language: str, published: int) -> None:
    text = gzip.decompress((MULTI30K / f"train.{language}.gz").read_bytes()).decode()
    config = TokenizerConfig(kind="words", joint=False, lowercase=True, min_count=2)
    assert WordTokenizer.train(config, text.split("\n"), language).size == published


def test_words_are_numbered_by_falling_count_then_alphabetically() -> None:
    tokenizer = german_tokenizer(["b a b", "d c a b C"])
    assert tokenizer.pieces(range(4, tokenizer.size)) == ["b", "a", "C", "c", "d"]


def test_words_are_split_by_the_rules_of_their_language() -> None:
    config = TokenizerConfig(kind="words", joint=False)
    pair = train_tokenizers(config, GERMAN, ENGLISH, "de-AT", "en_GB")
    assert pair.source.pieces(pair.source.encode(["z. B. Der Hund,"])[0]) == ["z.", "B.", "Der", "Hund", ","]
    assert pair.target.pieces(pair.target.encode(["The dog doesn't"])[0]) == ["The", "dog", "does", "n't"]


def test_decoding_joins_the_words_with_blanks() -> None:
    tokenizer = german_tokenizer(GERMAN)
    assert tokenizer.decode(tokenizer.encode(["Der Hund schläft."])[0]) == "Der Hund schläft ."
    assert tokenizer.decode([2, *tokenizer.encode(["Der Hund lacht"])[0], 3, 1]) == "Der Hund <unk>"


def test_rare_words_and_names_of_special_symbols_are_unknown() -> None:
    tokenizer = german_tokenizer(["a a b </s> <pad>", "a <pad> <unk> </s> </s>"], min_count=2)
    assert (
        {"a"} <= set(tokenizer.pieces(range(4, tokenizer.size))) <= {"a", "<", ">", "s", "/s", "pad", "</s", "<pad"}
    )
    assert tokenizer.encode(["b"]) == [[UNK]]
    assert not {1, 2, 3} & set(tokenizer.encode(["<pad> <s> </s> <unk>"])[0])
    with pytest.raises(ConfigError, match=r"min_count = 9 leaves no symbol of de\. Use at most"):
        german_tokenizer(["a a b"], min_count=9)


def test_words_are_lower_cased_after_the_split() -> None:
    """The segmentation depends on case: for spaCy ``St.`` is one word, ``st.`` are two."""
    tokenizer = german_tokenizer(["Die Kirche St. Anna", "St. Anna"], lowercase=True)
    assert tokenizer.pieces(tokenizer.encode(["DIE St. ANNA"])[0]) == ["die", "st.", "anna"]


def test_repeated_white_space_is_a_word_only_if_the_training_text_had_it() -> None:
    plain, spaced = german_tokenizer(["a b"]), german_tokenizer(["a  b"])
    assert plain.pieces(plain.encode([" a \t b\u2028a\r\n"])[0]) == ["a", "b", "a"]
    assert spaced.pieces(spaced.encode(["a  b\r\n"])[0]) == ["a", "▁", "b"]
    assert plain.encode(["", " ", "\0"]) == [[], [], []]


def test_a_joint_vocabulary_segments_both_languages_by_the_multi_language_rules() -> None:
    pair = train_tokenizers(TokenizerConfig(kind="words"), ENGLISH, GERMAN, "en", "de")
    assert pair.source is pair.target
    assert UNK not in pair.source.encode(["Der dog"])[0]
    assert pair.source.pieces(pair.source.encode(["doesn't sleep."])[0]) == ["doesn't", "sleep", "."]
    for language in ("de", "en"):
        loaded = load_tokenizer(TokenizerConfig(kind="words"), language, pair.source.to_bytes())
        assert loaded.encode(ENGLISH) == pair.source.encode(ENGLISH)


@pytest.mark.parametrize("language", ["ko", "mi", "zz"])
def test_languages_without_installed_rules_use_the_multi_language_rules(language: str) -> None:
    name, split = _word_splitter(language)
    if name == language:
        pytest.skip(f"spaCy has all it needs for {language}")
    assert name == "xx"
    assert split("개가 잔다.") == ["개가", "잔다", "."]


def test_very_long_words_are_divided_without_loss() -> None:
    """spaCy's time grows with the square of a word's length: half a minute for 20,000 brackets."""
    _, split = _word_splitter("de")
    for text in ("(" * 20_000, "x" * 1_001, "'" * 1_000):
        assert "".join(split(text)) == text
        assert max(map(len, split(text))) <= 200
    assert split("x" * 200 + " y") == ["x" * 200, "y"]


@pytest.mark.parametrize("lowercase", [True, False])
def test_a_word_tokenizer_survives_saving_and_loading(lowercase: bool) -> None:
    config = TokenizerConfig(kind="words", joint=False, lowercase=lowercase)
    pair = train_tokenizers(config, GERMAN, ["개가 잔다."], "de", "ko")
    for tokenizer, language in ((pair.source, "de"), (pair.target, "ko")):
        loaded: Tokenizer = load_tokenizer(config, language, tokenizer.to_bytes())
        assert loaded.sha256 == tokenizer.sha256
        assert loaded.suffix == ".json"
        texts = [*GERMAN, "DER HUND", "개가 잔다. 😀\0\ud800"]
        assert loaded.encode(texts) == tokenizer.encode(texts)


def test_a_tokenizer_of_the_other_language_is_refused() -> None:
    data = german_tokenizer(GERMAN).to_bytes()
    with pytest.raises(RunError, match='made for "de", not for "en"'):
        load_tokenizer(TokenizerConfig(kind="words"), "en", data)


def test_missing_rules_of_a_language_are_an_error() -> None:
    """The multi-language rules would segment differently from the Korean rules of the training."""
    if _word_splitter("ko")[0] == "ko":
        pytest.skip("spaCy has all it needs for Korean")
    data = Stored(kind="words", lowercase=False, languages="ko", pipeline="ko", symbols=("개",)).to_bytes()
    with pytest.raises(RunError, match='spaCy rules "ko" need a package'):
        load_tokenizer(TokenizerConfig(kind="words"), "ko", data)


def test_words_have_no_subword_sampling() -> None:
    with pytest.raises(UsageError, match="has no subword sampling"):
        german_tokenizer(GERMAN).sample(GERMAN, 1)


def test_an_error_without_spacy_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtraError, match=r'pip install "manyheads\[words\]"'):
        train_tokenizers(TokenizerConfig(kind="words"), GERMAN, ENGLISH, "de", "en")
