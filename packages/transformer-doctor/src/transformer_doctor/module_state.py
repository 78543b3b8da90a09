"""Restore what a model changes in a call (caches, counters, statistics); replace its weights for a while."""

from __future__ import annotations

import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import repeat
from operator import is_
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn

_STANDARD = set(vars(nn.Module())) - {"_buffers"}  # attributes of every nn.Module, but for the buffers
_DEPTH = 3  # how far containers and objects in attributes are followed
_DEVIATION = 0.02  # of the numbers that replace zeros
_COPIED = 1e8  # weights up to which a copy of them is kept


class ModuleState:
    """Attributes and buffers of a module's parts, with the contents of lists, dicts, tensors and objects in them.

    A forward pass may write caches into them. `restore` makes the next call a first one again. It skips weights.
    Tensors are compared byte by byte with a copy, as kernels, numpy, and `.data` change them without a new version.
    """

    _left_out: Iterable[str] = _STANDARD  # attributes of the parts
    _keeps_weights = False

    def __init__(self, module: nn.Module | None) -> None:
        self._containers: list[tuple[Any, Any, int]] = []
        self._tensors: list[tuple[Tensor, Tensor, Tensor]] = []  # a tensor, its memory, and a copy of that
        self._seen: set[int] = set()
        for part in module.modules() if module is not None else ():
            self._remember_attributes(part, self._left_out, 0)

    def _remember_attributes(self, owner: Any, left_out: Iterable[str], depth: int) -> None:
        attributes = {name: value for name, value in vars(owner).items() if name not in left_out}
        self._containers.append((owner, attributes, len(vars(owner))))
        for value in attributes.values():
            self._remember(value, depth)

    def _remember(self, value: Any, depth: int) -> None:
        if id(value) in self._seen or depth > _DEPTH:
            return
        self._seen.add(id(value))
        if isinstance(value, Tensor):
            read = self._keeps_weights if isinstance(value, nn.Parameter) else value.grad_fn is None
            if read and _is_plain(value):
                self._tensors.append((value, value.data, value.data.clone()))
        elif isinstance(value, (list, dict, set, deque)):
            self._containers.append((value, value.copy(), len(value)))
            for part in value.values() if isinstance(value, dict) else value:
                self._remember(part, depth + 1)
        elif isinstance(value, tuple):
            for part in value:
                self._remember(part, depth + 1)
        elif _is_plain_object(value):
            self._remember_attributes(value, (), depth + 1)

    @torch.no_grad()
    def restore(self) -> None:
        """Restore every content that has changed."""
        for owner, saved, size in self._containers:
            _put_back(owner, saved, size)
        for tensor, _, content in self._tensors:
            kept = content.to(tensor.dtype)  # which is another one inside of `in_precision`
            if tensor.shape == kept.shape and not _same_bytes(tensor.data, kept):
                tensor.data.copy_(kept)


class WholeState(ModuleState):
    """Everything in a module that code can change: also weights, gradients, hooks, and modes.

    Of more than `_COPIED` weights no copy is kept: changes that a forward pass makes in them are not undone.
    """

    def __init__(self, module: nn.Module | None) -> None:
        weights = [*module.parameters()] if module is not None else []
        lazy = any(isinstance(weight, nn.parameter.UninitializedParameter) for weight in weights)
        self._left_out = _STANDARD - {"training"} if lazy else ()
        self._keeps_weights = not lazy and weight_count(module) <= _COPIED
        super().__init__(module)
        self._weights = [(weight, weight.requires_grad, weight.grad) for weight in weights]
        for _, _, gradient in self._weights:
            self._remember(gradient, 0)

    @torch.no_grad()
    def restore(self) -> None:
        """Restore everything that has changed."""
        for tensor, data, _ in self._tensors:
            if tensor.data_ptr() != data.data_ptr() or tensor.shape != data.shape:
                tensor.data = data
        super().restore()
        for weight, trained, gradient in self._weights:
            weight.requires_grad_(trained)
            weight.grad = gradient


def _is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor has bytes of its own."""
    return (
        type(tensor.data) is Tensor
        and tensor.layout == torch.strided
        and not (tensor.is_meta or tensor.is_inference())
    )


def _same_bytes(left: Tensor, right: Tensor) -> bool:
    return torch.equal(*(tensor.contiguous().flatten().view(torch.uint8) for tensor in (left, right)))


@contextmanager
def restored_settings() -> Iterator[None]:
    """Restore random generators and the settings of torch that change results afterwards."""
    numpy, cudnn = sys.modules.get("numpy"), torch.backends.cudnn
    kept: list[tuple[Callable[[Any], object], Any]] = [
        (torch.set_default_dtype, torch.get_default_dtype()),
        (torch.set_deterministic_debug_mode, torch.get_deterministic_debug_mode()),
        (random.setstate, random.getstate()),
        *((partial(setattr, cudnn, name), getattr(cudnn, name)) for name in ("deterministic", "benchmark")),
    ]
    if numpy is not None:
        kept.append((numpy.random.set_state, numpy.random.get_state()))
    with torch.random.fork_rng():
        try:
            yield
        finally:
            for restore, value in kept:
                restore(value)


def _is_plain_object(value: Any) -> bool:
    """Return whether attributes of a value may hold a cache: no module, class, function, or object of torch."""
    if isinstance(value, (nn.Module, type, ModuleType, FunctionType, MethodType)) or not hasattr(value, "__dict__"):
        return False
    return type(value).__module__.partition(".")[0] not in {"torch", "builtins", "logging", "threading"}


def _put_back(owner: Any, kept: Any, size: int) -> None:
    """Restore the contents of a container, or the attributes of an object; `size` is its old number of entries."""
    if isinstance(owner, (list, deque)):
        if len(owner) != len(kept) or any(entry is not saved for entry, saved in zip(owner, kept, strict=True)):
            owner.clear()
            owner.extend(kept)
        return
    if isinstance(owner, set):
        if owner != kept:
            owner.clear()
            owner.update(kept)
        return
    left_out = _STANDARD if isinstance(owner, nn.Module) else ()
    present = owner if isinstance(owner, dict) else vars(owner)
    if len(present) == size and all(map(is_, map(present.get, kept, repeat(kept)), kept.values())):
        return
    for name in [name for name in present if name not in kept and name not in left_out]:
        del present[name]
    present.update(kept)


@contextmanager
def held_tensors(module: nn.Module | None, make: Callable[[Tensor], Tensor | None]) -> Iterator[None]:
    """Replace the values of weights and buffers inside the context; memory and gradients are not written.

    Args:
        module: the module, None where there is nothing to do.
        make: function of a weight or buffer that returns its replacement, None to leave it as it is. Tensors that
            share memory share the replacement too.
    """
    originals: list[tuple[Tensor, Tensor, Tensor | None]] = []
    replacements: dict[tuple[Any, ...], Tensor] = {}
    try:
        for tensor in [] if module is None else [*module.parameters(), *module.buffers()]:
            data = tensor.data
            if data.layout != torch.strided:  # a sparse buffer has no memory to share, and is never trained
                continue
            key = (data.data_ptr(), data.shape, data.stride(), data.dtype, data.device)
            replacement = replacements[key] if key in replacements else make(tensor)
            if replacement is None:
                continue
            replacements[key] = replacement
            originals.append((tensor, data, tensor.grad if tensor.is_leaf else None))
            _put_data(tensor, replacement, None)
        yield
    finally:
        for tensor, data, gradient in originals:
            _put_data(tensor, data, gradient)


def _put_data(tensor: Tensor, data: Tensor, gradient: Tensor | None) -> None:
    if tensor.is_leaf:
        tensor.grad = None
    tensor.data = data
    if tensor.is_leaf:
        tensor.grad = gradient


@contextmanager
def in_precision(module: nn.Module | None, dtype: torch.dtype) -> Iterator[None]:
    """Convert floating-point weights and buffers to another precision inside the context, then restore them.

    A buffer of lower precision than the weights, such as a cache, stays as it is: it rounds what it holds.
    """
    weights = () if module is None else module.parameters()
    size = max((weight.element_size() for weight in weights if weight.is_floating_point()), default=0)

    def convert(tensor: Tensor) -> Tensor | None:
        usual = type(tensor.data) is Tensor and tensor.is_floating_point() and not tensor.is_meta
        usual &= isinstance(tensor, nn.Parameter) or tensor.element_size() >= size
        return tensor.data.to(dtype) if usual and tensor.dtype != dtype else None

    with held_tensors(module, convert):
        yield


@contextmanager
def stronger_matrices(module: nn.Module | None, factor: float) -> Iterator[None]:
    """Multiply matrices, embeddings included, by a factor inside the context."""

    def multiply(tensor: Tensor) -> Tensor | None:
        matrix = isinstance(tensor, nn.Parameter) and is_usual(tensor) and tensor.dim() > 1
        return tensor.data * factor if matrix else None

    with held_tensors(module, multiply):
        yield


def weight_count(module: nn.Module | None) -> int:
    """Return the number of weights of a module, 0 without one."""
    return sum(weight.numel() for weight in module.parameters()) if module is not None else 0


def _zero_weights(module: nn.Module | None) -> dict[str, nn.Parameter]:
    """Return the weights that are all zero and may hide what they are multiplied with, by name.

    A vector of zeros beside a weight of its module that is not zero is a bias, which hides nothing. A frozen
    embedding of zeros, such as a table of positions, never adds anything and is left out.
    """
    candidates: dict[str, nn.Parameter] = {}
    biases: set[int] = set()
    for prefix, part in module.named_modules() if module is not None else ():
        own = {name: weight for name, weight in part.named_parameters(recurse=False) if is_usual(weight)}
        if isinstance(part, nn.Embedding) and not part.weight.requires_grad:
            continue
        zero = {name: weight for name, weight in own.items() if not weight.detach().any()}
        for name, weight in zero.items():
            if weight.dim() == 1 and weight.numel() > 1 and len(zero) < len(own):
                biases.add(id(weight))
            candidates[f"{prefix}.{name}".lstrip(".")] = weight
    return {name: weight for name, weight in candidates.items() if id(weight) not in biases}


def is_usual(weight: Tensor) -> bool:
    """Return whether a weight is a plain tensor of floating-point numbers that can be read."""
    return type(weight.data) is Tensor and weight.is_floating_point() and not weight.is_meta and weight.numel() > 0


@contextmanager
def filled_zero_weights(module: nn.Module | None) -> Iterator[list[str]]:
    """Fill weights that are all zero with small random numbers inside the context; yield their names.

    Scores after a zero-initialised head or output projection are constant, so that no leak would show in them.
    """
    zero = _zero_weights(module)
    identities = {id(weight) for weight in zero.values()}
    generator = torch.Generator().manual_seed(0)

    def fill(tensor: Tensor) -> Tensor | None:
        if id(tensor) not in identities:
            return None
        return torch.randn(tensor.shape, generator=generator).mul_(_DEVIATION).to(tensor.data)

    with held_tensors(module, fill):
        yield list(zero)
