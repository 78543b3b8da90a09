"""The labels of a training step are read from its gradients, and decoding is compared with them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from specimens import peers
from specimens.planted import BOS, EOS, PAD, TorchTransformer, Trainer, Transformer
from transformer_doctor import Report, examine
from transformer_doctor.catalogue import CATALOGUE
from transformer_doctor.checks.learning import _MEMORIZED, _SCORED, TRAINING_CHECKS

MARKS: dict[str, Any] = {"vocab_size": 23, "pad": PAD, "bos": BOS, "eos": EOS, "longest": 64}


def examine_trainer(trainer: Trainer, **further: Any) -> Report:
    return examine(trainer.model, **MARKS, train_step=trainer.step, collate=trainer.collate, **further)


def update(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def numbers(report: Report) -> set[int | None]:
    return {CATALOGUE[name].exhibit for name in report.names}


@pytest.mark.parametrize(
    "defects",
    [(), (1,), (5,), (13,), *(pytest.param(pair, marks=pytest.mark.slow) for pair in ((1, 5), (1, 13), (5, 13)))],
)
def test_defects_of_the_training_are_named(defects: tuple[int, ...], training_seed: int) -> None:
    torch.manual_seed(training_seed)
    trainer = Trainer(Transformer(), *defects)
    report = examine_trainer(trainer, greedy=trainer.greedy, score=trainer.score, updates=300)
    assert numbers(report) == set(defects), report
    assert {*TRAINING_CHECKS, _SCORED, _MEMORIZED} <= {*report.asked}
    if defects == (5,):
        assert "on fresh random targets the loss is" in report.findings[0].evidence


@pytest.mark.parametrize(
    ("model_defect", "training_defect"),
    [(3, 1), (7, 5), (8, 1), (9, 5), (10, 1), (16, 5), (17, 1), (18, 5)],
)
@pytest.mark.slow
def test_defects_of_the_training_are_named_beside_those_of_the_model(
    model_defect: int, training_defect: int, training_seed: int
) -> None:
    torch.manual_seed(training_seed)
    trainer = Trainer(Transformer(model_defect), training_defect)
    report = examine_trainer(trainer)
    assert numbers(report) == {model_defect, training_defect}, report


def test_a_leak_of_unknown_cause_is_named_by_its_low_loss(training_seed: int) -> None:
    """The training step adds a learned share of the label to the scores, outside the model."""

    class Leaking(Trainer):
        def step(self, source: Tensor, target: Tensor) -> float:
            logits = self.model(source, target[:, :-1])
            logits = logits + self.model.leak * functional.one_hot(target[:, 1:], 23)
            loss = functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            return loss.item()

    torch.manual_seed(training_seed)
    model = Transformer()
    model.leak = nn.Parameter(torch.zeros(()))
    report = examine_trainer(Leaking(model, rate=0.3))
    assert report.names == ["below-the-floor"], report


def test_weights_modes_and_the_random_state_are_left_unchanged() -> None:
    torch.manual_seed(1)
    trainer = Trainer(Transformer())
    trainer.model.train()
    trainer.model.output.eval()
    before = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    state = torch.get_rng_state()
    examine_trainer(trainer)
    assert torch.equal(torch.get_rng_state(), state)
    assert trainer.model.training
    assert not trainer.model.output.training
    for name, value in trainer.model.state_dict().items():
        assert torch.equal(value, before[name]), name


class OtherDefects(Trainer):
    """A training step with one of further defects."""

    def __init__(self, what: str) -> None:
        super().__init__(Transformer())
        self.what = what

    def step(self, source: Tensor, target: Tensor) -> float:
        inputs, labels = target[:, :-1], target[:, 1:]
        if self.what == "two ahead":
            inputs, labels = target[:, :-2], target[:, 2:]
        elif self.what == "first dropped":
            labels = labels.clone()
            labels[:, 0] = PAD
        logits = self.model(source, inputs)
        loss = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=PAD)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


@pytest.mark.parametrize(("what", "name"), [("two ahead", "wrong-labels"), ("first dropped", "no-start-symbol")])
def test_other_defects_of_a_training_step_are_named(what: str, name: str) -> None:
    torch.manual_seed(1)
    assert name in examine_trainer(OtherDefects(what)).names


def test_decoding_from_another_symbol_than_training_is_named(training_seed: int) -> None:
    torch.manual_seed(training_seed)
    trainer = Trainer(Transformer())
    other = Trainer(trainer.model, 1)
    report = examine_trainer(trainer, greedy=other.greedy, updates=20)
    assert report.names == ["starts-otherwise"], report


@pytest.mark.parametrize(("time_first", "smoothing"), [(False, 0.3), (True, 0.0)])
def test_smoothed_losses_and_time_first_are_read_too(time_first: bool, smoothing: float) -> None:
    class TimeFirst(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Transformer()

        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            if not time_first:
                return self.inner(source, target)
            return self.inner(source.t(), target.t()).transpose(0, 1)

    torch.manual_seed(1)
    model = TimeFirst()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    step_axis = 0 if time_first else 1

    def step(source: Tensor, target: Tensor) -> Tensor:
        length = target.size(step_axis)
        inputs, labels = target.narrow(step_axis, 0, length - 1), target.narrow(step_axis, 1, length - 1)
        logits = model(source, inputs).log_softmax(-1)
        wanted = functional.one_hot(labels, 23) * (1 - smoothing) + smoothing / 23
        loss = -(wanted * logits).sum(-1)[labels != PAD].mean()
        update(optimizer, loss)
        return loss.detach()

    report = examine(model, **MARKS, time_first=time_first, train_step=step)
    assert not report.findings, report
    assert "labels are the next tokens, from the first to the end mark" in report.asked


@pytest.mark.parametrize("name", ["t5", "gpt2", "bart"])
def test_the_losses_of_hugging_face_give_no_alarm(name: str) -> None:
    torch.manual_seed(1)
    model = peers.make(name)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def step(*batch: Tensor) -> Tensor:
        pad = 22 if name == "gpt2" else PAD
        labels = batch[-1].masked_fill(batch[-1] == pad, -100)
        if name == "gpt2":
            loss = model(input_ids=batch[0], labels=labels).loss
        else:  # these models shift the labels and add their start symbol
            loss = model(input_ids=batch[0], attention_mask=batch[0] != 0, labels=labels[:, 1:].contiguous()).loss
        update(optimizer, loss)
        return loss.detach()

    report = examine(model, train_step=step)
    assert not report.findings, report
    assert "labels are the next tokens, from the first to the end mark" in report.asked


def test_a_truncated_cache_is_named() -> None:
    torch.manual_seed(1)
    model = Transformer()

    class TruncatedCache:
        def __init__(self, source: Tensor) -> None:
            self.source, self.prefix = source, torch.empty(len(source), 0, dtype=torch.int64)

        def step(self, tokens: Tensor) -> Tensor:
            self.prefix = torch.cat([self.prefix[:, -2:], tokens[:, None]], 1)
            return model(self.source, self.prefix)[:, -1]

    report = examine(model, **MARKS, stepper=TruncatedCache)
    assert report.names == ["cache-differs"]
    assert "at step 4" in report.findings[0].evidence


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested:UserWarning")
@pytest.mark.slow
def test_nn_transformer_memorizes_and_decodes_exactly(training_seed: int) -> None:
    torch.manual_seed(training_seed)
    trainer = Trainer(TorchTransformer())
    report = examine_trainer(trainer, greedy=trainer.greedy, updates=300)
    assert not report.findings, report
