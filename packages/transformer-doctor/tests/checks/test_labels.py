"""Wrong and ignored classes are named; test_training.py and test_updates.py have the labels of texts."""

from __future__ import annotations

import torch

from transformer_doctor.checks.labels import class_findings
from transformer_doctor.checks.training import IGNORED


def test_wrong_and_ignored_classes_are_named() -> None:
    assert list(class_findings([0, 1, 2], torch.tensor([0, 1, 2]))) == []
    assert [each.name for each in class_findings([0, 1, 2], torch.tensor([0, 1, IGNORED]))] == ["ignored-label"]
    assert [each.name for each in class_findings([0, 1, 2], torch.tensor([1, 2, 0]))] == ["wrong-labels"]
