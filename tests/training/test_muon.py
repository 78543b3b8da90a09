"""Muon: updates of matrices have singular values near 1."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from manyheads.training.muon import Muon, _orthogonalize

SHAPES = [(6, 6), (5, 9), (9, 5), (6, 6), (12, 4)]


def make_matrices(seed: int = 1) -> list[nn.Parameter]:
    rng = torch.Generator().manual_seed(seed)
    return [nn.Parameter(torch.randn(shape, generator=rng)) for shape in SHAPES]


def gradients(seed: int) -> list[Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=rng) for shape in SHAPES]


def update(optimizer: torch.optim.Optimizer, matrices: list[nn.Parameter], seed: int) -> None:
    for matrix, gradient in zip(matrices, gradients(seed), strict=True):
        matrix.grad = gradient
    optimizer.step()


def test_every_singular_value_of_an_orthogonalized_matrix_is_near_1() -> None:
    rng = torch.Generator().manual_seed(2)
    matrices = torch.randn(7, 20, 32, generator=rng) * torch.logspace(-6, 6, 7)[:, None, None]
    found = _orthogonalize(matrices)
    singular = torch.linalg.svdvals(found)
    assert singular.min() > 0.6
    assert singular.max() < 1.3
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    on_axes = left.mT @ found @ right.mT
    off = on_axes - torch.diag_embed(on_axes.diagonal(dim1=1, dim2=2))
    assert off.abs().max() < 1e-3, "the directions are those of the matrix itself"


def test_a_matrix_of_zeros_stays_zero() -> None:
    assert not _orthogonalize(torch.zeros(2, 3, 4)).any()


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_several_updates_are_those_of_torch(decay: float) -> None:
    """torch's Muon updates matrix by matrix, and always in bf16, whose rounding grows over the updates."""
    matrices, references = make_matrices(), make_matrices()
    optimizer = Muon([{"params": matrices}], lr=0.02, weight_decay=decay)
    reference_optimizer = torch.optim.Muon(references, lr=0.02, weight_decay=decay, adjust_lr_fn="match_rms_adamw")
    for seed in range(4):
        update(reference_optimizer, references, seed)
        with torch.autocast("cpu", torch.bfloat16):
            update(optimizer, matrices, seed)
    for found, expected, start in zip(matrices, references, make_matrices(), strict=True):
        distance = (expected - start).norm()
        assert (found - expected).norm() < 0.12 * distance


def test_the_parts_of_a_stacked_matrix_are_updated_separately() -> None:
    """Two stacked matrices are updated as they would be alone, whatever the size of their gradients."""
    start, rng = make_matrices()[0].detach(), torch.Generator().manual_seed(5)
    upper, lower = torch.randn(3, 6, generator=rng), 1e3 * torch.randn(3, 6, generator=rng)
    whole = nn.Parameter(start.clone())
    whole.grad = torch.cat([upper, lower])
    Muon([{"params": [whole], "parts": 2}], lr=0.1).step()
    for part, gradient, rows in ((start[:3], upper, whole[:3]), (start[3:], lower, whole[3:])):
        alone = nn.Parameter(part.clone())
        alone.grad = gradient
        Muon([{"params": [alone]}], lr=0.1).step()
        torch.testing.assert_close(rows, alone)


def test_each_group_has_its_own_rate() -> None:
    slow, fast = make_matrices()[0], make_matrices()[0]
    start = slow.detach().clone()
    optimizer = Muon([{"params": [slow]}, {"params": [fast], "lr": 0.3}], lr=0.1)
    slow.grad, fast.grad = gradients(1)[0], gradients(1)[0]
    optimizer.step()
    torch.testing.assert_close(fast - start, 3 * (slow - start))


def test_a_matrix_without_a_gradient_is_left_alone() -> None:
    matrices = make_matrices()
    optimizer = Muon([{"params": matrices}], lr=0.1, weight_decay=0.5)
    matrices[0].grad = torch.ones(6, 6)
    optimizer.step()
    assert torch.equal(matrices[3], make_matrices()[3])
    assert not torch.equal(matrices[0], make_matrices()[0])
