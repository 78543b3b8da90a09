"""Ensembles: the mean of the distributions of several models, row by row."""

from __future__ import annotations

import torch
from tests.search.tables import Prefix, ReferenceOutput, Table, TableStepper, parameters, reference_beam
from tests.tolerances import approx
from torch import Tensor

from manyheads.decoding.beam import beam_search
from manyheads.decoding.ensemble import EnsembleStepper, mean_probability


class MeanTable(Table):
    """The ensemble of the tables of three seeds, by its definition."""

    def log_probs(self, prefix: Prefix) -> Tensor:
        rows = [Table(self.seed + offset, self.size).log_probs(prefix).exp().tolist() for offset in (0, 100, 200)]
        return torch.tensor([sum(column) / 3 for column in zip(*rows, strict=True)]).log()


def test_the_search_of_an_ensemble_equals_that_of_a_model_of_the_mean() -> None:
    seeds, limits = range(5), [5, 2, 6, 0, 4]
    steppers = [TableStepper([Table(seed + offset, 7) for seed in seeds]) for offset in (0, 100, 200)]
    results = beam_search(
        EnsembleStepper(steppers),
        *parameters(limits, beam_size=3, n_best=3, suppressed=()),
    )
    for seed, limit, result in zip(seeds, limits, results, strict=True):
        expected, _ = reference_beam(MeanTable(seed, 7), beam_size=3, n_best=3, length_penalty=1.0, limit=limit)
        assert [ReferenceOutput(0, output.tokens, output.ended) for output in result] == [
            ReferenceOutput(0, output.tokens, output.ended) for output in expected
        ]
        assert [output.score for output in result] == approx([output.score for output in expected])


def test_the_mean_of_a_single_model_is_bit_identical() -> None:
    row = torch.randn(3, 5).log_softmax(-1)
    assert torch.equal(mean_probability([row]), row)


def test_a_token_impossible_for_one_model_is_possible_for_the_ensemble() -> None:
    rows = [torch.tensor([0.5, 0.5, 0.0]).log(), torch.tensor([0.2, 0.0, 0.8]).log()]
    torch.testing.assert_close(mean_probability(rows).exp(), torch.tensor([0.35, 0.25, 0.4]))
