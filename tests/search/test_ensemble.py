"""Ensembles: the mean of the models' distributions, row by row."""

from __future__ import annotations

import math

import pytest
import torch
from tests.search.tables import Found, Prefix, Table, TableStepper, parameters, slow_beam
from torch import Tensor

from manyheads.search.beam import beam_search
from manyheads.search.ensemble import EnsembleStepper, mean_logarithm, mean_probability


class Mean(Table):
    """The ensemble of the tables of three seeds, from the definition."""

    geometric = False

    def log_probs(self, prefix: Prefix) -> Tensor:
        rows = [Table(self.seed + more, self.size).log_probs(prefix).exp().tolist() for more in (0, 100, 200)]
        if self.geometric:
            means = [math.prod(column) ** (1 / 3) for column in zip(*rows, strict=True)]
        else:
            means = [sum(column) / 3 for column in zip(*rows, strict=True)]
        return torch.tensor([mean / sum(means) for mean in means]).log()


class Geometric(Mean):
    geometric = True


@pytest.mark.parametrize(("combine", "kind"), [(mean_probability, Mean), (mean_logarithm, Geometric)])
def test_an_ensemble_searches_as_one_model_of_the_mean_would(combine, kind) -> None:
    seeds, limits = range(5), [5, 2, 6, 0, 4]
    steppers = [TableStepper([Table(seed + more, 7) for seed in seeds]) for more in (0, 100, 200)]
    results = beam_search(
        EnsembleStepper(steppers, combine),
        parameters(limits, beam_size=3, n_best=3, suppressed=()),
    )
    for seed, limit, result in zip(seeds, limits, results, strict=True):
        expected, _ = slow_beam(kind(seed, 7), beam_size=3, n_best=3, length_penalty=1.0, limit=limit)
        assert [Found(0, one.tokens, one.ended) for one in result] == [
            Found(0, one.tokens, one.ended) for one in expected
        ]
        assert [one.score for one in result] == pytest.approx([one.score for one in expected], abs=1e-5)


def test_one_model_alone_is_itself_to_the_bit() -> None:
    row = torch.randn(3, 5).log_softmax(-1)
    assert torch.equal(mean_probability([row]), row)


def test_a_token_impossible_for_one_model_is_possible_for_the_arithmetic_mean_only() -> None:
    rows = [torch.tensor([0.5, 0.5, 0.0]).log(), torch.tensor([0.2, 0.0, 0.8]).log()]
    torch.testing.assert_close(mean_probability(rows).exp(), torch.tensor([0.35, 0.25, 0.4]))
    torch.testing.assert_close(mean_logarithm(rows).exp(), torch.tensor([1.0, 0.0, 0.0]))
