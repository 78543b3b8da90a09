"""The labels of a training step are read from its gradients, however its loss is written."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from specimens import peers
from specimens.planted import BOS, EOS, PAD, Trainer, Transformer, padded
from specimens.trainers import MARKS, LossStyle, examine_trainer, updated
from specimens.training_projects import GPT
from transformer_doctor import examine
from transformer_doctor.checks.learning import _LABELS, _LOSS_ABOVE_CHANCE, _UPDATES, TRAINING_CHECKS
from transformer_doctor.checks.training import read_labels

pytestmark = pytest.mark.usefixtures("few_updates")
alone = pytest.mark.usefixtures("training_alone", "rows_unasked")


@alone
@pytest.mark.parametrize("style", ["third axis", "gathered", "selected", "summed"])
def test_losses_of_any_form_are_read(style: str) -> None:
    report = examine_trainer(LossStyle(style))
    assert not report.findings, report
    assert {*TRAINING_CHECKS} <= {*report.asked}


class Shifting(nn.Module):
    """Embeddings that are shifted by one position."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    @property
    def tokens(self) -> nn.Module:
        return self.inner.tokens

    def forward(self, ids: Tensor) -> Tensor:
        return functional.pad(self.inner(ids), (0, 0, 1, -1))


class Unshifted(Trainer):
    """Rows without start symbols, which are both decoder inputs and labels."""

    def collate(self, sources: list[list[int]], targets: list[list[int]]) -> tuple[Tensor, Tensor]:
        return padded(sources), padded([[*row, EOS] for row in targets])

    def inputs_and_labels(self, target: Tensor) -> tuple[Tensor, Tensor]:
        return (target[:, :-1], target[:, 1:]) if "twice" in self.defects else (target, target)


class ShiftedIds(Transformer):
    """Model that shifts its target ids by one position before the embedding, as T5 does."""

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return super().forward(source, torch.cat([torch.full_like(target[:, :1], BOS), target[:, :-1]], 1))


@pytest.mark.usefixtures("one_length")
def test_a_model_that_shifts_its_embeddings_needs_no_other_shift() -> None:
    model = Transformer()
    model.target_embedding = Shifting(model.target_embedding)  # type: ignore[assignment]
    report = examine_trainer(Unshifted(model))
    assert not report.findings, report
    assert _LABELS in report.asked


@pytest.mark.usefixtures("one_length")
def test_a_model_that_shifts_its_ids_needs_no_other_shift() -> None:
    trainer = Unshifted(ShiftedIds().bfloat16())
    report = examine_trainer(trainer, bos=None)
    assert not report.findings, report
    assert _LABELS in report.asked


@alone
@pytest.mark.parametrize("ids", [True, False])
def test_a_second_shift_outside_a_model_that_shifts_is_named(ids: bool) -> None:
    model = ShiftedIds() if ids else Transformer()
    if not ids:
        model.target_embedding = Shifting(model.target_embedding)  # type: ignore[assignment]
    assert "wrong-labels" in examine_trainer(Unshifted(model, "twice")).names


@alone
def test_unshifted_labels_of_a_model_that_does_not_shift_are_one_finding() -> None:
    trainer = Unshifted(Transformer())
    report = examine_trainer(trainer, bos=None)
    assert report.names == ["target-not-shifted"], report


@alone
def test_a_character_model_without_marks_is_sound() -> None:
    model = GPT("")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def blocks(sources: Any, targets: list[list[int]]) -> tuple[Tensor]:
        stream = [token for row in targets for token in row]
        return (torch.tensor([stream[start : start + 9] for start in range(0, len(stream) - 9, 4)]),)

    def step(block: Tensor) -> Tensor:
        loss = functional.cross_entropy(model(block[:, :-1])[0].flatten(0, 1), block[:, 1:].flatten())
        return updated(optimizer, loss)

    report = examine(
        lambda ids: model(ids)[0], vocab_size=23, kind="decoder", train_step=step, collate=blocks, longest=32
    )
    assert not report.findings, report
    assert _LABELS in report.asked


@alone
@pytest.mark.parametrize("padding_counted", [False, True])
def test_a_masked_language_model_may_have_a_training_step(padding_counted: bool) -> None:
    model = peers.make("bert-masked-lm")
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step(ids: Tensor) -> Tensor:
        masked = (torch.rand(ids.shape) < 0.2) & ((ids != PAD) | padding_counted)
        labels = ids.masked_fill(~masked, -100)
        loss = model(input_ids=ids.masked_fill(masked, 4), attention_mask=(ids != PAD).long(), labels=labels).loss
        return updated(optimizer, loss)

    report = examine(model, train_step=step, longest=32)
    assert report.names == ["padding-in-loss"] * padding_counted
    assert _LOSS_ABOVE_CHANCE in dict(report.skipped)


@alone
def test_labels_that_cannot_be_read_are_listed_with_the_reason() -> None:
    trainer = Trainer(Transformer())

    def step(source: Tensor, target: Tensor) -> float:
        loss = trainer.model(source, target[:, :-1]).square().mean()  # no label at all, and one input of one token
        return updated(trainer.optimizer, loss)

    report = examine(trainer.model, **MARKS, train_step=lambda s, t: step(s, t[:, :2]), collate=trainer.collate)
    assert "could not be read" in dict(report.skipped)[_LABELS]
    assert _UPDATES in report.asked


@alone
def test_a_smoothed_loss_with_the_time_first_is_read_too() -> None:
    class TimeFirst(Transformer):
        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            return super().forward(source.t(), target.t()).transpose(0, 1)

    model = TimeFirst()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def step(source: Tensor, target: Tensor) -> Tensor:
        labels = target[1:]
        logits = model(source, target[:-1]).log_softmax(-1)
        wanted = functional.one_hot(labels, 23) * 0.7 + 0.3 / 23
        loss = -(wanted * logits).sum(-1)[labels != PAD].mean()
        return updated(optimizer, loss)

    report = examine(model, **MARKS, time_first=True, train_step=step)
    assert not report.findings, report
    assert _LABELS in report.asked


@pytest.mark.parametrize("known", [0.0, 9.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, None])
def test_labels_are_read_whether_they_are_likely_or_not(known: float, smoothing: float | None) -> None:
    """Of a cross-entropy with label smoothing, and of a binary one of all tokens."""
    labels = torch.randint(29, (31,))
    wanted = functional.one_hot(labels, 29).float()
    scores = (torch.randn(31, 29) + known * wanted).requires_grad_()
    if smoothing is None:
        loss = functional.binary_cross_entropy_with_logits(scores, wanted)
    else:
        loss = functional.cross_entropy(scores, labels, label_smoothing=smoothing)
    (gradient,) = torch.autograd.grad(loss, scores)
    read, weights, _ = read_labels(scores.detach().double(), gradient.double())
    assert torch.equal(read, labels)
    assert bool((weights > 0).all())
