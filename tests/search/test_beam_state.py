"""The state of a beam search: its hypotheses and its finished outputs."""

from __future__ import annotations

import numpy as np
import pytest

from manyheads.search.beam_state import Beam, Continuations, Finished, divisors
from manyheads.search.options import SearchOptions


def continuations(parent: list[int], token: list[int], value: list[float], total: list[float]) -> Continuations:
    """Return the candidates of one sentence."""
    return Continuations(np.array([parent]), np.array([token]), np.array([value]), np.array([total]))


def test_divisors_of_empty_outputs_are_1_and_of_large_penalties_are_infinite() -> None:
    assert divisors(3, 1.0).tolist() == [1.0, 1.0, 2.0, 3.0]
    assert np.isinf(divisors(5, 1e9)[2:]).all()


def test_a_hypothesis_is_extended_with_the_tokens_of_its_parent() -> None:
    first = Beam.start(np.array([9])).extend(continuations([0, 0], [5, 7], [-1.0, -2.0], [-1.0, -2.0]))
    second = first.extend(continuations([1, 0, 1], [4, 6, 3], [-0.5, -2.0, -3.0], [-2.5, -3.0, -5.0]))
    assert second.tokens.tolist() == [[[7, 4], [5, 6], [7, 3]]]
    assert second.token_scores.tolist() == [[[-2.0, -0.5], [-1.0, -2.0], [-2.0, -3.0]]]
    assert second.log_probability.tolist() == [[-2.5, -3.0, -5.0]]
    assert second.length == 2


def test_only_the_best_outputs_of_a_sentence_are_kept() -> None:
    finished = Finished(np.array([9]), SearchOptions(beam_size=2, n_best=2, length_penalty=1.0))
    beam = Beam.start(np.array([9])).extend(
        continuations([0] * 3, [4, 5, 6], [-3.0, -1.0, -2.0], [-3.0, -1.0, -2.0])
    )
    selected = np.array([[True, False, False]]), np.array([[False, True, True]])
    finished.add(beam, selected[0], ended=False)
    assert finished.scores.tolist() == [[-3.0, -np.inf]]
    finished.add(beam, selected[1], ended=False)
    assert finished.scores.tolist() == [[-1.0, -2.0]]
    assert [output.tokens for output in finished.best(0)] == [(5,), (6,)]
    assert [output.score for output in finished.best(0)] == pytest.approx([-1.0, -2.0])
