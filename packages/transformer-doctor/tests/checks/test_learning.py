"""Training steps of unusual form are read correctly, and unreadable labels are listed with the reason."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from specimens import peers
from specimens.host_models import Small, SmallTrainer
from specimens.planted import BOS, EOS, PAD, Trainer, Transformer, padded
from specimens.training_projects import GPT
from transformer_doctor import Report, examine
from transformer_doctor.checks.learning import _ALL_CHECKS, _LABELS, _LOSS_ABOVE_CHANCE, _UPDATES, TRAINING_CHECKS
from transformer_doctor.checks.memorization import TrainingFunctions
from transformer_doctor.checks.trial import _estimate

MARKS: dict[str, Any] = {"vocab_size": 23, "pad": PAD, "bos": BOS, "eos": EOS, "longest": 32}


def examine_trainer(trainer: Trainer, **further: Any) -> Report:
    return examine(trainer.model, **MARKS, train_step=trainer.step, collate=trainer.collate, **further)


class LossStyle(Trainer):
    """A training step whose loss is written in another way."""

    def __init__(self, style: str) -> None:
        super().__init__(Transformer())
        self.style = style

    def loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        return functional.cross_entropy(scores, labels, ignore_index=PAD)

    def step(self, source: Tensor, target: Tensor) -> float:
        scores, labels = self.model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten()
        loss = {
            "ascent": lambda: -self.loss(scores, labels),
            "twice": lambda: self.loss(scores.softmax(-1), labels),
            "third axis": lambda: functional.cross_entropy(
                scores.unflatten(0, target[:, 1:].shape).transpose(1, 2), target[:, 1:], ignore_index=PAD
            ),
            "gathered": lambda: -scores.log_softmax(-1).gather(1, labels[:, None])[labels != PAD].mean(),
            "selected": lambda: functional.cross_entropy(scores[labels != PAD], labels[labels != PAD]),
            "summed": lambda: functional.cross_entropy(scores, labels, ignore_index=PAD, reduction="sum"),
        }.get(self.style, lambda: self.loss(scores, labels))()
        self.optimizer.zero_grad()
        loss.backward()
        if self.style != "no step":
            self.optimizer.step()
        return loss.item()


@pytest.mark.parametrize("style", ["third axis", "gathered", "selected", "summed"])
def test_losses_of_any_form_are_read(style: str) -> None:
    torch.manual_seed(1)
    report = examine_trainer(LossStyle(style))
    assert not report.findings, report
    assert {*TRAINING_CHECKS} <= {*report.asked}


@pytest.mark.parametrize(
    ("style", "name"),
    [("ascent", "not-learned"), ("twice", "scores-are-probabilities"), ("no step", "parameters-not-updated")],
)
def test_steps_that_cannot_learn_are_named(style: str, name: str) -> None:
    torch.manual_seed(1)
    report = examine_trainer(LossStyle(style))
    assert [(finding.name, finding.severity) for finding in report.findings] == [(name, "error")]


def test_a_manual_update_and_gradients_that_are_never_zeroed_are_recognised() -> None:
    class ManualUpdate(Trainer):
        zeroed = True

        def step(self, source: Tensor, target: Tensor) -> float:
            loss = functional.cross_entropy(
                self.model(source, target[:, :-1]).flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD
            )
            if self.zeroed:
                self.model.zero_grad()
            loss.backward()
            for parameter in self.model.parameters():
                parameter.data -= 0.01 * parameter.grad
            return loss.item()

    torch.manual_seed(1)
    trainer = ManualUpdate(Transformer())
    assert not examine_trainer(trainer).findings
    trainer.zeroed = False
    assert examine_trainer(trainer).names == ["gradients-accumulated"]


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


def test_a_model_that_shifts_its_embeddings_needs_no_other_shift() -> None:
    torch.manual_seed(1)
    model = Transformer()
    model.target_embedding = Shifting(model.target_embedding)  # type: ignore[assignment]
    report = examine_trainer(Unshifted(model))
    assert not report.findings, report
    assert _LABELS in report.asked


@pytest.mark.parametrize("bfloat16", [False, True])
def test_a_model_that_shifts_its_ids_needs_no_other_shift(bfloat16: bool) -> None:
    torch.manual_seed(1)
    trainer = Unshifted(ShiftedIds().to(torch.bfloat16 if bfloat16 else torch.float32))
    report = examine(
        trainer.model, vocab_size=23, pad=PAD, eos=EOS, train_step=trainer.step, collate=trainer.collate
    )
    assert not report.findings, report
    assert _LABELS in report.asked


@pytest.mark.parametrize("ids", [True, False])
def test_a_second_shift_outside_a_model_that_shifts_is_named(ids: bool) -> None:
    torch.manual_seed(1)
    model = ShiftedIds() if ids else Transformer()
    if not ids:
        model.target_embedding = Shifting(model.target_embedding)  # type: ignore[assignment]
    assert "wrong-labels" in examine_trainer(Unshifted(model, "twice")).names


def test_unshifted_labels_of_a_model_that_does_not_shift_are_one_finding() -> None:
    torch.manual_seed(1)
    trainer = Unshifted(Transformer())
    report = examine(
        trainer.model, vocab_size=23, pad=PAD, eos=EOS, train_step=trainer.step, collate=trainer.collate
    )
    assert report.names == ["target-not-shifted"], report


def test_the_start_symbol_of_row_by_row_decoding_with_tied_embeddings_is_found() -> None:
    class RowByRow(Trainer):
        def greedy(self, source: Tensor) -> Any:
            return [Trainer.greedy(self, row[None])[0].tolist() for row in source]

    torch.manual_seed(1)
    model = Transformer()
    model.target_embedding = model.source_embedding
    trainer = RowByRow(model)
    assert examine_trainer(trainer, greedy=trainer.greedy, updates=5).names == ["not-learned"]
    trainer.defects = (1,)  # greedy alone begins with padding
    trainer.collate = Trainer(model).collate  # type: ignore[method-assign]
    report = examine_trainer(trainer, greedy=trainer.greedy, updates=5)
    assert report.names == ["starts-otherwise"]
    assert "training begins with token 1, decoding with token 0" in report.findings[0].evidence


def test_a_loss_that_grows_is_a_warning() -> None:
    torch.manual_seed(1)
    trainer = Trainer(Transformer(), rate=30.0)
    found = {each.name: each for each in examine_trainer(trainer, greedy=trainer.greedy, updates=30).findings}
    assert found["not-learned"].severity == "warning"
    assert "it was" in found["not-learned"].evidence


@pytest.mark.parametrize(("defects", "names"), [(("not-learned",), ["not-learned"]), ((), [])])
def test_a_loss_that_grows_is_a_warning_without_a_greedy_function_too(
    defects: tuple[str, ...], names: list[str]
) -> None:
    torch.manual_seed(5)
    model = Small(*defects)
    trainer = SmallTrainer(model, *defects)
    options: dict[str, Any] = {
        "vocab_size": 23,
        "pad": PAD,
        "bos": BOS,
        "eos": EOS,
        "longest": 64,
        "kind": "decoder",
    }
    report = examine(lambda target: model(target)[0], train_step=trainer.step, collate=trainer.collate, **options)
    assert report.names == names
    assert [finding.severity for finding in report.findings] == ["warning"] * len(names)


def test_a_character_model_without_marks_is_sound() -> None:
    torch.manual_seed(1)
    model = GPT("")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def blocks(sources: Any, targets: list[list[int]]) -> tuple[Tensor]:
        stream = [token for row in targets for token in row]
        return (torch.tensor([stream[start : start + 9] for start in range(0, len(stream) - 9, 4)]),)

    def step(block: Tensor) -> Tensor:
        loss = functional.cross_entropy(model(block[:, :-1])[0].flatten(0, 1), block[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    report = examine(
        lambda ids: model(ids)[0], vocab_size=29, kind="decoder", train_step=step, collate=blocks, longest=32
    )
    assert not report.findings, report
    assert _LABELS in report.asked


@pytest.mark.parametrize("padding_counted", [False, True])
def test_a_masked_language_model_may_have_a_training_step(padding_counted: bool) -> None:
    torch.manual_seed(1)
    model = peers.make("bert-masked-lm")
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step(ids: Tensor) -> Tensor:
        masked = (torch.rand(ids.shape) < 0.2) & ((ids != PAD) | padding_counted)
        labels = ids.masked_fill(~masked, -100)
        loss = model(input_ids=ids.masked_fill(masked, 4), attention_mask=(ids != PAD).long(), labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    report = examine(model, train_step=step, longest=32)
    assert report.names == ["padding-in-loss"] * padding_counted
    assert _LOSS_ABOVE_CHANCE in dict(report.skipped)


def test_labels_that_cannot_be_read_are_listed_with_the_reason() -> None:
    torch.manual_seed(1)
    trainer = Trainer(Transformer())

    def step(source: Tensor, target: Tensor) -> float:
        loss = trainer.model(source, target[:, :-1]).square().mean()  # no label at all, and one input of one token
        trainer.optimizer.zero_grad()
        loss.backward()
        trainer.optimizer.step()
        return loss.item()

    report = examine(trainer.model, **MARKS, train_step=lambda s, t: step(s, t[:, :2]), collate=trainer.collate)
    assert "could not be read" in dict(report.skipped)[_LABELS]
    assert _UPDATES in report.asked


def test_quick_skips_training_and_lists_the_skipped_checks() -> None:
    def never(*batch: Tensor) -> float:
        raise AssertionError

    torch.manual_seed(1)
    report = examine(Transformer(), **MARKS, train_step=never, quick=True)
    assert dict(report.skipped).keys() >= {*TRAINING_CHECKS}
    assert {*_ALL_CHECKS}.isdisjoint(report.asked)


def test_the_estimate_counts_the_updates_of_the_memorization() -> None:
    functions = TrainingFunctions(lambda: 0.0, lambda sources, targets: (), None, None, 300)
    assert _estimate(functions, 0.5) == "about 22 s: 43 updates"
    functions = TrainingFunctions(lambda: 0.0, lambda sources, targets: (), lambda source: source, None, 300)
    assert _estimate(functions, 0.5) == "about 172 s: 343 updates"
