from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import sentencepiece
import tokenizers
from tests.interop.pretrained import HOSTILE, byte_pieces, fast_tokenizer, minilm_folder
from tests.web.text.browser import (
    LANGUAGES,
    Browser,
    first_difference,
    joined_surrogates,
    quick_texts,
    random_ids,
    stable_characters,
)

from manyheads.config.schema import TokenizerConfig
from manyheads.data.builtin import builtin_pairs
from manyheads.errors import UsageError
from manyheads.interop.huggingface.tokenizers import read_tokenizer
from manyheads.text import training
from manyheads.text.huggingface import HuggingFaceTokenizer
from manyheads.text.interface import Side
from manyheads.text.marian import MarianTokenizer
from manyheads.text.moses_bpe import MosesBpeTokenizer
from manyheads.text.normalize import clean
from manyheads.text.tokenizer import Tokenizer
from manyheads.text.training import train_tokenizer
from manyheads.text.words import WordTokenizer
from manyheads.web.tokenizer import describe_tokenizer

CONFIGS: dict[str, dict[str, Any]] = {
    "bpe": {"kind": "bpe"},
    "unigram": {"kind": "unigram"},
    "bpe, unknown characters": {"kind": "bpe", "coverage": 0.99},
    "unigram, unknown characters": {"kind": "unigram", "coverage": 0.99},
    "bpe, symbols": {"kind": "bpe", "symbols": ["<bt>", "<b>"], "lowercase": True, "split_digits": True},
    "unigram, symbols": {"kind": "unigram", "symbols": ["<bt>", "<b>"], "lowercase": True},
    "bpe, reserved": {"kind": "bpe", "reserved": ["<to-fr>", "<keep-1>"]},
    "bpe, white space": {"kind": "bpe", "keep_space": True},
    "unigram, white space": {"kind": "unigram", "keep_space": True, "coverage": 1.0},
    "characters": {"kind": "characters", "min_count": 3},
    "characters, white space": {"kind": "characters", "keep_space": True, "lowercase": True},
    "bytes": {"kind": "bytes"},
    "bytes, white space": {"kind": "bytes", "keep_space": True, "lowercase": True},
}


@cache
def training_texts() -> list[str]:
    pairs = [
        *builtin_pairs("de-en", "train", source="de", target="en")[:500],
        *builtin_pairs("ko-en", "train", source="ko", target="en")[:500],
    ]
    return [*map(clean, LANGUAGES), *(text for pair in pairs for text in (pair.source, pair.target))]


@contextmanager
def train_without_bytes(coverage: float) -> Iterator[None]:
    """Train subwords whose vocabulary has no bytes, and this share of the characters."""
    with (
        patch.object(training, "_MAX_SIZE_WITHOUT_BYTES", math.inf),
        patch.object(training, "_COVERAGES", (coverage, coverage)),
    ):
        yield


def train_config(config: dict[str, Any]) -> Tokenizer:
    settings = {"vocab_size": 1100, **config}
    keep_space = settings.pop("keep_space", False)
    coverage = settings.pop("coverage", None)
    with train_without_bytes(coverage) if coverage else nullcontext():
        return train_tokenizer(TokenizerConfig(**settings), training_texts(), "de+en", keep_space=keep_space)


def train_marian(model_type: str, rule: str) -> MarianTokenizer:
    """Train a Marian tokenizer with a normalisation rule, whose vocabulary lacks some pieces and adds others."""
    stream = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(training_texts()), model_writer=stream, vocab_size=900, model_type=model_type,
        normalization_rule_name=rule, minloglevel=2, num_threads=1,
        character_coverage=0.99 if rule == "identity" else 1.0,
    )  # fmt: skip
    processor = sentencepiece.SentencePieceProcessor(model_proto=stream.getvalue())
    pieces = [processor.id_to_piece(i) for i in range(3, len(processor))]
    return MarianTokenizer([*pieces[::2], ">>fra<<", "▁zzz", "zz▁z", "日本", "한"], stream.getvalue())


def marian_with_added_symbols(model_type: str) -> MarianTokenizer:
    """Return a Marian tokenizer with user-defined symbols: parts of pieces, and whole words."""
    plain = train_marian(model_type, "identity")
    processor = plain.processor
    names = [processor.id_to_piece(i) for i in range(3, len(processor))]
    added = [name[1:-1] for name in names if len(name) > 4 and name[1:-1] not in names][:20]
    model = plain.model
    for symbol in dict.fromkeys([*added, "Der", "der Hund"]).keys() - set(names):
        piece = b"\x0a" + bytes([len(symbol.encode())]) + symbol.encode() + b"\x15" + bytes(4) + b"\x18\x04"
        model += b"\x0a" + bytes([len(piece)]) + piece
    return MarianTokenizer([*names, *added], model)


def read_pretrained(folder: Path, family: str) -> HuggingFaceTokenizer:
    fast = fast_tokenizer(family)
    fast.save_pretrained(folder)
    return read_tokenizer(folder, family, rows=len(fast) + 3)  # type: ignore[arg-type]


def trained_byte_level(folder: Path) -> HuggingFaceTokenizer:
    """Train byte-level BPE whose merges begin with blanks, with a blank before the first word."""
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    bpe.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1500, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    bpe.train_from_iterator(training_texts(), trainer)
    bpe.save(str(folder / "tokenizer.json"))
    return read_tokenizer(folder, "gpt2", rows=1507)


MAKERS: dict[str, Callable[[Path], Tokenizer]] = {
    **{name: lambda _, config=config: train_config(config) for name, config in CONFIGS.items()},
    **{
        f"marian, {kind}, {rule}": lambda _, kind=kind, rule=rule: train_marian(kind, rule)
        for kind, rule in (("unigram", "nmt_nfkc"), ("bpe", "nmt_nfkc_cf"), ("unigram", "identity"))
    },
    **{
        f"marian, {kind}, added symbols": lambda _, kind=kind: marian_with_added_symbols(kind)
        for kind in ("bpe", "unigram")
    },
    **{
        family: lambda folder, family=family: read_pretrained(folder, family)
        for family in ("bert", "roberta", "gpt2")
    },
    "byte-level": trained_byte_level,
    "minilm": lambda _: read_tokenizer(minilm_folder(), "bert", rows=30_522),
}


SPECIAL_WORDS = [
    "(Don't!) can't. I'm :-) :) ;-) xD (z.B.) z. B. u.a. 10km 5$ $5 US$5 C++ o'clock 'em ma'am y'all",
    "a.m. p.m. 5a.m. 5 p.m. U.S.A. e.g.,",
    "http://a.b.com/x?y=1, (www.x.org) a@b.de foo.bar Foo.Bar x-y-z 1-2 3+4 10% #tag ...end wait...what “Ok”…",
    ":-) . . . :o ) -- --- — \n\n \t x \n y  z",
    "doesn't'doesn't. (can't) \"can't\" can't,can't ¯\\(ツ)/¯ (ツ) <3 </3 >.< ^_^ o.O",
]


@pytest.mark.parametrize(
    "language", ["en", "de+en", "ru", *(pytest.param(code, marks=pytest.mark.slow) for code in ("de", "es"))]
)
def test_words_are_segmented_as_by_spacy(browser: Browser, language: str) -> None:
    pytest.importorskip("spacy")
    tokenizer = train_tokenizer(
        TokenizerConfig(kind="words", lowercase=language == "ru"), training_texts(), language
    )
    assert isinstance(tokenizer, WordTokenizer)
    browser.call("load", "words", through_json(describe_tokenizer(tokenizer)))
    texts = [*quick_texts(), *map(joined_surrogates, HOSTILE), *SPECIAL_WORDS]
    assert first_difference(texts, [tokenizer.words(t) for t in texts], browser.call("words", "words", texts)) == ""
    encoded = tokenizer.encode(texts)
    assert first_difference(texts, encoded, browser.call("encode", "words", texts)) == ""
    assert (
        first_difference(encoded, list(map(tokenizer.decode, encoded)), browser.call("decode", "words", encoded))
        == ""
    )


def through_json(description: Any) -> Any:
    """Return the description after a round trip through JSON, as in an HTML file."""
    return json.loads(json.dumps(description))


def newer_characters(
    browser: Browser, name: str, tokenizer: HuggingFaceTokenizer, characters: Collection[str]
) -> set[str]:
    """Return marks and punctuation of Unicode 9 and newer, which the `tokenizers` library does not recognise."""
    characters = [character for character in characters if not "\ud800" <= character < "\ue000"]
    texts = [f"a{character}b" for character in characters]
    splitter, normalizer = tokenizer.processor.pre_tokenizer, tokenizer.processor.normalizer
    expected = [[word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text))] for text in texts]
    found = browser.call("words", name, texts)
    return {c for c, words, others in zip(characters, expected, found, strict=True) if words != others}


def test_bert_segments_characters_of_older_unicode_as_its_library_does(browser: Browser, tmp_path: Path) -> None:
    tokenizer = read_pretrained(tmp_path, "bert")
    browser.call("load", "bert", describe_tokenizer(tokenizer))
    newer = newer_characters(browser, "bert", tokenizer, stable_characters()[0])
    assert len(newer) < 700
    assert not {c for c in newer if c < "\u0600" or "\u3000" <= c < "\ua000" or "\uac00" <= c < "\ud800"}


@pytest.mark.parametrize("name", MAKERS)
def test_texts_ids_and_pieces_are_those_of_python(browser: Browser, tmp_path: Path, name: str) -> None:
    tokenizer = MAKERS[name](tmp_path)
    kind, size = browser.call("load", name, through_json(describe_tokenizer(tokenizer)))
    assert (kind, size) == (tokenizer.kind, tokenizer.size)
    texts = [*quick_texts(), *map(joined_surrogates, HOSTILE)]
    if isinstance(tokenizer, HuggingFaceTokenizer) and not tokenizer.byte_level:
        newer = newer_characters(browser, name, tokenizer, set().union(*texts))
        texts = ["".join(c for c in text if c not in newer) for text in texts]
    encoded = tokenizer.encode(texts)
    assert first_difference(texts, encoded, browser.call("encode", name, texts)) == ""
    seen = [i for row in encoded for i in row] or [0]
    rows = [*encoded, *random_ids(tokenizer.size, 100, seed=2, common=seen), list(range(tokenizer.size))]
    rows += random_ids(min(tokenizer.size, 270), 100, seed=3)  # special symbols and bytes
    assert first_difference(rows, [tokenizer.decode(ids) for ids in rows], browser.call("decode", name, rows)) == ""
    assert first_difference(rows, [tokenizer.pieces(ids) for ids in rows], browser.call("pieces", name, rows)) == ""
    assert "outside this vocabulary" in browser.call("outside", name, [tokenizer.size])


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("kind", ["bpe", "words", "bytes"])
def test_each_side_has_the_normal_form_of_python(browser: Browser, kind: str, side: Side) -> None:
    if kind == "words":
        pytest.importorskip("spacy")
    tokenizer = train_config({"kind": kind}).for_side(side)
    browser.call("load", "side", through_json(describe_tokenizer(tokenizer)))
    texts = [f"Hu\u00adnd\u200b ｄｅｒ\u00a0! \u202f?{text}ﬁ \u2060 １，２" for text in quick_texts()]
    encoded = tokenizer.encode(texts)
    keeps_space = (kind, side) == ("words", "target")  # as before there were sides
    assert (encoded == tokenizer.for_side("").encode(texts)) == keeps_space
    assert first_difference(texts, encoded, browser.call("encode", "side", texts)) == ""


# --- unsupported tokenizers ---


def test_words_of_moses_are_refused() -> None:
    with pytest.raises(UsageError, match=r"moses-bpe.* cannot be exported to HTML: the rules of Moses"):
        describe_tokenizer(MosesBpeTokenizer(["a"], "#version: 0.2\na b\n", "de"))


def test_words_that_need_more_than_patterns_are_refused_by_their_setting() -> None:
    pytest.importorskip("spacy")
    tokenizer = train_tokenizer(TokenizerConfig(kind="words"), training_texts()[:50], "zh")
    with pytest.raises(UsageError, match=r'tokenizer\.kind = "words" cannot be exported to HTML: .* "zh"'):
        describe_tokenizer(tokenizer)


def test_sentencepiece_models_with_other_settings_are_refused() -> None:
    for settings, reason in (
        ({"model_type": "word"}, "neither bpe nor unigram"),
        ({"treat_whitespace_as_suffix": True}, "blanks after words"),
    ):
        stream = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(training_texts()), model_writer=stream, vocab_size=900, minloglevel=2,
            num_threads=1, hard_vocab_limit=False, **settings,
        )  # fmt: skip
        with pytest.raises(UsageError, match=reason):
            describe_tokenizer(MarianTokenizer([], stream.getvalue()))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"normalizer": {"type": "NFC"}}, "its normalizer is NFC, not None"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "its pre_tokenizer is Whitespace"),
        ({"model": {"ignore_merges": True}}, "its byte-level BPE has ignore_merges"),
    ],
)  # fmt: skip
def test_byte_level_bpe_with_other_settings_is_refused(tmp_path: Path, change: Any, reason: str) -> None:
    content = json.loads(byte_pieces(["<|endoftext|>"]).to_str())
    for part, value in change.items():
        content[part] = {**(content[part] or {}), **value} if part == "model" else value
    tokenizers.Tokenizer.from_str(json.dumps(content)).save(str(tmp_path / "tokenizer.json"))
    rows = len(content["model"]["vocab"])
    with pytest.raises(UsageError, match=reason):
        describe_tokenizer(read_tokenizer(tmp_path, "gpt2", rows=rows))
