"""A fake CUDA device: tensors are computed on the CPU and carry a mark in their storage.

Inside the context `PretendedCuda`, `device="cuda"` is accepted everywhere, `tensor.device` is `cuda:0` for marked
tensors, and an operation that mixes marked and unmarked tensors raises `MixedDevicesError` where CUDA would raise a
RuntimeError. As in CUDA,

- a CPU tensor without dimensions may take part in element-wise operations,
- the indices of `x[indices]` may be on the CPU, those of `index_select`, `gather` and `embedding` may not,
- `to`, `cpu`, `cuda`, `copy_` and assignments to slices copy between devices,
- `numpy()` needs a copy on the CPU.

Operations of the backward pass that torch computes itself are not checked, because they are computed below Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

CUDA = torch.device("cuda", 0)

# Functions whose tensors may be on different devices.
COPIES = {"copy_", "data.__set__", "grad.__set__", "_has_compatible_shallow_copy_type"}
TRANSFERS = {"to", "cpu", "cuda"}
TO_NUMPY = {"numpy", "__array__", "__dlpack__"}
INDEXED = {"__getitem__", "__setitem__", "index_put", "index_put_"}  # the second argument holds indices
NO_SCALARS = {"cat", "stack", "index_select", "gather", "scatter", "scatter_", "embedding", "linear", "matmul"}


class MixedDevicesError(RuntimeError):
    """The error of CUDA for tensors on different devices."""


def is_pretended(tensor: Tensor) -> bool:
    """Return whether a tensor is on the pretended device; call it inside a torch function, or outside the mode."""
    return getattr(tensor.untyped_storage(), "pretended", False)


def mark(result: Any) -> None:
    """Mark all tensors of a result as tensors of the pretended device."""
    for tensor in tensors_in(result):
        tensor.untyped_storage().pretended = True  # type: ignore[attr-defined]


def tensors_in(value: Any) -> list[Tensor]:
    """Return all tensors in nested lists, tuples and dictionaries."""
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, Tensor)]


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a torch function: "add", or "device.__get__" for the getter of an attribute."""
    name = getattr(function, "__name__", "")
    return f"{function.__self__.__name__}.{name}" if name in ("__get__", "__set__") else name  # type: ignore[attr-defined]


def as_device(value: Any) -> torch.device | None:
    """Return the device that an argument names; None if it names none."""
    if isinstance(value, torch.device):
        return value
    if isinstance(value, str) and value.partition(":")[0] in ("cpu", "cuda", "meta"):
        return torch.device(value)
    return None


class PretendedCuda(TorchFunctionMode):
    """The mode in which torch has a CUDA device, in the thread that entered the mode."""

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Check the devices of the tensors, compute on the CPU, and mark the result."""
        options, name = dict(kwargs or {}), name_of(function)
        if name in ("device.__get__", "is_cuda.__get__", "is_cpu.__get__"):
            return attribute(function, name, args[0])
        if name in TRANSFERS and isinstance(args[0], Tensor):
            return transferred(function, name, args, options)
        if name in TO_NUMPY and is_pretended(args[0]):
            raise TypeError(f"can't convert {CUDA} device type tensor to numpy. Use Tensor.cpu() first.")
        target = as_device(options.get("device"))
        if target is not None and target.type == "cuda":
            options["device"] = torch.device("cpu")
        in_backward = torch._C._current_graph_task_id() >= 0  # gradients made by torch itself carry no mark
        pretended = target.type == "cuda" if target is not None else on_device(name, args, options, in_backward)
        if pretended and (generator := options.get("generator")) is not None and generator.device.type == "cpu":
            raise MixedDevicesError(f"{name}: expected a 'cuda' device type for generator but found 'cpu'")
        result = function(*args, **options)
        if name == "grad.__get__":
            pretended = is_pretended(args[0])
        if pretended and name not in COPIES and name != "__setitem__":
            mark(result)
        return result


def attribute(function: Callable[..., Any], name: str, tensor: Tensor) -> Any:
    """Return the device of a tensor, or whether it is on CUDA or on the CPU."""
    if not is_pretended(tensor):
        return function(tensor)
    return {"device.__get__": CUDA, "is_cuda.__get__": True, "is_cpu.__get__": False}[name]


def transferred(function: Callable[..., Any], name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
    """Copy a tensor to another device, or convert its type; a copy between devices has its own storage."""
    tensor, *rest = args
    source_marked = target_marked = is_pretended(tensor)
    if name in ("cpu", "cuda"):
        target_marked, rest, options = name == "cuda", [], {}
    elif rest and isinstance(rest[0], Tensor):
        target_marked = is_pretended(rest[0])
    for device in (as_device(value) for value in [*rest, *options.values()]):
        if device is not None:
            target_marked = device.type == "cuda"
    on_cpu = torch.device("cpu")
    rest = [on_cpu if as_device(value) is not None else value for value in rest]
    options = {key: on_cpu if as_device(value) is not None else value for key, value in options.items()}
    result: Tensor = tensor if name in ("cpu", "cuda") else tensor.to(*rest, **options)
    if source_marked != target_marked and result.untyped_storage()._cdata == tensor.untyped_storage()._cdata:
        result = result.clone()
    if target_marked:
        mark(result)
    return result


def on_device(name: str, args: tuple[Any, ...], options: Mapping[str, Any], in_backward: bool) -> bool:
    """Return whether an operation is computed on the pretended device.

    Raises:
        MixedDevicesError: its tensors are on different devices, and CUDA would refuse them.
    """
    if name == "__deepcopy__":  # its second argument holds copies made before, on any device
        return is_pretended(args[0])
    checked = [*args, *options.values()]
    if name in INDEXED:
        indices = tensors_in(checked.pop(1))
        slices_only = not any(index.dim() for index in indices)
        if not is_pretended(args[0]) and any(is_pretended(index) and index.dim() for index in indices):
            raise MixedDevicesError(f"{name}: indices should be on the CPU, as the indexed tensor is")
        if name == "__setitem__" and slices_only:
            return is_pretended(args[0])
    tensors = tensors_in(checked)
    marks = [is_pretended(tensor) for tensor in tensors]
    if not any(marks) or in_backward or name in COPIES:
        return any(marks) or in_backward
    allowed = 0 if name in NO_SCALARS else 1
    others = [tensor for tensor, marked in zip(tensors, marks, strict=True) if not marked]
    in_place = (name.endswith("_") and not name.endswith("__")) or name.startswith("__i")
    if any(tensor.dim() >= allowed for tensor in others) or (in_place and not marks[0]):
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in others)
        raise MixedDevicesError(
            f"{name}: expected all tensors to be on the same device, but found {CUDA} and cpu (shapes {shapes})"
        )
    return True


class PretendedAutocast(torch.autocast):
    """Autocast of the pretended device: that of the CPU, on which it computes."""

    def __init__(self, device_type: str, *args: Any, **options: Any) -> None:
        super().__init__("cpu", *args, **options)


@contextmanager
def pretended_cuda() -> Iterator[torch.device]:
    """Replace CUDA inside the context, including the functions of `torch.cuda`; yield the device."""
    with pytest.MonkeyPatch.context() as patch, PretendedCuda():
        patch.setattr(torch, "autocast", PretendedAutocast)
        patch.setattr(torch.cuda, "is_available", lambda: True)
        patch.setattr(torch.cuda, "get_rng_state", lambda device=None: torch.get_rng_state())
        patch.setattr(torch.cuda, "set_rng_state", lambda state, device=None: torch.set_rng_state(state))
        stream = SimpleNamespace(is_capturing=lambda: False)  # optimisers call it where torch was built with CUDA
        patch.setattr(torch.accelerator, "current_stream", lambda device=None: stream)
        patch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
        patch.setattr(Tensor, "pin_memory", Tensor.clone)  # also called by threads, which are outside the mode
        yield CUDA


class WithoutDevice:
    """The module torch with a factory function that ignores its argument `device`."""

    def __init__(self, factory: str) -> None:
        self.factory = factory

    def __getattr__(self, name: str) -> Any:
        original = getattr(torch, name)
        return (
            original if name != self.factory else lambda *args, device=None, **options: original(*args, **options)
        )
