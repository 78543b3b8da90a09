"""A checkpoint is saved before its validation, which is made when training resumes if it was interrupted."""

from __future__ import annotations

import pytest
import torch
from tests.training.parts import Bench, PairUpdates, random_pairs, scored, steps_told, tiny_model, weights

from manyheads.training.interruption import Interrupted
from manyheads.training.log import ValidationReport
from manyheads.training.snapshot import Snapshot


def pending_bench(stop_at: int | None) -> Bench:
    """A bench whose validation of a step is interrupted; with all that a validation changes."""

    def validate(step: int) -> ValidationReport:
        torch.randn(3)
        if step == stop_at:
            raise Interrupted
        return scored(step, {2: 3.0, 4: 2.0}.get(step, 2.5))

    return Bench(
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


@pytest.mark.parametrize("step", [2, 4, 6, 10])  # 4 is the best, from 8 on the rate falls, 10 is the last
def test_an_interrupted_validation_is_made_when_training_resumes(step: int) -> None:
    torch.manual_seed(5)
    whole = pending_bench(None)
    whole.trainer.run()
    assert whole.trainer.progress.stopped_early
    torch.manual_seed(5)
    first = pending_bench(step)
    first.trainer.run()
    assert (first.trainer.progress.step, first.trainer.progress.complete) == (step, False)
    assert first.saved_steps[-1] == step
    assert first.listener.validations == whole.listener.validations[: step // 2 - 1]
    torch.manual_seed(77)
    second = pending_bench(None)
    second.storage.saved = first.storage.saved
    assert second.storage.go_back(second.trainer)
    second.trainer.run()
    assert first.listener.validations + second.listener.validations == whole.listener.validations
    assert steps_told(first) + steps_told(second) == steps_told(whole)
    assert [best for _, best in second.saved] == [best for _, best in whole.saved]
    published = {**first.storage.published, **second.storage.published}
    assert published.keys() == whole.storage.published.keys()
    for name, tensor in weights(whole.model).items():
        assert torch.equal(weights(second.model)[name], tensor)
        assert all(torch.equal(published[at][name], whole.storage.published[at][name]) for at in published)


def test_a_checkpoint_is_saved_before_it_is_validated() -> None:
    saved: list[list[int]] = []

    def validate(step: int) -> ValidationReport:
        saved.append(bench.saved_steps)
        return scored(step, 1.0)

    bench = Bench(validate=validate, steps=4, save_every=2)
    bench.trainer.run()
    assert saved == [[2], [2, 4]]


def test_the_answer_to_a_request_to_stop_fits_the_moment() -> None:
    answers: list[str] = []

    def validate(step: int) -> ValidationReport:
        answers.append(bench.trainer.answer)
        return scored(step, 1.0)

    bench = Bench(validate=validate, steps=1_200, save_every=1_200, log_every=1_200)
    bench.trainer.progress.step = 1_199
    save = bench.storage.save

    def watched_save(snapshot: Snapshot) -> None:
        answers.append(bench.trainer.answer)
        save(snapshot)

    bench.storage.save = watched_save  # type: ignore[method-assign]
    bench.trainer.updater.optimizer.register_step_pre_hook(lambda *_: answers.append(bench.trainer.answer))
    bench.trainer.run()
    assert answers == [
        "stopping after this step; press again to abort",
        "stopping; the checkpoint of step 1,200 is being saved",
        "stopping; the checkpoint of step 1,200 is saved",
    ]
