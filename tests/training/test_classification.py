"""The loss of a classifier: by its formula, in micro-batches, and on random labels."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.tolerances import approx, assert_close
from torch import Tensor
from torch.nn import functional

from manyheads.config.schema import ModelConfig
from manyheads.model.encoder_only import TextClassifier
from manyheads.tensors.examples import Example, Examples, blank_examples, make_examples
from manyheads.training.objective import classification_loss

PAD, BOS, EOS = 1, 2, 3
VOCABULARY, CLASSES = 23, 3


def tiny_classifier(seed: int = 1, **settings: object) -> TextClassifier:
    torch.manual_seed(seed)
    small = {"d_model": 16, "d_ff": 20, "num_heads": 2, "num_encoder_layers": 1, "dropout": 0.0}
    return TextClassifier(ModelConfig(**(small | settings)), VOCABULARY, CLASSES)  # type: ignore[arg-type]


def random_examples(count: int, rng: np.random.Generator) -> list[Example]:
    return [
        Example(rng.integers(4, VOCABULARY, rng.integers(1, 10)).tolist(), int(rng.integers(CLASSES)))
        for _ in range(count)
    ]


def make_batch(rows: list[Example]) -> Examples:
    return make_examples(rows, pad=PAD, bos=BOS, eos=EOS, with_types=False)


def gradients(model: TextClassifier) -> list[Tensor]:
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weights", [None, [0.5, 1.0, 3.0]])
def test_the_loss_is_the_sum_of_weighted_smoothed_cross_entropies(
    smoothing: float, weights: list[float] | None
) -> None:
    """With s the smoothing and w the weights: -(1 - s) w_y log p_y - s / C sum over c of w_c log p_c."""
    model, rows = tiny_classifier(), random_examples(7, np.random.default_rng(2))
    class_weights = None if weights is None else torch.tensor(weights)
    loss, plain = classification_loss(model, make_batch(rows), smoothing, class_weights)
    w = weights or [1.0] * CLASSES
    expected = expected_plain = 0.0
    for ids, label in rows:
        logs = model(torch.tensor([[BOS, *ids, EOS]]))[0].log_softmax(-1).tolist()
        expected -= (1 - smoothing) * w[label] * logs[label]
        expected -= smoothing / CLASSES * sum(a * b for a, b in zip(w, logs, strict=True))
        expected_plain -= logs[label]
    assert loss.item() == approx(expected)
    assert plain.item() == approx(expected_plain)
    assert not plain.requires_grad


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_micro_batches_have_the_gradient_of_the_whole_batch(smoothing: float) -> None:
    model, batch = tiny_classifier(), make_batch(random_examples(11, np.random.default_rng(3)))
    weights = torch.tensor([0.5, 1.0, 3.0])
    (classification_loss(model, batch, smoothing, weights)[0] / batch.target_tokens).backward()
    whole = gradients(model)
    model.zero_grad()
    blank = blank_examples(pad=PAD, bos=BOS, eos=EOS, with_types=False)
    parts = [*(quarter for half in batch.halves() for quarter in half.halves()), blank]
    for part in parts:
        (classification_loss(model, part, smoothing, weights)[0] / batch.target_tokens).backward()
    for found, expected in zip(gradients(model), whole, strict=True):
        assert_close(found, expected)


def test_a_blank_batch_has_no_loss_and_no_gradient() -> None:
    model = tiny_classifier()
    blank = blank_examples(pad=PAD, bos=BOS, eos=EOS, with_types=False)
    loss, plain = classification_loss(model, blank, 0.1, torch.tensor([0.5, 1.0, 3.0]))
    loss.backward()
    assert (loss.item(), plain.item()) == (0.0, 0.0)
    assert all(float(gradient.abs().max()) == 0 for gradient in gradients(model))


def test_more_padding_changes_neither_loss_nor_gradient() -> None:
    model, batch = tiny_classifier(), make_batch(random_examples(7, np.random.default_rng(4)))
    found = []
    longer = replace(batch, ids=functional.pad(batch.ids, (0, 3), value=PAD))
    for variant in (batch, longer):
        model.zero_grad()
        loss, _ = classification_loss(model, variant, 0.1)
        loss.backward()
        found.append((loss, gradients(model)))
    assert_close(found[0][0], found[1][0])
    for gradient, padded in zip(found[0][1], found[1][1], strict=True):
        assert_close(gradient, padded)


def test_the_loss_on_random_labels_does_not_go_below_ln_of_the_number_of_classes(training_seed: int) -> None:
    model, rng = tiny_classifier(training_seed), np.random.default_rng(training_seed)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    found = []
    for _ in range(150):
        loss, plain = classification_loss(model, make_batch(random_examples(32, rng)), 0.0)
        optimizer.zero_grad()
        (loss / 32).backward()
        optimizer.step()
        found.append(float(plain) / 32)
    assert np.mean(found[50:]) > math.log(CLASSES) - 0.01
