"""The tracer of a training step records fed ids and gradients of the loss, and can keep some of them only."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from transformer_doctor.checks.step_tracer import StepTracer

V, D = 11, 4


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.output, self.unused = nn.Embedding(V, D), nn.Linear(D, V), nn.Linear(D, D)

    def forward(self, ids: Tensor) -> Tensor:
        return self.output(functional.dropout(self.embedding(ids), 0.1, self.training))


@pytest.fixture
def model() -> Model:
    torch.manual_seed(0)
    return Model()


IDS = torch.tensor([[3, 1, 4], [1, 5, 9]])


def loss_of(model: Model) -> Tensor:
    return functional.cross_entropy(model(IDS).flatten(0, 1), IDS.flatten())


def test_gradients_of_scores_that_are_not_kept_become_zero(model: Model) -> None:
    with StepTracer(V, keep={2: torch.tensor([[0, 1, 0], [0, 0, 0]])}) as tracer:
        loss_of(model).backward()
    (fed,) = tracer.fed
    assert fed.gradient is not None
    assert tracer.scores[0].order == 2
    assert (fed.gradient > 0).tolist() == [[False, True, False], [False, False, False]]


@pytest.mark.parametrize("style", ["flat", "classes second", "log-probabilities"])
def test_scores_know_the_labels_that_their_loss_was_called_with(model: Model, style: str) -> None:
    with StepTracer(V) as tracer:
        scores = model(IDS)
        if style == "flat":
            functional.cross_entropy(scores.flatten(0, 1), IDS.flatten(), ignore_index=1)
        elif style == "classes second":
            functional.cross_entropy(scores.transpose(1, 2), IDS, ignore_index=1)
        else:
            functional.nll_loss(scores.log_softmax(-1).flatten(0, 1), IDS.flatten(), ignore_index=1)
    (labels,) = (record.labels for record in tracer.scores if record.labels is not None)
    assert labels.flatten().tolist() == [3, -1, 4, -1, 5, 9]
