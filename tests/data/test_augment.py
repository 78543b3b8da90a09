"""The augmentation of a pair depends on seed, epoch and row alone, and has the given rates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.tolerances import within

from bitext.pairs import Pair
from manyheads.data.augment import (
    _CAPITALS,
    _JOINED,
    _LOWER,
    _PHRASE,
    _SMALL_FIRST,
    Augmenter,
    AugmentRates,
    Growth,
    PhraseTable,
)
from manyheads.data.store import TextStore, TokenStore

PAIRS = 997
OFF = AugmentRates().scaled(0.0)
WORDS = [Pair("Haus", "house", 9), Pair("Hund", "dog", 7)]
PHRASES = [Pair("das Haus dort", "that house over there", 3)]


def tokens(texts: list[str]) -> list[list[int]]:
    return [[len(word) for word in text.split()] for text in texts]


@pytest.fixture(scope="module")
def augmenter(tmp_path_factory: pytest.TempPathFactory) -> Augmenter:
    """Return an augmenter of pairs of 3 to 9 words; the last 97 are of a second corpus."""
    folder = tmp_path_factory.mktemp("stores")
    rows = [
        Pair(
            f"Satz {index}" + " geht" * (1 + index % 7) + ".",
            f"sentence {index}" + " goes" * (1 + index % 5) + ".",
            1,
        )
        for index in range(PAIRS)
    ]
    texts = TextStore.build(folder / "texts", [rows[:900], rows[900:]], key="", details=dict)
    store = TokenStore.build(folder / "tokens", texts, (tokens, tokens), key="")
    phrases = TextStore.build(folder / "phrases", [[*WORDS, *PHRASES]], key="", details=dict)
    lengths = np.array([1, 1, 3]), np.array([1, 1, 4])
    table = PhraseTable(phrases, 2, lengths, {"haus": "house", "hund": "dog"})
    return Augmenter(AugmentRates(), texts, store, ("de", "en"), 1, 40, table, Growth((2.0, 3.0), 1.5, (5.0, 6.0)))


def changed_texts(augmenter: Augmenter, epoch: int) -> list[tuple[str, str]]:
    plan = augmenter.plan(epoch)
    return [plan.texts(row) for row in range(PAIRS)]


def test_an_augmented_text_depends_on_seed_epoch_and_row_alone(augmenter: Augmenter) -> None:
    first = changed_texts(augmenter, 3)
    plan = augmenter.plan(3)
    assert [plan.texts(row) for row in reversed(range(PAIRS))] == first[::-1], "not on what was drawn before"
    for other in (changed_texts(augmenter, 4), changed_texts(replace(augmenter, seed=2), 3)):
        assert sum(text != changed for text, changed in zip(first, other, strict=True)) > PAIRS / 10


def test_a_row_without_a_change_keeps_its_text(augmenter: Augmenter) -> None:
    plan = augmenter.plan(0)
    flags = plan.changed(np.arange(PAIRS))
    assert 0.2 * PAIRS < sum(flags) < 0.6 * PAIRS
    assert all(plan.texts(row) == augmenter.pair(row) for row in range(PAIRS) if not flags[row])


@pytest.mark.parametrize("name", vars(OFF))
def test_each_rate_is_the_share_of_changed_pairs_and_0_changes_none(augmenter: Augmenter, name: str) -> None:
    plan = replace(augmenter, rates=replace(OFF, **{name: 0.4})).plan(0)
    share = sum(plan.changed(np.arange(PAIRS))) / PAIRS
    assert 0.35 < share < 0.45
    assert not any(replace(augmenter, rates=OFF).plan(0).changed(np.arange(PAIRS)))


def test_kinds_of_case_changes_have_their_documented_shares(augmenter: Augmenter) -> None:
    plan = replace(augmenter, rates=replace(OFF, case=0.99)).plan(0)
    shares = [float((plan.case == kind).mean()) for kind in (_CAPITALS, _LOWER, _SMALL_FIRST)]
    assert shares == within([0.1, 0.7, 0.2], 0.05)


def test_lengths_are_exact_for_phrases_and_joined_sentences(augmenter: Augmenter) -> None:
    plan = replace(augmenter, rates=replace(OFF, words=0.4, join=0.4)).plan(1)
    source, target = plan.lengths()
    assert {_PHRASE, _JOINED} <= set(plan.content.tolist())
    for row in range(PAIRS):
        texts = plan.texts(row)
        assert (source[row], target[row]) == tuple(len(text.split()) + 1 for text in texts), texts


def test_other_lengths_grow_by_the_measured_mean(augmenter: Augmenter) -> None:
    plan = replace(augmenter, rates=replace(OFF, case=0.5, copies=0.5)).plan(1)
    source, target = plan.lengths()
    row = int(np.flatnonzero((plan.case == _CAPITALS) & ~plan.copy)[0])
    assert source[row] == 2 * augmenter.store.source.lengths[row] + 1
    assert target[row] == 3 * augmenter.store.target.lengths[row] + 1
    row = int(np.flatnonzero((plan.case == 0) & plan.copy)[0])
    assert source[row] == augmenter.store.source.lengths[row] + 5 + 1


def test_paragraphs_stay_in_one_corpus_and_within_the_limit(augmenter: Augmenter) -> None:
    plan = replace(augmenter, rates=replace(OFF, join=0.9), max_length=17).plan(0)
    joined = 0
    for row in range(PAIRS):
        partners = [other for other in plan.partners[:, row].tolist() if other >= 0]
        joined += len(partners)
        assert all((other < 900) == (row < 900) for other in partners)
        assert len(plan.texts(row)[0].split()) <= 17
    assert joined > PAIRS / 2


@pytest.mark.parametrize(
    ("languages", "joints"),
    [(("deu", "cmn_Hans"), (" ", "")), (("jpn", "th"), ("", " ")), (("de", "en"), (" ", " "))],
)
def test_sentences_are_joined_as_their_language_writes_them(
    augmenter: Augmenter, languages: tuple[str, str], joints: tuple[str, str]
) -> None:
    plan = replace(augmenter, rates=replace(OFF, join=0.9), languages=languages).plan(0)
    row = next(row for row in range(PAIRS) if plan.partners[0, row] >= 0)
    rows = [row, *(other for other in plan.partners[:, row].tolist() if other >= 0)]
    sides = zip(*(augmenter.pair(other) for other in rows), strict=True)
    assert plan.texts(row) == tuple(joint.join(side) for joint, side in zip(joints, sides, strict=True))


def test_no_phrases_are_drawn_without_a_table(augmenter: Augmenter) -> None:
    plan = replace(augmenter, rates=replace(OFF, words=0.9), table=None).plan(0)
    assert not plan.content.any()
    assert plan.lengths()[0].tolist() == (augmenter.store.source.lengths + 1).tolist()
