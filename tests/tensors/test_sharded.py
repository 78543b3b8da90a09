"""Sharded tensors are gathered, and full tensors are sharded like others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import distributed
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from manyheads.tensors.sharded import distribute_like, full_tensor


@pytest.fixture
def mesh() -> Iterator[DeviceMesh]:
    """Return a mesh of this process alone; `tests/training/test_distributed.py` has several processes."""
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    distributed.destroy_process_group()


def test_a_tensor_that_is_not_sharded_is_returned_unchanged() -> None:
    whole, other = torch.randn(3, 2), torch.zeros(3, 2)
    assert full_tensor(whole) is whole
    assert distribute_like(whole, other) is whole


def test_a_tensor_keeps_its_values_when_sharded_and_gathered(mesh: DeviceMesh) -> None:
    whole = torch.randn(5, 3)
    like = distribute_tensor(torch.zeros(5, 3), mesh, [Shard(1)])
    sharded = distribute_like(whole, like)
    assert isinstance(sharded, DTensor)
    assert (sharded.placements, sharded.device_mesh) == (like.placements, mesh)
    gathered = full_tensor(sharded)
    assert not isinstance(gathered, DTensor)
    assert torch.equal(gathered, whole)
