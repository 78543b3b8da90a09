"""The loss equals torch's cross-entropy in value and gradient, without the logits of all tokens in memory."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.tolerances import assert_close
from torch import Tensor
from torch.nn import functional

from manyheads.training import loss as module
from manyheads.training.loss import cross_entropy_sums

TOKENS, WIDTH, VOCABULARY = 29, 13, 37

Inputs = tuple[Tensor, Tensor, Tensor | None, Tensor]


def make_inputs(*, bias: bool = True, dtype: torch.dtype = torch.float64, sharpness: float = 1.0) -> Inputs:
    """Return hidden states, output matrix, bias and labels, the first three with gradients."""
    rng = torch.Generator().manual_seed(5)
    hidden = sharpness * torch.randn(TOKENS, WIDTH, generator=rng, dtype=torch.float64)
    weight = torch.randn(VOCABULARY, WIDTH, generator=rng, dtype=torch.float64)
    offset = torch.randn(VOCABULARY, generator=rng, dtype=torch.float64)
    targets = torch.randint(VOCABULARY, (TOKENS,), generator=rng)
    leaves = [part.to(dtype).requires_grad_() for part in (hidden, weight, offset)]
    return leaves[0], leaves[1], leaves[2] if bias else None, targets


def torch_loss(inputs: Inputs, smoothing: float) -> Tensor:
    """Return torch's own loss, summed."""
    hidden, weight, bias, targets = inputs
    logits = functional.linear(hidden, weight, bias)
    return functional.cross_entropy(logits, targets, label_smoothing=smoothing, reduction="sum")


def gradients(loss: Tensor, inputs: Inputs) -> list[Tensor]:
    """Return the gradients of the hidden states, the matrix, and the bias if there is one."""
    return list(torch.autograd.grad(loss, [part for part in inputs[:3] if part is not None]))


def relative_error(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference as a share of the largest value."""
    return ((found.double() - expected).abs().max() / expected.abs().max()).detach().item()


@pytest.mark.parametrize("rows", [0, 1, 7, TOKENS, 10 * TOKENS])  # 0: a chunk is less than a token
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("bias", [True, False])
def test_value_and_gradients_are_those_of_torch(
    monkeypatch: pytest.MonkeyPatch, rows: int, smoothing: float, bias: bool
) -> None:
    monkeypatch.setattr(module, "_CHUNK_LOGITS", rows * VOCABULARY + 3)
    inputs = make_inputs(bias=bias)
    loss, nll = cross_entropy_sums(*inputs, smoothing)
    expected = torch_loss(inputs, smoothing)
    assert relative_error(loss, expected) < 2e-7
    assert relative_error(nll, torch_loss(inputs, 0.0)) < 2e-7
    for found, wanted in zip(gradients(loss, inputs), gradients(expected, inputs), strict=True):
        assert relative_error(found, wanted) < 1e-6


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_float32_is_near_the_loss_in_float64(smoothing: float) -> None:
    inputs, exact = make_inputs(dtype=torch.float32), make_inputs()
    loss, _ = cross_entropy_sums(*inputs, smoothing)
    truth = torch_loss(exact, smoothing)
    assert relative_error(loss, truth) < 1e-6
    for found, wanted in zip(gradients(loss, inputs), gradients(truth, exact), strict=True):
        assert found.dtype == torch.float32
        assert relative_error(found, wanted) < 1e-6


def test_tokens_with_a_probability_near_1_keep_their_loss_and_gradient() -> None:
    """Where p is about 1 - 1e-7, one minus p in float32 would have no digit left."""
    hidden = torch.tensor([[1.0]], dtype=torch.float32).requires_grad_()
    weight = torch.tensor([[16.0], [0.0], [-1.0]], dtype=torch.float32).requires_grad_()
    targets = torch.tensor([0])
    loss, _ = cross_entropy_sums(hidden, weight, None, targets)
    truth = functional.cross_entropy(hidden.double() @ weight.double().T, targets, reduction="sum")
    assert 1e-8 < truth.item() < 1e-6
    assert_close(loss, truth, terms=3, magnitude=1.0)
    found, wanted = torch.autograd.grad(loss, weight)[0], torch.autograd.grad(truth, weight)[0]
    assert_close(found, wanted, terms=3, magnitude=1.0)


@pytest.mark.parametrize("shift", [-1e4, 1e4])
def test_logits_of_any_size_give_finite_figures(shift: float) -> None:
    hidden, weight, _, targets = make_inputs(dtype=torch.float32, sharpness=100.0)
    bias = torch.full((VOCABULARY,), shift, requires_grad=True)
    inputs = hidden, weight, bias, targets
    loss, nll = cross_entropy_sums(*inputs, 0.1)
    assert_close(loss, torch_loss(inputs, 0.1))
    assert_close(nll, torch_loss(inputs, 0.0))
    assert all(part.isfinite().all() for part in gradients(loss, inputs))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_bfloat16_products_come_within_its_rounding(monkeypatch: pytest.MonkeyPatch, smoothing: float) -> None:
    monkeypatch.setattr(module, "_CHUNK_LOGITS", 10 * VOCABULARY)
    inputs, exact = make_inputs(dtype=torch.float32), make_inputs()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, nll = cross_entropy_sums(*inputs, smoothing)
    assert loss.dtype == nll.dtype == torch.float32
    truth = torch_loss(exact, smoothing)
    eps = torch.finfo(torch.bfloat16).eps
    assert relative_error(loss, truth) < eps
    for found, wanted in zip(gradients(loss, inputs), gradients(truth, exact), strict=True):
        assert found.dtype == torch.float32
        assert relative_error(found, wanted) < 4 * eps


def test_products_under_autocast_are_in_bfloat16() -> None:
    inputs = make_inputs(dtype=torch.float32)
    plain, _ = cross_entropy_sums(*inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed, _ = cross_entropy_sums(*inputs)
    assert plain.item() != mixed.item()


def test_the_unsmoothed_nll_has_no_gradient() -> None:
    loss, nll = cross_entropy_sums(*make_inputs(), 0.1)
    assert loss.requires_grad
    assert not nll.requires_grad


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_no_gradients_are_computed_where_they_are_disabled(monkeypatch: pytest.MonkeyPatch, mode: Any) -> None:
    inputs = make_inputs()
    expected, _ = cross_entropy_sums(*inputs, 0.1)

    def refuse(*_: object) -> None:
        raise AssertionError("gradients were computed")

    monkeypatch.setattr(module, "_Gradients", refuse)
    with mode():
        loss, _ = cross_entropy_sums(*inputs, 0.1)
    assert not loss.requires_grad
    assert loss.item() == expected.item()


def test_the_logits_of_all_tokens_are_never_in_memory_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    linear = functional.linear

    def record_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        logits = linear(x, weight, bias)
        sizes.append(logits.numel())
        return logits

    monkeypatch.setattr(module, "_CHUNK_LOGITS", 5 * VOCABULARY)
    monkeypatch.setattr(module.functional, "linear", record_linear)
    inputs = make_inputs()
    loss, _ = cross_entropy_sums(*inputs, 0.1)
    gradients(loss, inputs)
    assert max(sizes) == 5 * VOCABULARY
    assert sum(sizes) == TOKENS * VOCABULARY, "each logit is computed once, forward and backward together"


def test_a_frozen_output_matrix_keeps_the_gradient_of_the_hidden_states() -> None:
    hidden, weight, _, targets = make_inputs()
    frozen = weight.detach()
    (found,) = torch.autograd.grad(cross_entropy_sums(hidden, frozen, None, targets, 0.1)[0], [hidden])
    (wanted,) = torch.autograd.grad(torch_loss((hidden, frozen, None, targets), 0.1), [hidden])
    assert relative_error(found, wanted) < 1e-6


def test_the_loss_of_no_tokens_is_zero() -> None:
    hidden, weight, bias, targets = make_inputs()
    loss, nll = cross_entropy_sums(hidden[:0], weight, bias, targets[:0], 0.1)
    loss.backward()
    assert loss.item() == nll.item() == 0.0
    assert not weight.grad.any()
