"""Labels that are unshifted, wrong, ignored or counted at padding are named."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from transformer_doctor.checks.labels import class_findings, ignored_labels, label_findings, masked_label_findings
from transformer_doctor.checks.training import IGNORED, TrainedBatch
from transformer_doctor.model_adapter import ModelAdapter

PAD, BOS, EOS = 0, 1, 2
TARGETS = [[5, 6, 7], [8, 9, 5, 4]]
INPUTS = torch.tensor([[BOS, 5, 6, 7, PAD], [BOS, 8, 9, 5, 4]])
NEXT = torch.tensor([[5, 6, 7, EOS, IGNORED], [8, 9, 5, 4, EOS]])
ADAPTER = ModelAdapter("encoder-decoder", lambda *ids: ids[0], None, (11, 11), PAD, BOS, EOS)


def batch(labels: Tensor, inputs: Tensor = INPUTS, weight: float = 1.0) -> TrainedBatch:
    weights = (labels >= 0).float() * weight
    return TrainedBatch(TARGETS, inputs, labels, weights, torch.ones_like(weights), 0)


def names(labels: Tensor, inputs: Tensor = INPUTS, *, own_token: bool = True) -> list[str]:
    return [finding.name for finding in label_findings(ADAPTER, batch(labels, inputs), own_token)]


def test_next_tokens_up_to_the_end_mark_are_sound_labels() -> None:
    assert names(NEXT) == []


def test_labels_equal_to_the_inputs_are_named_unless_the_model_shifts_them() -> None:
    fed = INPUTS.masked_fill(INPUTS == PAD, IGNORED)
    assert "target-not-shifted" in names(fed)
    unshifted = torch.tensor([[5, 6, 7, EOS, PAD], [8, 9, 5, 4, EOS]])
    assert names(unshifted.masked_fill(unshifted == PAD, IGNORED), unshifted, own_token=False) == []


def test_replaced_inputs_make_no_label_wrong() -> None:
    """As of a step that drops words of the decoder's input."""
    noisy = INPUTS.clone()
    noisy[0, 2] = noisy[1, 3] = 10
    assert names(NEXT, noisy) == []


def test_labels_of_another_row_are_wrong() -> None:
    assert "wrong-labels" in names(NEXT.flip(0))


def test_padding_and_a_missing_end_are_named() -> None:
    assert names(NEXT.masked_fill(NEXT == IGNORED, PAD)) == ["padding-in-loss"]
    assert names(NEXT.masked_fill(NEXT == EOS, IGNORED)) == ["end-never-trained"]


def test_a_first_token_that_is_never_a_label_shows_a_missing_start_symbol() -> None:
    inputs = torch.tensor([[5, 6, 7, PAD], [8, 9, 5, 4]])
    labels = torch.tensor([[6, 7, EOS, IGNORED], [9, 5, 4, EOS]])
    assert names(labels, inputs) == ["no-start-symbol"]
    unlearned = NEXT.clone()
    unlearned[:, 0] = IGNORED
    assert names(unlearned) == ["no-start-symbol"]


def test_a_first_token_may_be_a_label_behind_the_source() -> None:
    """As where source and target are one row of a language model."""
    source = torch.tensor([[9, 3, 6], [10, 10, 3]])
    inputs, labels = torch.cat([source, INPUTS], 1), torch.cat([torch.full_like(source, IGNORED), NEXT], 1)
    assert names(labels, inputs) == []
    labels[:, 3] = IGNORED
    assert names(labels, inputs) == ["no-start-symbol"]


def test_a_token_that_is_ignored_at_every_position_is_named() -> None:
    assert ignored_labels(ADAPTER, batch(NEXT), own_token=True) == []
    hidden = NEXT.masked_fill(NEXT == 9, IGNORED)
    assert ignored_labels(ADAPTER, batch(hidden), own_token=True) == [9]


MASK = 3
TEXT = torch.tensor([[BOS, 5, 6, 7, 9, 10, EOS, PAD], [BOS, 8, 9, 5, 4, 6, 10, EOS]])
CHOSEN = torch.tensor([[0, 1, 0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 1, 0, 0]]).bool()
HIDDEN, OF_HIDDEN = TEXT.masked_fill(CHOSEN, MASK), TEXT.masked_fill(~CHOSEN, IGNORED)
REAL = TEXT > MASK
WORDS = [row[real].tolist() for row, real in zip(TEXT, REAL, strict=True)]


@pytest.mark.parametrize(("inputs", "labels", "name"), [
    (HIDDEN, OF_HIDDEN, None),
    (torch.where(CHOSEN & (TEXT == 5), 5, HIDDEN), OF_HIDDEN, None),  # one of four is kept, as BERT does
    (HIDDEN, TEXT.roll(-1, 1).masked_fill(~CHOSEN, IGNORED), "wrong-labels"),
    (HIDDEN, HIDDEN.masked_fill(~CHOSEN, IGNORED), "wrong-labels"),  # the mask itself
    (HIDDEN, TEXT.masked_fill(CHOSEN | (TEXT == 5) | ~REAL, IGNORED), "target-not-shifted"),
    (HIDDEN, TEXT.masked_fill(~CHOSEN.roll(1, 1) | ~REAL, IGNORED), "target-not-shifted"),  # masks drawn again
    (TEXT.masked_fill(REAL, MASK), TEXT.masked_fill(~REAL, IGNORED), "source-not-read"),
    (TEXT + 20, TEXT.masked_fill(~REAL, IGNORED), None),  # texts in other ids
])  # fmt: skip
def test_labels_of_a_masked_language_model_are_what_the_input_hides(
    inputs: Tensor, labels: Tensor, name: str | None
) -> None:
    seen = replace(
        batch(labels, inputs), targets=[row[real].tolist() for row, real in zip(TEXT, REAL, strict=True)]
    )
    assert [finding.name for finding in masked_label_findings([seen, seen])] == [name] * (name is not None)


def test_a_corrector_that_reads_all_labels_draws_a_note() -> None:
    seen = replace(batch(TEXT.masked_fill(~REAL, IGNORED), HIDDEN), targets=[[5, 6, 7, 9, 10], [8, 9, 5, 4, 6, 10]])
    assert [(each.name, each.severity) for each in masked_label_findings([seen])] == [
        ("target-not-shifted", "note")
    ]


def test_wrong_and_ignored_classes_are_named() -> None:
    assert list(class_findings([0, 1, 2], torch.tensor([0, 1, 2]))) == []
    assert [each.name for each in class_findings([0, 1, 2], torch.tensor([0, 1, IGNORED]))] == ["ignored-label"]
    assert [each.name for each in class_findings([0, 1, 2], torch.tensor([1, 2, 0]))] == ["wrong-labels"]
