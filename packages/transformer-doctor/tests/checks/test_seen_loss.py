"""Reading what a loss is computed from: labels, their weights, and nothing where there are no tokens."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from transformer_doctor.checks.seen_loss import SeenLoss, hash_of_ids
from transformer_doctor.checks.step_tracer import watch_losses

B, T, V = 3, 7, 11


def seen(ids: Tensor, scores: Tensor, loss: Tensor, **named: Tensor) -> tuple[SeenLoss, list[str]]:
    """Return the record of the backward pass of a loss, and the names of the findings."""
    names: list[str] = []
    watched = SeenLoss(lambda name, evidence, check: names.append(name), nn.Identity(), pad=0)
    watched.read_inputs([ids], named)
    watched.read_output(scores, lambda function, *args: function(*args))
    loss.backward()
    return watched, names


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_weights_and_labels_are_counted(normalized: bool, factor: float) -> None:
    """Scores and log-probabilities give the same weights."""
    ids = torch.randint(3, V, (B, T + 1))
    scores = (0.1 * torch.randn(B, T, V)).requires_grad_()
    output = scores.log_softmax(-1) if normalized else scores
    loss = functional.nll_loss(output.log_softmax(-1).flatten(0, 1), ids[:, 1:].flatten()) * factor
    if normalized:
        loss = functional.nll_loss(output.flatten(0, 1), ids[:, 1:].flatten()) * factor
    watched, names = seen(ids[:, :-1], output, loss)
    assert round(watched.totals[0][0], 2) == factor
    assert watched.totals[0][1] == B * T
    assert watched.read_positions
    assert not names


def test_flat_scores_and_time_first_ids_are_read() -> None:
    ids = torch.randint(3, V, (T, B))
    scores = torch.randn(T * B, V, requires_grad=True)
    watched, names = seen(ids, scores, functional.cross_entropy(scores, ids.flatten()))
    assert watched.totals[0][1] == B * T
    assert names == ["target-not-shifted"]


def test_scores_that_are_taken_for_log_probabilities_are_named() -> None:
    ids, scores = torch.randint(3, V, (B, T + 1)), torch.randn(B, T, V, requires_grad=True)
    loss = functional.nll_loss(scores.flatten(0, 1), ids[:, 1:].flatten())
    assert seen(ids[:, :-1], scores, loss)[1] == ["loss-without-softmax"]


def test_of_classes_of_texts_the_weights_are_read_alone() -> None:
    classes = torch.randn(B, V, requires_grad=True)
    loss = functional.cross_entropy(classes, torch.tensor([1, 2, 3]))
    watched, names = seen(torch.randint(3, V, (B, T)), classes, loss)
    assert round(watched.totals[0][0], 2) == 1
    assert not watched.read_positions
    assert not names


def test_a_reward_or_hidden_states_are_not_taken_for_scores() -> None:
    ids = torch.randint(3, V, (B, T))
    scores = torch.randn(B, T, V, requires_grad=True)
    assert not seen(ids, scores, scores.softmax(-1)[..., 4].mean())[0].totals
    hidden, head = torch.randn(B, T, V, requires_grad=True), torch.randn(V, 40)
    loss = functional.cross_entropy((hidden @ head).flatten(0, 1), ids.flatten())
    assert not seen(ids, hidden, loss)[0].totals


def test_gradients_that_float16_cannot_hold_are_named() -> None:
    ids = torch.randint(3, V, (B, T + 1))
    scores = torch.zeros(B, T, V, dtype=torch.float16, requires_grad=True)
    loss = functional.cross_entropy(scores.float().flatten(0, 1), ids[:, 1:].flatten())
    scaled = torch.zeros(B, T, V, dtype=torch.float16, requires_grad=True)
    other = functional.cross_entropy(scaled.float().flatten(0, 1), ids[:, 1:].flatten())
    assert "lost-in-half-precision" in seen(ids[:, :-1], scores, loss * 2e-6)[1]
    assert not seen(ids[:, :-1], scaled, other * 1024)[1]


def test_batches_of_the_same_ids_in_another_order_have_another_hash() -> None:
    ids = torch.randint(3, V, (B, T))
    ids[0, 0], ids[0, 1] = 3, 4
    assert hash_of_ids(ids) == hash_of_ids(ids.clone())
    assert hash_of_ids(ids) != hash_of_ids(ids.flip(1))


def test_rows_that_repeat_one_token_say_nothing_about_the_shift() -> None:
    ids = torch.arange(3, 3 + B)[:, None].expand(B, T + 1)
    scores = torch.randn(B, T, V, requires_grad=True)
    loss = functional.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten())
    assert not seen(ids[:, :-1], scores, loss)[1]


@pytest.mark.parametrize(("shift", "found"), [(0, ["target-not-shifted"]), (1, [])])
@pytest.mark.parametrize("options", [{}, {"weight": torch.ones(V)}])
def test_labels_whose_gradient_vanishes_are_those_that_the_loss_was_called_with(
    shift: int, found: list[str], options: dict[str, Tensor]
) -> None:
    """The softmax is sure of the right label."""
    ids = torch.randint(3, V, (B, T + 1))
    labels = ids[:, shift : shift + T]
    scores = (200.0 * functional.one_hot(labels, V)).requires_grad_()
    names: list[str] = []
    watched = SeenLoss(lambda name, evidence, check: names.append(name), nn.Linear(3, 5), pad=0)
    watched.read_inputs([ids[:, :T]], {})
    watched.read_output(scores, lambda function, *args: function(*args))
    end = watch_losses(watched.read_labels)
    loss = functional.cross_entropy(scores.flatten(0, 1), labels.flatten(), **options)
    end()
    loss.backward()
    assert names == found
    assert watched.read_positions


def test_classes_without_a_weight_and_ignored_ones_have_no_label() -> None:
    given: list[Tensor] = []
    end = watch_losses(lambda scores, labels: given.append(labels))
    scores, weight = torch.randn(5, 3, requires_grad=True), torch.tensor([0.0, 1.0, 1.0])
    nn.CrossEntropyLoss(weight, ignore_index=2)(scores, torch.tensor([0, 1, 2, 1, 0]))
    functional.nll_loss(scores.log_softmax(-1), torch.tensor([0, 1, -100, 1, 0]))
    functional.cross_entropy(scores, torch.tensor([0, 1, 2, 1, 0]), reduction="none")
    end()
    assert [labels.tolist() for labels in given] == [[-1, 1, -1, 1, -1], [0, 1, -1, 1, 0]]


@pytest.mark.parametrize(("model", "low"), [(nn.LayerNorm(3), 0.0), (nn.Linear(3, 5), None)])
def test_a_loss_near_zero_is_known_without_labels(model: nn.Module, low: float | None) -> None:
    """Of a model that was trained before, it says nothing."""
    labels = torch.randint(3, V, (B, T))
    scores = (200.0 * functional.one_hot(labels, V)).requires_grad_()
    watched = SeenLoss(lambda *_: None, model, pad=0)
    watched.read_inputs([labels], {})
    watched.read_output(scores, lambda function, *args: function(*args))
    (-scores.log_softmax(-1).gather(-1, labels[..., None]).mean()).backward()
    assert watched.low == low
