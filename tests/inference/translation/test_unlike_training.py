"""A text unlike the training sources is recognised by the surprise of its pieces."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from tests.tolerances import approx

from manyheads.config.schema import TokenizerConfig
from manyheads.data.builtin import builtin_pairs
from manyheads.inference.translation.unlike_training import SourceModel, fit_source_model
from manyheads.text.tokenizer import BOS, EOS, Tokenizer
from manyheads.text.training import train_tokenizer

OUTSIDE = [
    "asdf qwer", "lkjh poiu mnbv", "오늘 날씨가 좋네요.", "Это предложение на русском языке.",
    "The girl sees a red house.",
    "Le chat dort sur la table.", "Der Ausschuss billigte die Richtlinie über Haushaltskontrolle.", "qqq",
]  # fmt: skip


def sources(split: str, count: int) -> list[str]:
    pairs = builtin_pairs("de-en", split, source="de", target="en")
    return [pair.source for pair, _ in zip(pairs, range(count), strict=False)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=500), sources("train", 1_000), "de")


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> SourceModel:
    train, valid = tokenizer.encode(sources("train", 2_000)), tokenizer.encode(sources("valid", 250))
    return fit_source_model(train, valid, tokenizer.size)


def test_text_outside_of_the_sources_is_noticed_and_new_sentences_are_not(
    model: SourceModel, tokenizer: Tokenizer
) -> None:
    assert [
        text for text, row in zip(OUTSIDE, tokenizer.encode(OUTSIDE), strict=True) if not model.is_unlike([row])
    ] == []
    new = tokenizer.encode(sources("test", 400))
    assert sum(model.is_unlike([row]) for row in new) <= 8  # 2 %
    assert not model.is_unlike(new[:20])  # a long text is no more surprising
    assert not model.is_unlike([])


def test_probabilities_of_the_next_piece_sum_to_one(model: SourceModel) -> None:
    pieces = range(len(model.counts))
    for first in (BOS, *range(4, 60), pieces[-1]):
        assert math.fsum(model.probability(first, second) for second in pieces) == approx(1.0)
    assert model.surprise([7, 5]) == approx(
        -math.log(model.probability(BOS, 7) * model.probability(7, 5) * model.probability(5, EOS)), magnitude=20
    )


def test_the_json_form_is_the_model(model: SourceModel, tokenizer: Tokenizer) -> None:
    read = SourceModel.from_json(json.loads(json.dumps(model.to_json())), tokenizer.size)
    assert read.to_json() == model.to_json()
    rows = tokenizer.encode([*OUTSIDE, *sources("test", 20)])
    assert list(map(read.surprise, rows)) == list(map(model.surprise, rows))


@pytest.mark.parametrize(
    "damage",
    [
        None,
        {"counts": "1 2"},
        {"counts": [1, 2]},
        {"pairs": "2 4"},
        {"pairs": "2 500 1"},
        {"pairs": "2 -4 1"},
        {"pairs": "2 4 many"},
        {"mean": None},
        {"limits": [1.0]},
    ],
)
def test_a_damaged_document_is_refused(model: SourceModel, damage: Any) -> None:
    content = None if damage is None else model.to_json() | damage
    with pytest.raises(ValueError, match="no model of sources"):
        SourceModel.from_json(content, 500)


def test_runs_without_a_share_of_several_sentences_are_trusted_with_whole_lines(model: SourceModel) -> None:
    content = model.to_json()
    size = len(model.counts)
    assert not model.single_sentences
    assert SourceModel.from_json({**content, "several": 0.02}, size).single_sentences
    del content["several"]
    assert not SourceModel.from_json(content, size).single_sentences
