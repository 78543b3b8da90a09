"""R-Drop's divergence: value and gradients are those of torch's own functions."""

from __future__ import annotations

import pytest
import torch
from tests.tolerances import approx, assert_close
from tests.training.parts import PairUpdates, pair_losses, random_pairs, tiny_model
from torch import Tensor
from torch.nn import functional

from manyheads.training import loss as module
from manyheads.training.loss import kl_divergence_sum
from manyheads.training.objective import translation_loss


def reference_divergence(first: Tensor, second: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return the divergence by torch's own functions, from all logits at once."""
    p, q = (functional.linear(side, weight, bias).log_softmax(-1) for side in (first, second))
    forward = functional.kl_div(q, p, log_target=True, reduction="sum")
    backward = functional.kl_div(p, q, log_target=True, reduction="sum")
    return (forward + backward) / 2


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("rows", [1, 3, 100])
def test_the_divergence_and_its_gradients_equal_those_of_torch(
    biased: bool, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CHUNK_LOGITS", 13 * rows)
    torch.manual_seed(5)
    tensors = [torch.randn(7, 5), torch.randn(7, 5), torch.randn(13, 5)] + ([torch.randn(13)] if biased else [])
    inputs, references = ([tensor.clone().requires_grad_() for tensor in tensors] for _ in range(2))
    bias = [] if biased else [None]
    found, expected = kl_divergence_sum(*inputs, *bias), reference_divergence(*references, *bias)
    torch.testing.assert_close(found, expected)
    (3 * found).backward()
    (3 * expected).backward()
    for tensor, reference in zip(inputs, references, strict=True):
        assert_close(tensor.grad, reference.grad)


def test_the_divergence_of_equal_predictions_is_zero() -> None:
    torch.manual_seed(5)
    hidden, weight = torch.randn(7, 5, requires_grad=True), torch.randn(13, 5)
    found = kl_divergence_sum(hidden, hidden.detach().clone(), weight, None)
    found.backward()
    assert found.item() == approx(0, magnitude=1)
    assert_close(hidden.grad, torch.zeros_like(hidden), magnitude=1)


def test_without_dropout_r_drop_changes_nothing() -> None:
    model, updates = tiny_model(), PairUpdates(*random_pairs(7))
    batch = updates.batch(range(7))
    loss, nll = translation_loss(model, batch, 0.1, 5.0)
    expected = sum(pair_loss for pair_loss, _ in pair_losses(model, updates, 0.1))
    assert_close(loss, expected)
    assert_close(nll, translation_loss(model, batch, 0.1, 0.0)[1])


def test_r_drop_is_the_mean_loss_of_two_passes_and_half_of_alpha_times_their_divergence() -> None:
    """Equation 4 of Liang et al. (2021), halved, so that it can be compared with the loss of one pass."""
    model = tiny_model(dropout=0.3).train()
    batch = PairUpdates(*random_pairs(7)).batch(range(7))
    torch.manual_seed(9)
    loss, _ = translation_loss(model, batch, 0.1, 5.0)
    torch.manual_seed(9)
    source, target_in, target_out = (
        torch.cat([ids, ids]) for ids in (batch.source, batch.target_in, batch.target_out)
    )
    hidden = model.decode(target_in, *model.encode(source))
    logits, labels = model.output(hidden)[target_out != 1], target_out[target_out != 1]
    both = functional.cross_entropy(logits, labels, label_smoothing=0.1, reduction="sum")
    first, second = hidden[target_out != 1].chunk(2)
    divergence = reference_divergence(first, second, model.output.weight, model.output.bias)
    assert divergence.item() > 0.01
    assert_close(loss, (both + 5 * divergence) / 2)
