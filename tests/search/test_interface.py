"""The score of an output, and the order of outputs; the rows of a batch that are cancelled."""

from __future__ import annotations

import pytest
from tests.tolerances import approx

from manyheads.search.beam_state import divisors
from manyheads.search.interface import (
    best_outputs,
    cancelled_among,
    make_hypothesis,
    never_cancelled,
    with_scores,
)


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("ended", [True, False])
def test_a_score_is_the_log_probability_over_the_length_to_the_penalty(length_penalty, ended) -> None:
    found = make_hypothesis([7, 5, 3], [-0.5, -1.0, -0.25], ended=ended, length_penalty=length_penalty)
    assert found.tokens == ((7, 5) if ended else (7, 5, 3))
    assert found.log_probability == -1.75
    assert found.score == approx(-1.75 / 3**length_penalty)
    assert found.score == -1.75 / divisors(9, length_penalty)[3]


def test_an_empty_output_is_not_divided_by_zero() -> None:
    assert make_hypothesis([], [], ended=False, length_penalty=1.0).score == 0.0


def test_rescoring_changes_the_log_probabilities_and_the_score_alone() -> None:
    output = make_hypothesis([7, 5, 3], [-0.5, -1.0, -0.25], ended=True, length_penalty=1.0)
    other = with_scores(output, [-1.0, -2.0, -1.5], 2.0)
    assert (other.tokens, other.ended) == (output.tokens, True)
    assert (other.token_scores, other.log_probability, other.score) == ((-1.0, -2.0, -1.5), -4.5, -0.5)


def test_the_best_outputs_come_first_and_ties_keep_their_order() -> None:
    outputs = [
        make_hypothesis([token], [score], ended=False, length_penalty=1.0)
        for token, score in ((4, -2.0), (5, -1.0), (6, -2.0), (7, -3.0))
    ]
    assert [output.tokens for output in best_outputs(outputs, 3)] == [(5,), (4,), (6,)]


def test_cancelled_numbers_are_mapped_to_the_rows_of_a_batch() -> None:
    assert list(cancelled_among(lambda: {7, 3, 5}, [2, 3, 7])()) in ([2, 1], [1, 2])
    assert cancelled_among(never_cancelled, [2, 3]) is never_cancelled
