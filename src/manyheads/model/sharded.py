"""Tensors that are spread over several processes: whole for a file, spread again for the model."""

from __future__ import annotations

from torch import Tensor

__all__ = ["distribute_like", "full_tensor"]


def full_tensor(tensor: Tensor) -> Tensor:
    """The tensor of all processes together, which all must ask for; one that is not spread as it is."""
    full: Tensor = tensor.full_tensor() if is_spread(tensor) else tensor  # type: ignore[attr-defined]
    return full


def distribute_like(tensor: Tensor, other: Tensor) -> Tensor:
    """A whole tensor spread over the processes as another one is; or as it is, when that one is not."""
    if not is_spread(other):
        return tensor
    from torch.distributed.tensor import distribute_tensor  # slow to import, and rarely needed

    placed: Tensor = distribute_tensor(tensor.to(other.device), other.device_mesh, other.placements)  # type: ignore[attr-defined]
    return placed


def is_spread(tensor: Tensor) -> bool:
    """Whether it is a DTensor, or a parameter made of one."""
    return hasattr(tensor, "placements")
