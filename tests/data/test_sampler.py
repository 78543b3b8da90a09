"""The sampler: the pairs of each update."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.tolerances import within

from manyheads.data import sampler as module
from manyheads.data.sampler import Sampler

Lengths = NDArray[np.int64]
lengths = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=120)


def arrays(pairs: Sequence[tuple[int, int]]) -> tuple[Lengths, Lengths]:
    both = np.array(pairs, dtype=np.int64)
    return both[:, 0], both[:, 1]


def like_sentences(count: int, seed: int = 3) -> tuple[Lengths, Lengths]:
    """Return lengths as in a caption corpus: about 15 tokens, similar but not equal on the two sides."""
    rng = np.random.default_rng(seed)
    source = rng.gamma(9.0, 1.6, count).astype(np.int64) + 3
    return source, np.maximum(2, source + rng.integers(-4, 5, count))


def to_lists(batches: Sequence[Lengths]) -> list[list[int]]:
    return [batch.tolist() for batch in batches]


@settings(max_examples=40)
@given(lengths, st.integers(1, 200), st.one_of(st.none(), st.integers(1, 30)), st.integers(0, 5))
def test_every_pair_is_in_exactly_one_update_of_an_epoch(
    pairs: list[tuple[int, int]], tokens: int, sentences: int | None, epoch: int
) -> None:
    sampler = Sampler(*arrays(pairs), batch_tokens=tokens, batch_sentences=sentences, seed=2)
    batches = sampler.epoch(epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(pairs)))
    assert all(len(batch) for batch in batches)


@settings(max_examples=40)
@given(lengths, st.integers(1, 200))
def test_every_epoch_has_the_same_number_of_updates(pairs: list[tuple[int, int]], tokens: int) -> None:
    sampler = Sampler(*arrays(pairs), batch_tokens=tokens)
    assert len({len(sampler.epoch(epoch)) for epoch in range(4)}) == 1


@settings(max_examples=40)
@given(lengths, st.integers(1, 200))
def test_an_update_exceeds_the_budget_by_less_than_the_longest_pair(
    pairs: list[tuple[int, int]], tokens: int
) -> None:
    source, target = arrays(pairs)
    for batch in Sampler(source, target, batch_tokens=tokens).epoch(0):
        assert len(batch) == 1 or int(target[batch].sum()) < tokens + int(target.max())


def test_the_budget_counts_target_tokens_and_all_updates_are_nearly_equal() -> None:
    source, target = like_sentences(5_000)
    weights = [3 * int(target[batch].sum()) for batch in Sampler(source, 3 * target, batch_tokens=3_000).epoch(0)]
    assert len(weights) == -(-int(3 * target.sum()) // 3_000)
    assert min(weights) > 0.95 * 3_000
    assert max(weights) < 1.03 * 3_000


def test_a_budget_in_pairs_is_met_exactly() -> None:
    source, target = like_sentences(1_003)
    sizes = [len(batch) for batch in Sampler(source, target, batch_tokens=7, batch_sentences=16).epoch(0)]
    assert len(sizes) == 63
    assert set(sizes) <= {15, 16}


def test_an_epoch_depends_on_seed_and_number_alone() -> None:
    def epoch(number: int, seed: int) -> list[list[int]]:
        return to_lists(Sampler(*like_sentences(300), batch_tokens=200, seed=seed).epoch(number))

    used_sampler = Sampler(*like_sentences(300), batch_tokens=200, seed=5)
    for number in (3, 0, 1):
        used_sampler.epoch(number)
    np.random.default_rng(0).random(17)
    assert epoch(2, 5) == to_lists(used_sampler.epoch(2)) == epoch(2, 5)
    different = [epoch(0, 5), epoch(1, 5), epoch(2, 5), epoch(0, 6), epoch(1, 6)]
    assert all(plan != other for index, plan in enumerate(different) for other in different[:index])


def test_the_pairs_that_share_an_update_change_from_epoch_to_epoch() -> None:
    sampler = Sampler(*like_sentences(3_000), batch_tokens=400)
    first, second = ({frozenset(batch) for batch in to_lists(sampler.epoch(number))} for number in (0, 1))
    assert len(first & second) < 0.1 * len(first)


def test_short_and_long_updates_come_mixed() -> None:
    source, target = like_sentences(3_000)
    means = [float(target[batch].mean()) for batch in Sampler(source, target, batch_tokens=500).epoch(0)]
    half = len(means) // 2
    assert abs(np.mean(means[:half]) - np.mean(means[half:])) < 0.15 * np.mean(means)
    assert abs(np.corrcoef(np.arange(len(means)), means)[0, 1]) < 0.3


def test_the_order_of_short_and_long_updates_differs_between_epochs() -> None:
    source, target = like_sentences(3_000)
    sampler = Sampler(source, target, batch_tokens=500)
    first, second = ([float(target[batch].mean()) for batch in sampler.epoch(number)] for number in (0, 1))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.3


def test_a_giant_pair_is_an_update_of_its_own() -> None:
    source, target = np.full(50, 5), np.full(50, 5)
    source[17] = target[17] = 4_000
    batches = Sampler(source, target, batch_tokens=100).epoch(0)
    assert sorted(np.concatenate(batches).tolist()) == list(range(50))
    (giant,) = [batch for batch in batches if 17 in batch]
    assert giant.tolist() == [17]


def padding_share(source: Lengths, target: Lengths, batches: Sequence[Lengths]) -> float:
    """Return the share of padding in the source and target tensors together."""
    padded = sum(len(batch) * int(side[batch].max()) for batch in batches for side in (source, target))
    return 1 - int(source.sum() + target.sum()) / padded


def test_padding_is_low_on_both_sides_of_unequal_lengths() -> None:
    source, target = like_sentences(12_000)
    batches = Sampler(source, target, batch_tokens=2_048).epoch(0)
    shuffled = np.array_split(np.random.default_rng(1).permutation(12_000), len(batches))
    assert padding_share(source, target, batches) < 0.09
    assert padding_share(source, target, list(shuffled)) > 0.4


# --- large corpora and sampling rates ---


@settings(max_examples=40)
@given(lengths, st.integers(1, 200), st.integers(1, 50))
def test_a_corpus_planned_in_sections_has_the_same_number_of_updates_and_every_pair_once(
    pairs: list[tuple[int, int]], tokens: int, section: int
) -> None:
    whole = Sampler(*arrays(pairs), batch_tokens=tokens).epoch(3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SECTION", section)
        plan = Sampler(*arrays(pairs), batch_tokens=tokens).epoch(3)
        assert len(list(plan)) == len(plan) == len(whole)
        assert sorted(np.concatenate(list(plan)).tolist()) == list(range(len(pairs)))
        assert all(len(update) for update in plan)
        assert to_lists(plan[2:7]) == to_lists(list(plan)[2:7])
    with pytest.raises(IndexError):
        plan[len(plan)]


def test_sections_add_little_padding_and_are_made_on_demand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, target = like_sentences(12_000)
    whole = padding_share(source, target, Sampler(source, target, batch_tokens=1_024).epoch(0))
    monkeypatch.setattr(module, "_SECTION", 4_000)
    made: list[int] = []
    make = module.EpochPlan.make_section

    def record_section(plan: module.EpochPlan, which: int) -> list[Lengths]:
        made.append(which)
        return make(plan, which)

    monkeypatch.setattr(module.EpochPlan, "make_section", record_section)
    plan = Sampler(source, target, batch_tokens=1_024).epoch(0)
    middle = len(plan) // 2
    assert len(plan[middle]) > 0
    assert made == [1]
    assert padding_share(source, target, plan) < whole + 0.03
    assert made == [1, 0, 2], "each once"


def test_pairs_are_drawn_as_often_as_their_rate() -> None:
    source, target = like_sentences(1_000)
    rates = np.repeat([0.0, 0.25, 1.0, 2.5], 250)
    sampler = Sampler(source, target, batch_tokens=300, rates=rates)
    counts = np.zeros((40, 1_000), dtype=np.int64)
    weights: list[int] = []
    for number in range(40):
        plan = sampler.epoch(number)
        assert len(plan) == sampler.number
        np.add.at(counts[number], np.concatenate(list(plan)), 1)
        weights += [int(target[update].sum()) for update in plan]
    assert np.mean(weights) == within(300, 9), "the budget"
    assert set(np.unique(counts[:, :250])) == {0}
    assert set(np.unique(counts[:, 250:500])) == {0, 1}
    assert set(np.unique(counts[:, 500:750])) == {1}
    assert set(np.unique(counts[:, 750:])) == {2, 3}
    assert counts[:, 250:500].mean() == within(0.25, 0.03)
    assert counts[:, 750:].mean() == within(2.5, 0.03)
    assert counts[:, 250:500].sum(0).min() > 0, "each epoch draws other pairs"


def test_no_update_is_empty_if_an_epoch_draws_few_pairs() -> None:
    source, target = like_sentences(500)
    sampler = Sampler(source, target, batch_tokens=1, rates=np.full(500, 0.5))
    for number in range(20):
        assert all(len(update) for update in sampler.epoch(number))


def test_an_epoch_has_at_least_one_pair_at_low_rates() -> None:
    sampler = Sampler(*like_sentences(7), batch_tokens=300, rates=np.array([0.0, 0.01, 0.01, 0.02, 0.01, 0.0, 0.0]))
    plans = [sampler.epoch(number) for number in range(50)]
    assert all(len(plan) == 1 and len(plan[0]) for plan in plans)
    assert {0, 5, 6}.isdisjoint(np.concatenate([plan[0] for plan in plans]))


@pytest.mark.parametrize("seed", range(5))
def test_the_heaviest_update_is_the_one_with_the_most_positions(seed: int) -> None:
    """The lengths of the two sides are independent."""
    source, target = like_sentences(2_000)
    source = np.random.default_rng(seed).permutation(source)
    plan = Sampler(source, target, batch_tokens=500).epoch(0)
    positions = [len(update) * int(source[update].max() + target[update].max()) for update in plan]
    assert positions[plan.heaviest()] == max(positions)
