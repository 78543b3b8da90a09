"""Scores are found in every form of output that a model returns."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from transformer_doctor.errors import UsageError
from transformer_doctor.model_output import tensor_of

LOGITS, HIDDEN = torch.zeros(2, 3, 5), torch.zeros(2, 3, 7)
LOSS, IDS = torch.tensor(1.0), torch.ones(2, 3, dtype=torch.long)
Named = namedtuple("Named", "loss logits")


@dataclass
class Output:
    loss: torch.Tensor
    logits: torch.Tensor


@pytest.mark.parametrize(
    "output",
    [
        LOGITS, (LOGITS, LOSS), (LOSS, LOGITS), [IDS, LOGITS], {"loss": LOSS, "logits": LOGITS},
        {"hidden": HIDDEN, "out": {"logits": LOGITS}}, Output(LOSS, LOGITS), Named(LOSS, LOGITS),
        SimpleNamespace(loss=LOSS, logits=LOGITS), (None, (LOSS, LOGITS)),
    ],
)  # fmt: skip
def test_scores_are_neither_losses_nor_ids(output: Any) -> None:
    assert tensor_of(output) is LOGITS


def test_of_several_tensors_the_first_of_the_vocabulary_width_is_taken_or_else_the_first() -> None:
    assert tensor_of((HIDDEN, LOGITS), 5) is LOGITS
    assert tensor_of((HIDDEN, LOGITS)) is tensor_of((HIDDEN, LOGITS), 11) is HIDDEN


@pytest.mark.parametrize(
    ("output", "text"),
    [(None, "NoneType"), ((LOSS,), r"tuple \(float32 \(\)\)"), (IDS, r"Tensor \(int64 \(2, 3\)\)")],
)
def test_an_output_without_scores_is_refused_with_its_type(output: Any, text: str) -> None:
    with pytest.raises(UsageError, match=f"returned {text}, in which no scores were found"):
        tensor_of(output)
