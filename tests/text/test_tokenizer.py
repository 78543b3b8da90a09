from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from manyheads.config.schema import Config, TokenizerConfig
from manyheads.errors import ConfigError, DataError, RunError, UsageError
from manyheads.text.characters import CharacterTokenizer
from manyheads.text.interface import lower
from manyheads.text.normalize import normalize
from manyheads.text.tokenizer import (
    BOS,
    EOS,
    PAD,
    SPECIALS,
    UNK,
    Tokenizer,
    TokenizerPair,
    load_tokenizer,
)
from manyheads.text.training import train_tokenizers

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # surrogates included
# Texts that a tokenizer may confuse with its internal symbols.
CONFUSING_TEXTS = [
    "▁",
    "a▁ ▁b▁",
    "▅ a",
    "\U000f0000▁\U000f0001",
    "<s> </s> <pad> <unk>",
    "<0xEA>",
    "⁇",
    "\ufffe",
    "\ud800",
]
hypothesis_settings = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_the_special_symbols_have_the_ids_0_to_3(tokenizer: Tokenizer) -> None:
    assert (UNK, PAD, BOS, EOS) == (0, 1, 2, 3)
    assert tuple(tokenizer.pieces(range(4))) == SPECIALS == ("<unk>", "<pad>", "<s>", "</s>")
    assert len(tokenizer.pieces(range(tokenizer.size))) == tokenizer.size


def test_training_text_survives_the_round_trip(tokenizer: Tokenizer, german: list[str], korean: list[str]) -> None:
    texts = german + korean
    assert [tokenizer.decode(ids) for ids in tokenizer.encode(texts)] == texts


@hypothesis_settings
@given(text=ANY_TEXT)
@example(text=" ".join(CONFUSING_TEXTS))
def test_any_text_survives_the_round_trip_with_byte_fallback(tokenizer: Tokenizer, text: str) -> None:
    if tokenizer.kind != "characters":
        assert tokenizer.decode(tokenizer.encode([text])[0]) == normalize(text)


@hypothesis_settings
@given(text=ANY_TEXT)
@example(text=" ".join(CONFUSING_TEXTS))
@example(text=" 👩\u200d👧 \0\x1f😀")
@example(text="नमस्ते العربية Ελληνικά 漢字")
def test_no_text_is_encoded_with_special_ids(tokenizer: Tokenizer, text: str) -> None:
    (ids,) = tokenizer.encode([text])
    assert not {PAD, BOS, EOS} & set(ids)
    assert all(0 <= i < tokenizer.size for i in ids)
    assert (UNK in ids) <= (tokenizer.kind == "characters")
    assert bool(ids) == bool(normalize(text))


@hypothesis_settings
@given(texts=st.lists(st.one_of(ANY_TEXT, st.sampled_from(CONFUSING_TEXTS)), max_size=4))
def test_the_ids_of_a_text_do_not_depend_on_other_texts(tokenizer: Tokenizer, texts: list[str]) -> None:
    assert tokenizer.encode(texts) == [tokenizer.encode([text])[0] for text in texts]


@pytest.mark.parametrize("variant", ["{}\r\n", "\ufeff{}", "\t{} ", "\0{}\x08", "{}\u2028"])
def test_line_ends_byte_order_marks_and_control_characters_are_ignored(
    tokenizer: Tokenizer, german: list[str], variant: str
) -> None:
    clean = german[0]
    broken = variant.format(clean.replace(" ", "\u3000 "))
    assert tokenizer.encode([broken]) == tokenizer.encode([clean])


def test_decoding_leaves_out_padding_and_end_marks_and_shows_unknown_symbols(tokenizer: Tokenizer) -> None:
    (ids,) = tokenizer.encode(["Hund"])
    assert tokenizer.decode([BOS, *ids, EOS, PAD, PAD]) == "Hund"
    assert tokenizer.decode([*ids, UNK]) == "Hund<unk>"
    assert tokenizer.decode([PAD, EOS]) == tokenizer.decode([]) == ""


@hypothesis_settings
@given(data=st.data())
def test_all_ids_can_be_decoded_in_any_order(tokenizer: Tokenizer, data: st.DataObject) -> None:
    """A model may generate incomplete characters, whose bytes are left out."""
    ids = data.draw(st.lists(st.integers(0, tokenizer.size - 1)))
    tokenizer.decode(ids).encode()
    assert len(tokenizer.pieces(ids)) == len(ids)
    if tokenizer.kind != "characters":
        half = tokenizer.encode(["漢"])[0][-3:-1]
        assert set(tokenizer.decode([*half, *tokenizer.encode(["▁"])[0][-3:]])) == {"▁"}


@pytest.mark.parametrize("offset", [0, 1_000_000])
def test_an_id_outside_the_vocabulary_is_named(tokenizer: Tokenizer, offset: int) -> None:
    for wrong in (tokenizer.size + offset, -1 - offset):
        with pytest.raises(UsageError, match=f"token id {wrong} is outside this vocabulary of {tokenizer.size}"):
            tokenizer.decode([4, wrong])
        with pytest.raises(UsageError, match=str(wrong)):
            tokenizer.pieces([wrong])


def test_a_text_in_place_of_a_list_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(UsageError, match="list of texts"):
        tokenizer.encode("Hund")


def test_a_word_of_300_kilobytes_and_a_character_repeated_are_encoded(tokenizer: Tokenizer) -> None:
    for text in ("Hundewald" * 33_333, "▁" * 30_000):
        (ids,) = tokenizer.encode([text])
        assert tokenizer.decode(ids) == text or tokenizer.kind == "characters"
        assert len(ids) <= len(text.encode()) + 1


def test_a_tokenizer_survives_saving_and_loading(
    tokenizer: Tokenizer, config: TokenizerConfig, german: list[str], korean: list[str]
) -> None:
    loaded = load_tokenizer(config, "ko", tokenizer.to_bytes())
    assert loaded.to_bytes() == tokenizer.to_bytes()
    assert loaded.sha256 == tokenizer.sha256
    assert len(loaded.sha256) == 64
    assert (loaded.kind, loaded.size, loaded.suffix) == (config.kind, tokenizer.size, tokenizer.suffix)
    texts = [*german, *korean, *CONFUSING_TEXTS]
    assert loaded.encode(texts) == tokenizer.encode(texts)


def test_equal_training_texts_give_equal_tokenizers_and_other_texts_give_others(
    tokenizer: Tokenizer, config: TokenizerConfig, german: list[str], korean: list[str]
) -> None:
    assert train_tokenizers(config, german, korean, "de", "ko").target.sha256 == tokenizer.sha256
    if config.kind != "bytes":
        other = train_tokenizers(config, [*german, "Ähre Öse"], korean, "de", "ko")
        assert other.source.sha256 != tokenizer.sha256


def test_damaged_bytes_are_refused(tokenizer: Tokenizer, config: TokenizerConfig) -> None:
    data = tokenizer.to_bytes()
    for wrong in (b"", b"\0", data[:-7], data[: len(data) // 2], data[1:], b"[" * 100_000, b"\xff" + data):
        with pytest.raises(RunError, match=f'kind = "{config.kind}"'):
            load_tokenizer(config, "de", wrong)


def test_a_tokenizer_of_another_kind_is_refused(tokenizer: Tokenizer, config: TokenizerConfig) -> None:
    other = {"characters": "bytes", "bytes": "characters", "bpe": "bytes", "unigram": "characters"}[config.kind]
    with pytest.raises(RunError, match=f'kind = "{other}"'):
        load_tokenizer(TokenizerConfig(kind=other), "de", tokenizer.to_bytes())


@pytest.mark.parametrize("kind", ["characters", "bytes"])
def test_a_tokenizer_that_contradicts_the_configuration_is_refused(kind: str) -> None:
    data = train_tokenizers(TokenizerConfig(kind=kind), ["Hund"], ["dog"], "de", "en").source.to_bytes()
    with pytest.raises(RunError, match="lowercase is False in it, True in the configuration"):
        load_tokenizer(TokenizerConfig(kind=kind, lowercase=True), "de", data)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "words", "characters"])
def test_nothing_can_be_learned_from_blank_text(kind: str) -> None:
    if kind == "words":
        pytest.importorskip("spacy")
    for texts in ([], ["", " ", "\0\r\n"]):
        with pytest.raises(DataError, match="no text"):
            train_tokenizers(TokenizerConfig(kind=kind), texts, texts, "de", "en")


def test_a_joint_vocabulary_is_one_tokenizer_for_both_languages(
    config: TokenizerConfig, german: list[str], korean: list[str]
) -> None:
    pair = train_tokenizers(config, german, korean, "de", "ko")
    assert pair.joint
    assert pair.source is pair.target
    assert UNK not in pair.source.encode(["Straße 길을"])[0]


def test_separate_tokenizers_learn_and_encode_their_own_language_only(german: list[str], korean: list[str]) -> None:
    config = TokenizerConfig(kind="characters", joint=False)
    pair = train_tokenizers(config, german, korean, "de", "ko")
    assert not pair.joint
    assert UNK not in pair.source.encode(["Hund"])[0] + pair.target.encode(["여자가"])[0]
    assert {*pair.source.encode(["여자가"])[0], *pair.target.encode(["Hund"])[0]} == {UNK}


def test_bytes_are_the_same_for_every_language() -> None:
    pair = train_tokenizers(TokenizerConfig(kind="bytes", joint=False), [], [], "de", "ko")
    assert pair.source is pair.target
    assert pair.source.size == 260
    assert pair.source.pieces(pair.source.encode(["é"])[0]) == ["<0xC3>", "<0xA9>"]


def test_a_joint_pair_of_two_vocabularies_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(ValueError, match="joint"):
        TokenizerPair(tokenizer, CharacterTokenizer(["x"], "de", lowercase=False), joint=True)


def test_each_side_of_a_joint_pair_has_its_own_normal_form_of_text(tokenizer: Tokenizer) -> None:
    config = Config.model_validate({"data": {"source": "de", "target": "en"}, "tokenizer": {"normal_form": 1}})
    pair = TokenizerPair(tokenizer, tokenizer, joint=True).with_normal_forms(config)
    text = "Hu\u00adnde\u00a0! ｄｅｒ"
    assert [side.prepare([text]) for side in (pair.source, pair.target)] == [["Hunde ! der"], [text]]
    assert tokenizer.prepare([text]) == ["Hu\u00adnde ! ｄｅｒ"]
    assert pair.source.sha256 == pair.target.sha256 == tokenizer.sha256


@pytest.mark.parametrize(
    ("task", "sides"),
    [
        ("translation", ("source", "target")), ("classification", ("source", "source")),
        ("masked-lm", ("source", "source")), ("language-modeling", ("", "")),
    ],
)  # fmt: skip
def test_text_that_a_model_only_reads_is_a_source(tokenizer: Tokenizer, task: str, sides: tuple[str, str]) -> None:
    languages = {"source": "de", "target": "en"} if task == "translation" else {"language": "de"}
    metric = {"metric": "loss"}
    values = {"task": task, "data": languages, "tokenizer": {"normal_form": 1}, "training": metric}
    pair = TokenizerPair(tokenizer, tokenizer, joint=True)
    found = pair.with_normal_forms(Config.model_validate(values))
    assert (found.source.side, found.target.side) == sides


def test_a_tokenizer_lowercases_if_configured(
    config: TokenizerConfig, german: list[str], korean: list[str]
) -> None:
    configured = TokenizerConfig(kind=config.kind, vocab_size=360, lowercase=True)
    tokenizer = train_tokenizers(configured, german, korean, "de", "ko").source
    for variant in (tokenizer, load_tokenizer(configured, "de", tokenizer.to_bytes())):
        assert variant.encode(["DER HUND"]) == variant.encode(["der hund"])
        assert variant.decode(variant.encode(["DER HUND"])[0]) == "der hund"
    assert not any(
        piece != piece.lower() for piece in tokenizer.pieces(range(4, tokenizer.size)) if "<" not in piece
    )


@given(ANY_TEXT)
@example("T\u0308")  # only the small letter exists in composed form
def test_lowercased_normalised_text_is_normalised(text: str) -> None:
    assert normalize(lower(normalize(text))) == lower(normalize(text))


def test_character_and_byte_tokenizers_refuse_sampling() -> None:
    for kind in ("characters", "bytes"):
        tokenizer = train_tokenizers(TokenizerConfig(kind=kind), ["Hund"], ["dog"], "de", "en").source
        with pytest.raises(UsageError, match=f'"{kind}" has no subword sampling'):
            tokenizer.sample(["Hund"], 1)


def test_rare_characters_are_unknown() -> None:
    config = TokenizerConfig(kind="characters", min_count=2)
    tokenizer = train_tokenizers(config, ["ab b", "c a"], ["ab"], "de", "en").source
    assert tokenizer.pieces(range(4, tokenizer.size)) == ["a", "b", "▁"]  # 3, 3, 2 times
    assert tokenizer.decode(tokenizer.encode(["a cb"])[0]) == "a <unk>b"
    with pytest.raises(ConfigError, match=r"min_count = 4 leaves no symbol of de.en\. Use at most 3"):
        train_tokenizers(TokenizerConfig(kind="characters", min_count=4), ["ab b", "c a"], ["ab"], "de", "en")
