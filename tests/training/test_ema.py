"""The exponential moving average of the weights, which does not change training."""

from __future__ import annotations

import torch
from tests.training.parts import TrainerHarness, tiny_model, validation_report, weights

from manyheads.reports import ValidationReport
from manyheads.training.ema import ExponentialMovingAverage


def test_the_moving_average_follows_its_definition() -> None:
    model = tiny_model()
    average, expected = ExponentialMovingAverage(model, 0.7), weights(model)
    for step in range(1, 30):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))
        average.update(model, step)
        decay = min(0.7, (1 + step) / (10 + step))
        expected = {name: decay * expected[name] + (1 - decay) * own for name, own in weights(model).items()}
    for name, tensor in expected.items():
        torch.testing.assert_close(average.weights[name], tensor)


def test_the_moving_average_counts_updates_from_1() -> None:
    harness = TrainerHarness(steps=4, save_every=1, ema=0.9)
    expected = weights(harness.model)
    harness.trainer.run()
    for step, (snapshot, _) in enumerate(harness.saved, start=1):
        decay = (1 + step) / (10 + step)
        expected = {name: decay * expected[name] + (1 - decay) * own for name, own in snapshot.model.items()}
        for name, tensor in expected.items():
            torch.testing.assert_close(harness.storage.published[step][name], tensor)


def test_validation_sees_the_average_and_training_its_own_weights() -> None:
    seen: list[dict[str, torch.Tensor]] = []

    def validate(step: int) -> ValidationReport:
        seen.append(weights(averaging.model))
        return validation_report(step, 1.0)

    averaging = TrainerHarness(tiny_model(dropout=0.2), validate=validate, steps=3, save_every=3, ema=0.9)
    torch.manual_seed(4)
    averaging.trainer.run()
    plain = TrainerHarness(tiny_model(dropout=0.2), steps=3, save_every=3)
    torch.manual_seed(4)
    plain.trainer.run()
    assert all(torch.equal(tensor, weights(averaging.model)[name]) for name, tensor in weights(plain.model).items())
    snapshot, _ = averaging.saved[-1]
    for name, tensor in seen[-1].items():
        assert torch.equal(averaging.storage.published[3][name], tensor)
        assert not torch.equal(snapshot.model[name], tensor)


def test_a_skipped_update_does_not_change_the_moving_average() -> None:
    harness = TrainerHarness(steps=3, ema=0.9)
    before = {name: tensor.clone() for name, tensor in harness.trainer.ema.weights.items()}  # type: ignore[union-attr]
    harness.model.decoder_norm.bias.register_hook(lambda gradient: gradient * float("nan"))
    harness.trainer.run()
    assert all(torch.equal(tensor, before[name]) for name, tensor in harness.storage.published[3].items())
