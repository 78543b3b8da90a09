"""The moving average of the weights, and that training goes on as if it were not there."""

from __future__ import annotations

import torch
from tests.training.parts import Bench, scored, tiny_model, weights

from manyheads.training.ema import ExponentialMovingAverage
from manyheads.training.log import ValidationReport


def test_it_is_the_average_of_its_definition() -> None:
    model = tiny_model()
    average, expected = ExponentialMovingAverage(model, 0.7), weights(model)
    for step in range(1, 30):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))
        average.update(model, step)
        kept = min(0.7, (1 + step) / (10 + step))
        expected = {name: kept * expected[name] + (1 - kept) * own for name, own in weights(model).items()}
    for name, tensor in expected.items():
        torch.testing.assert_close(average.weights[name], tensor)


def test_each_update_is_taken_in_by_its_number_the_first_being_1() -> None:
    bench = Bench(steps=4, save_every=1, ema=0.9)
    expected = weights(bench.model)
    bench.trainer.run()
    for step, (snapshot, _) in enumerate(bench.saved, start=1):
        kept = (1 + step) / (10 + step)
        expected = {name: kept * expected[name] + (1 - kept) * own for name, own in snapshot.model.items()}
        for name, tensor in expected.items():
            torch.testing.assert_close(bench.storage.published[step][name], tensor)


def test_validation_sees_the_average_and_training_its_own_weights() -> None:
    seen: list[dict[str, torch.Tensor]] = []

    def validate(step: int) -> ValidationReport:
        seen.append(weights(averaging.model))
        return scored(step, 1.0)

    averaging = Bench(tiny_model(dropout=0.2), validate=validate, steps=3, save_every=3, ema=0.9)
    torch.manual_seed(4)
    averaging.trainer.run()
    plain = Bench(tiny_model(dropout=0.2), steps=3, save_every=3)
    torch.manual_seed(4)
    plain.trainer.run()
    assert all(torch.equal(tensor, weights(averaging.model)[name]) for name, tensor in weights(plain.model).items())
    snapshot, _ = averaging.saved[-1]
    for name, tensor in seen[-1].items():
        assert torch.equal(averaging.storage.published[3][name], tensor)
        assert not torch.equal(snapshot.model[name], tensor)


def test_an_update_that_was_not_applied_does_not_count() -> None:
    bench = Bench(steps=3, ema=0.9)
    before = {name: tensor.clone() for name, tensor in bench.trainer.ema.weights.items()}  # type: ignore[union-attr]
    bench.model.decoder_norm.bias.register_hook(lambda gradient: gradient * float("nan"))
    bench.trainer.run()
    assert all(torch.equal(tensor, before[name]) for name, tensor in bench.storage.published[3].items())
