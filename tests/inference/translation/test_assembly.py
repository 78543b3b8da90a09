"""Word alignment of artificial attention weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.test_interface import KINDS, TOKENIZERS

from manyheads.config.schema import SearchConfig, TokenizerConfig
from manyheads.inference.translation.assembly import (
    Assembler,
    pharaoh,
    word_alignment,
    word_numbers,
)
from manyheads.inference.translation.match_source import MatchSource
from manyheads.inference.translation.options import plain_search
from manyheads.inference.translation.parts import Line
from manyheads.inference.translation.result import Translation
from manyheads.inference.translation.stages import Draft, Part, Request, Stage
from manyheads.search.interface import Hypothesis
from manyheads.search.options import SearchOptions
from manyheads.text.tokenizer import TokenizerPair
from manyheads.text.training import train_tokenizers

PLAIN = plain_search(SearchConfig())


def translation_of(
    tokenizers: TokenizerPair,
    line: Line,
    outputs: Sequence[Hypothesis],
    stages: Sequence[type[Stage]] = (),
    options: SearchOptions = PLAIN,
    *,
    longest: int = 99,
    **others: Any,
) -> Translation:
    """Return the translation from the best output of each part of a line, with some stages."""
    config = SimpleNamespace(data=SimpleNamespace(source="de", target="en"))
    translator: Any = SimpleNamespace(tokenizers=tokenizers, config=config, **others)
    parts = [Part(ids, outputs=[output]) for ids, output in zip(line.parts, outputs, strict=True)]
    made = [stage(translator, Request("translate", [line.text], options)) for stage in stages]
    return Assembler(tokenizers, options, longest, made).translation(Draft(0, line, options, tuple(parts)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["der Hund läuft", "Hunde", "a ☃ b c", ""])
def test_the_tokens_of_a_word_decode_to_the_word(kind, text) -> None:
    tokenizer = TOKENIZERS[kind]
    (ids,) = tokenizer.encode([text])
    numbers = word_numbers(tokenizer, ids)
    assert len(numbers) == len(ids)
    for number, word in enumerate(tokenizer.decode(ids).split()):
        own = [token for token, belongs in zip(ids, numbers, strict=True) if belongs == number]
        assert tokenizer.decode(own).strip() == word


def test_a_mark_that_the_source_lacks_leaves_the_text_and_the_alignment() -> None:
    texts = ["ein Hund . ein Tier ?"]
    config = TokenizerConfig.model_validate({"kind": "words", "min_count": 1})
    tokenizers = train_tokenizers(config, texts, texts, "de", "en")
    line = Line("ein Hund ein Tier?", [(0, 8), (9, 18)], tokenizers.source.encode(["ein Hund", "ein Tier ?"]))
    outputs = []
    for ids in tokenizers.target.encode(["Hund ein .", "Tier ."]):
        attention = tuple(tuple(float(row == column) for column in range(4)) for row in range(len(ids)))
        outputs.append(Hypothesis(tuple(ids), 0.0, 0.0, (), True, attention=attention))
    options = replace(plain_search(SearchConfig()), alignment=True)
    found = {}
    for matches in (False, True):
        own = replace(options, match_source=matches)
        found[matches] = translation_of(tokenizers, line, outputs, [MatchSource], own)
    assert (found[False].translation, found[False].alignment) == ("Hund ein . Tier .", "0-0 1-1 0-2 2-3 3-4")
    assert (found[True].translation, found[True].alignment) == ("Hund ein Tier?", "0-0 1-1 2-2")


@pytest.mark.parametrize("kind", ["bpe", "words", "characters"])
@pytest.mark.parametrize(
    ("source", "links"),
    [
        ("der Hund läuft", "0-0 1-1 2-2"),
        ("\u00ad der \u2060\u200e Hu\u00adnd \u200b läuft \u00ad", "1-0 3-1 5-2"),
        ("ｄｅｒ　Hund\u00a0läuft", "0-0 1-1 2-2"),
    ],
)
def test_links_name_the_words_of_the_text_as_it_was_given(kind, source, links) -> None:
    texts = ["der Hund läuft"]
    config = TokenizerConfig.model_validate({"kind": kind, "vocab_size": 280} if kind == "bpe" else {"kind": kind})
    pair = train_tokenizers(config, texts, texts, "de", "en")
    tokenizers = TokenizerPair(pair.source.for_side("source"), pair.target.for_side("target"), joint=pair.joint)
    (ids,), (plain,) = tokenizers.source.encode([source]), tokenizers.source.encode(texts)
    assert ids == plain
    attention = tuple(tuple(float(row == column) for column in range(len(ids) + 1)) for row in range(len(ids)))
    output = Hypothesis(tuple(ids), 0.0, 0.0, (), True, attention=attention)
    options = replace(plain_search(SearchConfig()), alignment=True)
    line = Line(source, [(0, len(source))], [ids])
    found = translation_of(tokenizers, line, [output], [], options)
    assert (found.source, found.translation, found.alignment) == (source, texts[0], links)


def test_the_bytes_of_a_blank_are_not_a_word() -> None:
    """Use U+3000, a blank whose first byte alone is a letter, because untrained models generate any bytes."""
    tokenizer = TOKENIZERS["bpe"]
    pieces = tokenizer.pieces(range(tokenizer.size))
    blank = [pieces.index(f"<0x{byte:02X}>") for byte in "\u3000".encode()]
    ids = [*tokenizer.encode(["der"])[0], pieces.index("▁"), *blank]
    assert tokenizer.decode(ids).split() == ["der"]
    assert set(word_numbers(tokenizer, ids)) == {0}
    assert word_numbers(tokenizer, blank) == [0, 0, 0]


@settings(max_examples=100)
@given(st.data())
def test_an_artificial_alignment_is_recovered(data) -> None:
    """Let each target word attend to one source word, with its weight spread over the tokens of both, and noise."""
    source_sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=6))
    target_sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=6))
    expected = [data.draw(st.integers(0, len(source_sizes) - 1)) for _ in target_sizes]
    source = [word for word, size in enumerate(source_sizes) for _ in range(size)]
    target = [word for word, size in enumerate(target_sizes) for _ in range(size)]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    attention = rng.random((len(target) + 1, len(source) + 1)) * 0.3 / len(source)
    attention[:, -1] = 0.9  # the end mark gets most weight, and is ignored
    attention[-1] = 5.0  # the row of the end mark is ignored
    for row, word in enumerate(target):
        columns = [column for column, place in enumerate(source) if place == expected[word]]
        attention[row, columns] += 0.6 / len(columns)
    assert word_alignment(attention.tolist(), source, target) == [
        (word, number) for number, word in enumerate(expected)
    ]


def test_the_weights_of_subwords_are_summed() -> None:
    """Let the sum of the two tokens of a word exceed the weight of another word."""
    attention = [[0.3, 0.3, 0.4, 0.0]]
    assert word_alignment(attention, [0, 0, 1], [0]) == [(0, 0)]
    assert word_alignment(attention, [0, 1, 2], [0]) == [(2, 0)]
    both = [[0.6, 0.4, 0.0], [0.1, 0.9, 0.0]]
    assert word_alignment(both, [0, 1], [0, 0]) == [(1, 0)]
    assert word_alignment(both, [0, 1], [0, 1]) == [(0, 0), (1, 1)]


def test_the_first_of_equal_weights_is_linked() -> None:
    assert word_alignment([[0.25, 0.25000001, 0.25, 0.25]], [0, 1, 2], [0]) == [(0, 0)]


def test_empty_texts_have_no_links() -> None:
    assert word_alignment([], [0], []) == []
    assert word_alignment([[1.0]], [], [0]) == []


def test_links_are_written_as_pairs() -> None:
    assert pharaoh([(0, 0), (3, 1)]) == "0-0 3-1"
    assert pharaoh([]) == ""
