"""Wrong and ignored classes are named, and noise is not; test_training.py and test_updates.py have wrong labels."""

from __future__ import annotations

import torch

from transformer_doctor.checks.labels import class_findings, label_findings
from transformer_doctor.checks.training import IGNORED, TrainedBatch
from transformer_doctor.model_adapter import ModelAdapter

PAD, BOS, EOS = 0, 1, 2
ADAPTER = ModelAdapter("encoder-decoder", lambda *ids: ids[0], None, (11, 11), PAD, BOS, EOS)


def test_replaced_inputs_make_no_label_wrong() -> None:
    """As of a step that drops words of the decoder's input."""
    inputs = torch.tensor([[BOS, 5, 10, 7, PAD], [BOS, 8, 9, 10, 4]])
    labels = torch.tensor([[5, 6, 7, EOS, IGNORED], [8, 9, 5, 4, EOS]])
    weights = (labels >= 0).float()
    batch = TrainedBatch([[5, 6, 7], [8, 9, 5, 4]], inputs, labels, weights, torch.ones_like(weights), 0)
    assert [*label_findings(ADAPTER, batch, own_token=True)] == []


def test_wrong_and_ignored_classes_are_named() -> None:
    assert list(class_findings([0, 1, 2], torch.tensor([0, 1, 2]))) == []
    assert [each.name for each in class_findings([0, 1, 2], torch.tensor([0, 1, IGNORED]))] == ["ignored-label"]
    assert [each.name for each in class_findings([0, 1, 2], torch.tensor([1, 2, 0]))] == ["wrong-labels"]
