"""Each kind of tokenizer and the sentence splitter, on the lines of the shared data and 10,000 random strings.

Every 100th line is used; MANYHEADS_TESTS_EVERY_LINE=1 uses all lines, which takes about 45 minutes of one core.
Before a merge, tests/web/test_tokenizer.py and the files beside this one use some hundred texts.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import pytest
from tests.web.test_tokenizer import (
    MAKERS,
    newer_characters,
    through_json,
    train_marian,
    train_without_bytes,
)
from tests.web.text.browser import LITERALS, Browser, first_difference, random_texts

from manyheads.config.schema import TokenizerConfig
from manyheads.inference.translation.literals import spans_to_translate
from manyheads.inference.translation.parts import Splitter, _sentence_case
from manyheads.text.characters import ByteTokenizer
from manyheads.text.huggingface import HuggingFaceTokenizer
from manyheads.text.interface import lower
from manyheads.text.normalize import normalize, unify
from manyheads.text.sentences import sentence_spans
from manyheads.text.tokenizer import Tokenizer
from manyheads.text.training import train_tokenizer
from manyheads.web.tokenizer import describe_tokenizer

SHARED = Path(__file__).parents[4] / "shared" / "data"
BATCH = 2_000

pytestmark = [
    pytest.mark.slow,
    pytest.mark.weekly,
    pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data"),
]


def batches(texts: list[str]) -> Iterator[list[str]]:
    return (texts[start : start + BATCH] for start in range(0, len(texts), BATCH))


def lines_of(folder: str, pattern: str) -> list[str]:
    paths = sorted((SHARED / folder).glob(pattern))
    return [line for path in paths for line in gzip.decompress(path.read_bytes()).decode().split("\n")]


@cache
def all_texts() -> list[str]:
    lines = lines_of(".", "*/*.gz")
    assert len(lines) > 500_000
    if not os.environ.get("MANYHEADS_TESTS_EVERY_LINE"):
        lines = lines[::100]
    return list(dict.fromkeys([*lines, *random_texts(10_000, seed=7)]))


TRAINING = {
    "de-en": ("multi30k", "train.??.gz"),
    "ko-en": ("tatoeba-ko-en", "train.??.gz"),
    "ja": ("small-parallel-enja", "train.??.gz"),
}
KINDS: dict[str, tuple[str, dict[str, object]]] = {
    "bpe": ("de-en", {"kind": "bpe"}),
    "unigram": ("de-en", {"kind": "unigram"}),
    "Korean bpe": ("ko-en", {"kind": "bpe"}),
    "Korean unigram": ("ko-en", {"kind": "unigram", "coverage": 1.0, "vocab_size": 5000}),
    "Japanese bpe": ("ja", {"kind": "bpe", "coverage": 0.9995}),
    "Japanese unigram": ("ja", {"kind": "unigram"}),
    "bpe, white space": ("de-en", {"kind": "bpe", "symbols": ["<bt>"]}),
    "unigram, lower case": ("de-en", {"kind": "unigram", "lowercase": True, "symbols": ["<bt>"]}),
    "characters": ("de-en", {"kind": "characters"}),
    "bytes": ("de-en", {"kind": "bytes"}),
    "words": ("de-en", {"kind": "words", "min_count": 2}),
}
OTHERS = ["marian", "bert", "roberta", "byte-level", "minilm"]


def make_tokenizer(name: str, folder: Path) -> Tokenizer:
    if name in KINDS:
        data, settings = KINDS[name]
        texts = lines_of(*TRAINING[data])
        coverage = settings.get("coverage")
        chosen = {"vocab_size": 6000, **settings}
        chosen.pop("coverage", None)
        config = TokenizerConfig(**chosen)
        with train_without_bytes(coverage) if isinstance(coverage, float) else nullcontext():
            return train_tokenizer(config, texts, data, keep_space="white space" in name)
    if name == "marian":
        return train_marian("unigram", "nmt_nfkc")
    return MAKERS[name](folder)


@pytest.mark.parametrize("name", [*KINDS, *OTHERS])
def test_every_line_has_the_ids_pieces_and_text_of_python(browser: Browser, tmp_path: Path, name: str) -> None:
    tokenizer = make_tokenizer(name, tmp_path)
    browser.call("load", name, through_json(describe_tokenizer(tokenizer)))
    texts = all_texts()
    if isinstance(tokenizer, HuggingFaceTokenizer) and not tokenizer.byte_level:
        newer = newer_characters(browser, name, tokenizer, set().union(*texts))
        table = str.maketrans(dict.fromkeys(newer, ""))
        texts = [text.translate(table) for text in texts]
    for batch in batches(texts):
        encoded = tokenizer.encode(batch)
        assert first_difference(batch, encoded, browser.call("encode", name, batch)) == ""
        decoded = [tokenizer.decode(ids) for ids in encoded]
        assert first_difference(encoded, decoded, browser.call("decode", name, encoded)) == ""


@pytest.mark.parametrize("language", ["de", "en", "ko"])
def test_every_line_is_normalised_and_split_as_by_python(browser: Browser, language: str) -> None:
    tokenizer = ByteTokenizer(lowercase=False)
    browser.call("load", "bytes", describe_tokenizer(tokenizer))
    splitter = Splitter(tokenizer, language, "auto", 150, 100, copy_literals=True, lower_capitals=True)
    options = {"tokenizer": "bytes", "language": language, "split": "auto", "trainedLength": 150, "longest": 100,
               "literals": LITERALS, "lowerCapitals": True}  # fmt: skip
    for batch in batches(all_texts()):
        normalized = [[normalize(text), unify(text), lower(text)] for text in batch]
        assert first_difference(batch, normalized, browser.call("normalized", batch)) == ""
        split = [[[*map(list, sentence_spans(text, language))], _sentence_case(text, language)] for text in batch]
        assert first_difference(batch, split, browser.call("sentences", batch, language)) == ""
        literals = [[*map(list, spans_to_translate(text))] for text in batch]
        assert first_difference(batch, literals, browser.call("literals", LITERALS, batch)) == ""
        lines = [[list(map(list, line.spans)), line.parts, line.cut_sentences] for line in splitter.lines(batch)]
        found = browser.call("lines", options, batch)
        others = [[line["spans"], line["rows"], line["cutSentences"]] for line in found]
        assert first_difference(batch, lines, others) == ""
