"""Defects of training, decoding and scoring are named, and nothing of the project is changed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from specimens.plain_trainings import Writer, nats
from specimens.planted import PAD, Trainer, Transformer
from specimens.trainers import MARKS, LossStyle, examine_trainer, updated
from specimens.unusual_trainings import unusual
from transformer_doctor import Report, examine
from transformer_doctor.catalogue import CATALOGUE
from transformer_doctor.checks import memorization
from transformer_doctor.checks.learning import _MEMORIZED, _SCORED, TRAINING_CHECKS

alone = pytest.mark.usefixtures("few_updates", "training_alone", "rows_unasked")


@alone
@pytest.mark.parametrize(
    ("style", "name"),
    [("ascent", "not-learned"), ("twice", "scores-are-probabilities"), ("no step", "parameters-not-updated")],
)
def test_steps_that_cannot_learn_are_named(style: str, name: str) -> None:
    report = examine_trainer(LossStyle(style))
    assert [(finding.name, finding.severity) for finding in report.findings] == [(name, "error")]


@alone
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

    trainer = ManualUpdate(Transformer())
    assert not examine_trainer(trainer).findings
    trainer.zeroed = False
    assert examine_trainer(trainer).names == ["gradients-accumulated"]


@alone
def test_the_start_symbol_of_row_by_row_decoding_with_tied_embeddings_is_found() -> None:
    class RowByRow(Trainer):
        def greedy(self, source: Tensor) -> Any:
            return [Trainer.greedy(self, row[None])[0].tolist() for row in source]

    model = Transformer()
    model.target_embedding = model.source_embedding
    trainer = RowByRow(model)
    assert examine_trainer(trainer, greedy=trainer.greedy, updates=5).names == ["not-learned"]
    trainer.defects = (1,)  # greedy alone begins with padding
    trainer.collate = Trainer(model).collate  # type: ignore[method-assign]
    report = examine_trainer(trainer, greedy=trainer.greedy, updates=5)
    assert report.names == ["starts-otherwise"]
    assert "training begins with token 1, decoding with token 0" in report.findings[0].evidence


@alone
@pytest.mark.parametrize("decodes", [True, False])
def test_a_loss_that_grows_is_a_warning(decodes: bool) -> None:
    trainer = Trainer(Transformer(), rate=30.0)
    further = {"greedy": trainer.greedy, "updates": 30} if decodes else {}
    found = {each.name: each for each in examine_trainer(trainer, **further).findings}
    assert found["not-learned"].severity == "warning"
    assert "it was" in found["not-learned"].evidence


@pytest.mark.usefixtures("one_length")
def test_quick_skips_training_and_lists_the_skipped_checks() -> None:
    def never(*batch: Tensor) -> float:
        raise AssertionError

    report = examine(Transformer(), **MARKS, train_step=never, quick=True)
    assert dict(report.skipped).keys() >= {*TRAINING_CHECKS}
    assert {*TRAINING_CHECKS, _MEMORIZED, _SCORED}.isdisjoint(report.asked)


def numbers(report: Report) -> set[int | None]:
    """Return the museum numbers of the findings."""
    return {CATALOGUE[name].exhibit for name in report.names}


@pytest.mark.usefixtures("training_alone")
@pytest.mark.parametrize(
    "defects",
    [(), ("target-not-shifted", "teacher-forced-score", "evaluates-in-training-mode")],
)
def test_defects_of_the_training_are_named(defects: tuple[str, ...], training_seed: int) -> None:
    torch.manual_seed(training_seed)
    trainer = Trainer(Transformer(), *defects)
    updates = 5 if defects else 300
    report = examine_trainer(trainer, greedy=trainer.greedy, score=trainer.score, updates=updates)
    assert set(report.names) == set(defects), report
    assert {*TRAINING_CHECKS, _SCORED, _MEMORIZED} <= {*report.asked}
    if "target-not-shifted" in defects:
        assert "on fresh random targets the loss is" in report.findings[0].evidence


@alone
def test_other_decoding_is_named_before_the_mean_loss_is_low(
    training_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memorization, "_MEMORIZED_NATS", -1.0)
    torch.manual_seed(training_seed)
    trainer = Trainer(Transformer(), "decodes-otherwise", rate=2e-2)
    assert examine_trainer(trainer, greedy=trainer.greedy, updates=70).names == ["decodes-otherwise"]


@pytest.mark.usefixtures("one_length")
@pytest.mark.usefixtures("few_updates")
@pytest.mark.parametrize(("model_defect", "training_defect"), [(9, 5), (18, 1)])
def test_defects_of_the_training_are_named_beside_those_of_the_model(
    model_defect: int, training_defect: int
) -> None:
    report = examine_trainer(Trainer(Transformer(model_defect), training_defect))
    assert numbers(report) == {model_defect, training_defect}, report


@pytest.mark.usefixtures("training_alone")
def test_a_leak_of_unknown_cause_is_named_by_its_low_loss(training_seed: int) -> None:
    """The training step adds a learned share of the label to the scores, outside the model."""

    class Leaking(Trainer):
        def step(self, source: Tensor, target: Tensor) -> float:
            logits = self.model(source, target[:, :-1])
            logits = logits + self.model.leak * functional.one_hot(target[:, 1:], 23)
            loss = functional.cross_entropy(logits.mT, target[:, 1:], ignore_index=PAD)
            return updated(self.optimizer, loss).item()

    torch.manual_seed(training_seed)
    model = Transformer()
    model.leak = nn.Parameter(torch.zeros(()))
    report = examine_trainer(Leaking(model, rate=0.3))
    assert report.names == ["below-the-floor"], report


@pytest.mark.usefixtures("one_length")
@pytest.mark.usefixtures("few_updates")
def test_weights_modes_and_the_random_state_are_left_unchanged() -> None:
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


def tied(deviation: float) -> Writer:
    """Return a model whose scores are sure of the token that it is fed."""
    model = Writer()
    nn.init.normal_(model.words.weight, std=deviation)
    model.head.weight = model.words.weight
    return model


@alone
@pytest.mark.parametrize("deviation", [0.1, 1.0, 2.0])
@pytest.mark.parametrize("style", ["plain", "smoothed", "kept above a level"])
def test_labels_that_are_learned_by_copying_are_no_loss_of_the_wrong_sign(style: str, deviation: float) -> None:
    def loss_of(model: nn.Module, ids: Tensor, _: Tensor) -> Tensor:
        loss = nats(model(ids), ids, label_smoothing=0.1 * (style == "smoothed"))
        return (loss - 0.1).abs() + 0.1 if style == "kept above a level" else loss

    torch.manual_seed(1)
    names = examine(**unusual(lambda: tied(deviation), loss_of)).names
    assert "target-not-shifted" in names
    assert not {"not-learned", "wrong-labels"} & {*names}
