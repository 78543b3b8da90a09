"""A checkpoint is saved before its validation; an interrupted validation is repeated on resuming."""

from __future__ import annotations

import pytest
import torch
from tests.training.parts import (
    PairUpdates,
    TrainerHarness,
    logged_figures,
    random_pairs,
    tiny_model,
    validation_report,
    weights,
)

from manyheads.reports import ValidationReport
from manyheads.training.interruption import Interrupted
from manyheads.training.snapshot import Snapshot


def validating_harness(stop_at: int | None) -> TrainerHarness:
    """Return a harness whose validation of step `stop_at` is interrupted, with plateau, patience and average."""

    def validate(step: int) -> ValidationReport:
        torch.randn(3)
        if step == stop_at:
            raise Interrupted
        return validation_report(step, {2: 3.0, 4: 2.0}.get(step, 2.5))

    return TrainerHarness(
        tiny_model(dropout=0.3),
        PairUpdates(*random_pairs(14), size=5),
        validate=validate,
        steps=12,
        save_every=2,
        schedule="plateau",
        plateau_patience=1,
        patience=3,
        ema=0.8,
    )


@pytest.mark.parametrize("step", [2, 4, 6, 10])  # 4 is the best, the rate falls from 8 on, 10 is the last
def test_an_interrupted_validation_is_made_when_training_resumes(step: int) -> None:
    torch.manual_seed(5)
    whole = validating_harness(None)
    whole.trainer.run()
    assert whole.trainer.progress.stopped_early
    torch.manual_seed(5)
    first = validating_harness(step)
    first.trainer.run()
    assert (first.trainer.progress.step, first.trainer.progress.complete) == (step, False)
    assert first.saved_steps[-1] == step
    assert first.listener.validations == whole.listener.validations[: step // 2 - 1]
    torch.manual_seed(77)
    second = validating_harness(None)
    second.resume(first.storage)
    second.trainer.run()
    assert first.listener.validations + second.listener.validations == whole.listener.validations
    assert logged_figures(first) + logged_figures(second) == logged_figures(whole)
    assert [best for _, best in second.saved] == [best for _, best in whole.saved]
    published = {**first.storage.published, **second.storage.published}
    assert published.keys() == whole.storage.published.keys()
    for name, tensor in weights(whole.model).items():
        assert torch.equal(weights(second.model)[name], tensor)
        assert all(torch.equal(published[at][name], whole.storage.published[at][name]) for at in published)


def test_a_checkpoint_is_saved_before_it_is_validated() -> None:
    saved: list[list[int]] = []

    def validate(step: int) -> ValidationReport:
        saved.append(harness.saved_steps)
        return validation_report(step, 1.0)

    harness = TrainerHarness(validate=validate, steps=4, save_every=2)
    harness.trainer.run()
    assert saved == [[2], [2, 4]]


def test_the_answer_to_a_stop_request_depends_on_the_current_activity() -> None:
    answers: list[str] = []

    def validate(step: int) -> ValidationReport:
        answers.append(harness.trainer.stop_message)
        return validation_report(step, 1.0)

    harness = TrainerHarness(validate=validate, steps=1_200, save_every=1_200, log_every=1_200)
    harness.trainer.progress.step = 1_199
    save = harness.storage.save

    def record_answer_and_save(snapshot: Snapshot) -> None:
        answers.append(harness.trainer.stop_message)
        save(snapshot)

    harness.storage.save = record_answer_and_save  # type: ignore[method-assign]
    harness.trainer.updater.optimizer.register_step_pre_hook(
        lambda *_: answers.append(harness.trainer.stop_message)
    )
    harness.trainer.run()
    assert answers == [
        "stopping after this step; press again to abort",
        "stopping; the checkpoint of step 1,200 is being saved",
        "stopping; the checkpoint of step 1,200 is saved",
    ]
