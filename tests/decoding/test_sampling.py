"""Sampling: outputs occur with their exact probabilities, and each sample is independent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.search.tables import EOS, FORBIDDEN, Prefix, Table, TableStepper, assert_independent, parameters

from manyheads.decoding.greedy import greedy_search
from manyheads.decoding.sampling import sample
from manyheads.errors import UsageError
from manyheads.search.interface import Hypothesis
from manyheads.search.options import Sampling


def draw_samples(
    tables: list[Table], keys: list[int], sampling: Sampling, draws: int, limit: int
) -> list[list[Hypothesis]]:
    return sample(
        TableStepper(tables),
        [(key,) for key in keys],
        *parameters([limit] * len(tables), n_best=draws, sampling=sampling),
    )


def distribution(table: Table, prefix: Prefix, sampling: Sampling) -> dict[int, float]:
    """Return the possible next tokens and their probabilities, computed with lists."""
    row = table.log_probs(prefix).double().tolist()
    weights = {
        token: math.exp(value / sampling.temperature) for token, value in enumerate(row) if token not in FORBIDDEN
    }
    ranked = sorted(weights, key=lambda token: (-weights[token], token))[: sampling.top_k or None]
    total = sum(weights[token] for token in ranked)
    kept: list[int] = []
    for token in ranked:
        if sum(weights[earlier] for earlier in kept) < sampling.top_p * total:
            kept.append(token)
    total = sum(weights[token] for token in kept)
    return {token: weights[token] / total for token in kept}


def exact_probabilities(
    table: Table, limit: int, sampling: Sampling
) -> Iterator[tuple[tuple[Prefix, bool], float]]:
    """Yield every output and its probability."""
    stack: list[tuple[Prefix, float]] = [((), 1.0)]
    while stack:
        prefix, probability = stack.pop()
        for token, share in distribution(table, prefix, sampling).items():
            if token == EOS:
                yield (prefix, True), probability * share
            elif len(prefix) == limit:
                yield (prefix, False), probability * share
            else:
                stack.append(((*prefix, token), probability * share))


def chi_square_bound(freedom: int) -> float:
    """Return the chi-square quantile exceeded once in 10 ** 9 times (Wilson and Hilferty 1931)."""
    part = 2 / (9 * freedom)
    return freedom * (1 - part + 6.0 * math.sqrt(part)) ** 3


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(),
        Sampling(temperature=0.5),
        Sampling(temperature=1.7),
        Sampling(top_k=2),
        Sampling(top_p=0.7),
        Sampling(temperature=1.3, top_k=4, top_p=0.8),
    ],
    ids=str,
)
def test_outputs_occur_with_their_exact_probabilities(sampling) -> None:
    draws, table = 4_000, Table(5, size=7, end_bias=0.5, sharpness=1.0)
    expected: Counter[tuple[Prefix, bool]] = Counter()
    for output, probability in exact_probabilities(table, 2, sampling):
        expected[output] += probability
    assert sum(expected.values()) == pytest.approx(1.0)
    (outputs,) = draw_samples([table], [0], sampling, draws, 2)
    counts = Counter((output.tokens, output.ended) for output in outputs)
    assert set(counts) <= set(expected), "no output occurs that the options rule out"
    common = [output for output, probability in expected.items() if probability * draws >= 5]
    rare = draws * (1 - sum(expected[output] for output in common))
    terms = [(counts[output] - draws * expected[output]) ** 2 / (draws * expected[output]) for output in common]
    if rare >= 5:
        terms.append((draws - sum(counts[output] for output in common) - rare) ** 2 / rare)
    assert len(terms) >= 4
    assert sum(terms) < chi_square_bound(len(terms) - 1)


@settings(max_examples=50)
@given(
    sentences=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    draws=st.integers(1, 3),
    seed=st.integers(0, 3),
    top_k=st.sampled_from([0, 3]),
    top_p=st.sampled_from([1.0, 0.6]),
    impossible=st.sampled_from([0.0, 0.5]),
)
def test_a_sample_does_not_depend_on_other_sentences_or_their_order(
    sentences, draws, seed, top_k, top_p, impossible
) -> None:
    sampling = Sampling(temperature=1.5, top_k=top_k, top_p=top_p, seed=seed)

    def search(keys: Sequence[int], draws: int = draws) -> list[list[Hypothesis]]:
        tables = [Table(key, size=9, end_bias=-1.0, impossible=impossible) for key in keys]
        return draw_samples(tables, list(keys), sampling, draws, 6)

    for key, result in zip(sentences, assert_independent(search, sentences), strict=True):
        assert search([key], draws=1) == [result[:1]], "more draws do not change the first"


def test_samples_differ_between_seeds_sources_and_draws() -> None:
    tables = [Table(1, size=9, end_bias=-3.0)] * 2
    first, other = draw_samples(tables, [0, 1], Sampling(seed=1), 4, 9)
    again, _ = draw_samples(tables, [0, 1], Sampling(seed=2), 4, 9)
    outputs = [output.tokens for output in (*first, *other, *again)]
    assert len(set(outputs)) == 12


def test_scores_of_samples_are_those_of_the_model() -> None:
    table = Table(2, size=9)
    for output in draw_samples([table], [0], Sampling(temperature=2.0, top_k=3), 20, 5)[0]:
        assert output.token_scores == table.score_tokens(output)
        assert output.log_probability == sum(output.token_scores)


def test_sampling_from_the_most_likely_token_alone_is_greedy_search() -> None:
    tables = [Table(seed, size=9, end_bias=-1.0, steps=2) for seed in range(9)]
    greedy = greedy_search(
        TableStepper(tables),
        *parameters([6] * 9),
    )
    for sampling in (Sampling(top_k=1), Sampling(top_p=1e-9)):
        assert draw_samples(tables, list(range(9)), sampling, 1, 6) == [[output] for output in greedy]


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((0.0,), "temperature"),
        ((math.inf,), "temperature"),
        ((1.0, -1), "top_k"),
        ((1.0, 0, 0.0), "top_p"),
        ((1.0, 0, 1.1), "top_p"),
        ((1.0, 0, 1.0, -1), "seed"),
    ],
)
def test_a_sampling_option_out_of_range_is_named(values, named) -> None:
    with pytest.raises(UsageError, match=named):
        Sampling(*values)
