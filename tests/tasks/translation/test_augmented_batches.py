"""Training with data.augment: bit-identical after an interruption, for any batch and any number of processes."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.runs.parts import make_config, write_corpus
from tests.training.parts import CollectingListener
from tests.training.test_preparation import all_batches, equal_batches, texts, tokenizers_of, updates

from manyheads.checkpoint import RunDirectory
from manyheads.config.schema import Config
from manyheads.data import augment_phrases
from manyheads.data.augment import AugmentRates
from manyheads.errors import UsageError
from manyheads.tasks.translation import augmented_batches as module
from manyheads.text.reserved import PLACEHOLDERS, TERM_SYMBOLS
from manyheads.text.tokenizer import EOS, PAD, UNK
from manyheads.training.distributed import World

STRONG = AugmentRates(case=0.3, end_mark=0.3, typos=0.3, copies=0.3, words=0.3, join=0.3, placeholders=0.3)
OFF = STRONG.scaled(0.0)
BYTES = {"vocab_size": 330}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(autouse=True)
def common_words_and_high_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(augment_phrases, "_LEAST_COUNT", 2)
    monkeypatch.setattr(augment_phrases, "_MOST_FREQUENT", 1)
    monkeypatch.setattr(module, "_RATES", STRONG)


def config_of(corpus: Path, **sections: dict[str, Any]) -> Config:
    sections["tokenizer"] = BYTES | sections.get("tokenizer", {})
    return make_config(corpus, **sections | {"data": {"augment": 1.0, "terms": 0.5} | sections.get("data", {})})


@pytest.mark.parametrize("sampling", [0.0, 0.3])
def test_an_update_is_a_function_of_seed_epoch_and_position(corpus: Path, tmp_path: Path, sampling: float) -> None:
    config = config_of(corpus, tokenizer={"sampling": sampling})
    first, second = updates(config, tmp_path / "a"), updates(config, tmp_path / "b")
    all_batches(second, 7)
    assert equal_batches(all_batches(first, 2), all_batches(second, 2))
    assert texts(first, all_batches(first, 2)) != texts(first, all_batches(first, 3)), (
        "each epoch has changes of its own"
    )


def test_the_rows_of_an_epoch_are_the_same_for_any_batch(corpus: Path, tmp_path: Path) -> None:
    small = updates(config_of(corpus), tmp_path / "a")
    large = updates(config_of(corpus, training={"batch_tokens": 400}), tmp_path / "b")
    assert len(small.epoch(1)) > len(large.epoch(1))
    assert texts(small, all_batches(small, 1)) == texts(large, all_batches(large, 1))


def test_two_processes_share_the_updates_of_one(corpus: Path, tmp_path: Path) -> None:
    config = config_of(corpus)
    alone = updates(config, tmp_path / "a")
    both = [updates(config, tmp_path / "b", World(rank, 2)) for rank in range(2)]
    for position, pairs in enumerate(alone.epoch(2)):
        parts = [own.batches(2, position, pairs) for own in both]
        assert [pairs.tolist()] * 2 == [own.epoch(2)[position].tolist() for own in both]
        mine = texts(alone, [alone.batches(2, position, pairs)])
        rows = [row for row in texts(alone, [[*chain.from_iterable(parts)]]) if row != ("", "")]
        assert rows == [row for row in mine if row != ("", "")]


def test_rates_of_0_make_the_batches_of_a_training_without_augmentation(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RATES", OFF)
    plain = updates(make_config(corpus, tokenizer=BYTES), tmp_path / "a")
    off = updates(config_of(corpus, data={"terms": 0.0}), tmp_path / "b")
    assert type(plain.maker) is not type(off.maker)
    for epoch in (0, 5):
        assert equal_batches(all_batches(plain, epoch), all_batches(off, epoch))
    assert not (tmp_path / "a" / "cache" / "phrases").exists()


def test_no_row_is_longer_than_the_limit_or_holds_an_unknown_symbol(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without bytes in the vocabulary, no emoji is added to pairs."""
    monkeypatch.setattr(module, "_RATES", replace(STRONG, copies=0.9))
    tokenizer = {"vocab_size": 70}
    config = config_of(corpus, tokenizer=tokenizer, data={"max_length": 17})
    found = updates(config, tmp_path)
    for epoch in range(3):
        for batch in chain.from_iterable(all_batches(found, epoch)):
            for side in (batch.source, batch.target_out):
                assert not (side == UNK).any()
                assert ((side != PAD) & (side != EOS)).sum(1).max() <= 17


def test_emoji_and_addresses_are_added_with_bytes(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RATES", replace(OFF, copies=0.9))
    found = updates(config_of(corpus), tmp_path)
    rows = [row for epoch in range(20) for row in texts(found, all_batches(found, epoch))]
    assert any("http" in source and "http" in target for source, target in rows)
    assert any(max(source, default="") > "\U0001f300" and max(source) in target for source, target in rows)


def test_the_planned_lengths_are_near_those_of_the_batches(corpus: Path, tmp_path: Path) -> None:
    found = updates(config_of(corpus), tmp_path)
    for epoch in range(3):
        planned = sum(int(side.sum()) for side in found.maker.epoch(epoch).lengths)
        made = sum(
            batch.source_tokens + batch.target_tokens for batch in chain.from_iterable(all_batches(found, epoch))
        )
        assert 0.7 < made / planned < 1.4


def test_phrases_are_mined_once_for_a_text(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = updates(config_of(corpus), tmp_path)
    monkeypatch.delattr(module, "mine_phrases")
    again = updates(config_of(corpus), tmp_path)
    assert "hund" in again.maker.augmenter.translations
    with pytest.raises(NameError, match="mine_phrases"):
        updates(make_config(corpus, tokenizer=BYTES, data={"augment": 1.0, "limit": 30}), tmp_path)
    assert tokenizers_of(first).joint


def test_word_pairs_are_added_as_separate_lines(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RATES", replace(OFF, words=0.9))
    found = updates(config_of(corpus), tmp_path)
    rows = set(chain.from_iterable(texts(found, all_batches(found, epoch)) for epoch in range(5)))
    assert ("Hund", "dog") in rows
    assert np.mean([len(source.split()) for source, _ in rows]) < 3


@pytest.mark.parametrize("augment", [None, 1.0])
def test_hints_stand_between_reserved_symbols_in_a_share_of_the_sources(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, augment: float | None
) -> None:
    monkeypatch.setattr(module, "_RATES", OFF)
    found = updates(config_of(corpus, data={"augment": augment}), tmp_path)
    start, end = (tokenizers_of(found).source.reserved[symbol] for symbol in TERM_SYMBOLS)
    batches = [*chain.from_iterable(all_batches(found, 0))]
    sources = [row for batch in batches for row in batch.source.tolist()]
    hinted = [row for row in sources if start in row]
    assert 0.2 < len(hinted) / len(sources) < 0.6
    assert all(row.count(start) == row.count(end) <= 3 and row.index(start) + 1 < row.index(end) for row in hinted)
    assert not any((batch.target_out == start).any() for batch in batches)


def test_placeholders_are_the_same_on_both_sides_of_a_share_of_the_pairs(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RATES", replace(OFF, placeholders=0.5))
    found = updates(config_of(corpus, data={"terms": 0.0}, search={"copy_literals": True}), tmp_path)
    symbols = {tokenizers_of(found).source.reserved[symbol] for symbol in PLACEHOLDERS}
    rows = [
        [sorted(symbols.intersection(side)) for side in pair]
        for batch in chain.from_iterable(chain.from_iterable(all_batches(found, epoch) for epoch in range(9)))
        for pair in zip(batch.source.tolist(), batch.target_out.tolist(), strict=True)
    ]
    assert all(source == target for source, target in rows)
    assert 0.3 < sum(bool(source) for source, _ in rows) / len(rows) < 0.7
    assert {*chain.from_iterable(source for source, _ in rows)} == symbols


def test_a_vocabulary_without_the_symbols_gets_no_placeholders(corpus: Path, tmp_path: Path) -> None:
    found = updates(config_of(corpus), tmp_path)
    assert found.maker.augmenter.rates.placeholders == 0
    assert not any(symbol in tokenizers_of(found).source.reserved for symbol in PLACEHOLDERS)


def test_hints_need_a_vocabulary_with_their_symbols(corpus: Path, tmp_path: Path) -> None:
    own = updates(config_of(corpus, data={"terms": 0.0}), tmp_path)
    with pytest.raises(UsageError, match="no symbol <term>"):
        module.augmented_batches(
            config_of(corpus), RunDirectory(tmp_path), (own.maker.texts, own.maker.store), own.maker.tokenizers,
            CollectingListener(),
        )  # fmt: skip
