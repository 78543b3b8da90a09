"""Sharded tensors (DTensor): gather one from all processes to save it, and shard a loaded one again."""

from __future__ import annotations

from torch import Tensor


def full_tensor(tensor: Tensor) -> Tensor:
    """Gather a sharded tensor, which every process must call; return any other tensor as it is."""
    full: Tensor = tensor.full_tensor() if _is_sharded(tensor) else tensor  # type: ignore[attr-defined]
    return full


def distribute_like(tensor: Tensor, other: Tensor) -> Tensor:
    """Shard a full tensor like `other`; return it unchanged if `other` is not sharded."""
    if not _is_sharded(other):
        return tensor
    from torch.distributed.tensor import distribute_tensor  # slow to import, and rarely needed

    sharded: Tensor = distribute_tensor(tensor.to(other.device), other.device_mesh, other.placements)  # type: ignore[attr-defined]
    return sharded


def _is_sharded(tensor: Tensor) -> bool:
    """Return whether a tensor is a DTensor, or a parameter made of one."""
    return hasattr(tensor, "placements")
