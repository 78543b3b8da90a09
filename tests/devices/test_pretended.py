"""The pretended device accepts what CUDA accepts and refuses what CUDA refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from tests.devices.pretended import CUDA, MixedDevicesError, pretended_cuda
from torch import Tensor
from torch.nn import functional

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _pretended() -> Iterator[None]:
    with pretended_cuda():
        yield


def on_cuda(*shape: int) -> Tensor:
    return torch.ones(*shape, device="cuda")


REFUSED: dict[str, Callable[[], object]] = {
    "a sum": lambda: on_cuda(3) + torch.ones(3),
    "a product": lambda: on_cuda(3, 3) @ torch.ones(3, 3),
    "a function of a tensor on the CPU": lambda: functional.linear(torch.ones(3, 3), on_cuda(3, 3)),
    "a mask": lambda: on_cuda(3).masked_fill(torch.ones(3, dtype=torch.bool), 0),
    "a mask of attention": lambda: functional.scaled_dot_product_attention(
        *[on_cuda(1, 1, 5, 2)] * 3, attn_mask=torch.ones(1, 1, 5, 5, dtype=torch.bool)
    ),
    "an embedding": lambda: functional.embedding(torch.tensor([0, 1]), on_cuda(3, 2)),
    "index_select": lambda: on_cuda(3).index_select(0, torch.tensor([0])),
    "gather": lambda: on_cuda(3, 2).gather(1, torch.tensor([[0], [1], [0]])),
    "cat": lambda: torch.cat([on_cuda(3), torch.ones(3)]),
    "stack of numbers": lambda: torch.stack([on_cuda(1)[0], torch.ones(())]),
    "in place": lambda: torch.ones(3).add_(on_cuda(3)),
    "in place, a number on the CPU": lambda: torch.ones(()).add_(on_cuda(3).sum()),
    "indices on the device into a tensor on the CPU": lambda: torch.ones(3)[torch.tensor([0, 1], device="cuda")],
    "where": lambda: torch.where(on_cuda(3) > 0, on_cuda(3), torch.ones(3)),
    "equal": lambda: torch.equal(on_cuda(3), torch.ones(3)),
    "a generator of the CPU": lambda: torch.rand(3, device="cuda", generator=torch.Generator()),
    "values at chosen indices": lambda: on_cuda(3).index_put_((torch.tensor([0, 1]),), torch.ones(2)),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_an_operation_that_cuda_refuses_is_refused(name: str) -> None:
    with pytest.raises(MixedDevicesError):
        REFUSED[name]()


ACCEPTED: dict[str, Callable[[], Tensor]] = {
    "a number on the CPU": lambda: on_cuda(3) * torch.tensor(2.0),
    "a Python number": lambda: on_cuda(3) * 2,
    "indices on the CPU": lambda: on_cuda(3)[torch.tensor([0, 2])],
    "a slice filled from the CPU": lambda: fill_slice(on_cuda(3)),
    "copy_": lambda: on_cuda(3).copy_(torch.ones(3)),
    "indices on the CPU, put": lambda: on_cuda(3).index_put_((torch.tensor([0, 1]),), on_cuda(2)),
}


def fill_slice(tensor: Tensor) -> Tensor:
    tensor[:2] = torch.zeros(2)
    return tensor


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_operation_that_cuda_accepts_is_accepted(name: str) -> None:
    assert ACCEPTED[name]().device == CUDA
