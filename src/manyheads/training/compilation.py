"""Compilation of the layers (torch.compile), once for each shape of a batch.

Only the lengths are fixed in compiled code, and the number of rows is dynamic: `Batch.padded` pads to one of a few
lengths. Layers of the same class share their code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

from manyheads.errors import ConfigError
from manyheads.model.transformer import Transformer
from manyheads.training.batches import MicroBatch

# `next_length` has 27 lengths up to 65,536 tokens, and torch compiles a single row separately: 2 x 27 x 27 shapes
# at most (and a few at the end of learned positions). Recompilation beyond this limit would be a fault of this
# program that makes training slow, and raises an error.
_MOST_SHAPES = 2_000


class EagerLayers:
    """Layers that are not compiled; batches are not padded further.

    Attributes:
        shapes: the shapes that were compiled: none.
    """

    shapes: Set[tuple[bool | int, ...]] = frozenset()

    def padded(self, batch: MicroBatch) -> MicroBatch:
        """Return the batch as it is."""
        return batch

    def in_use(self) -> AbstractContextManager[None]:
        """Return a context that does nothing."""
        return nullcontext()


class CompiledLayers(EagerLayers):
    """The layers of a model, compiled inside `in_use` and unchanged outside it.

    Validation and decoding, with their many shapes, therefore compile nothing, and no parameter changes its name.

    Attributes:
        shapes: the `MicroBatch.shape` of every shape that was compiled.
    """

    def __init__(self, model: Transformer) -> None:
        self.shapes: set[tuple[bool | int, ...]] = set()
        self.longest = model.config.position_limit
        kinds = {type(layer) for layer in model.layers()}
        compiled = {kind: torch.compile(kind.forward, fullgraph=True, dynamic=False) for kind in kinds}
        self.forwards = [
            (layer, partial(_with_free_rows, compiled[type(layer)], layer)) for layer in model.layers()
        ]

    def padded(self, batch: MicroBatch) -> MicroBatch:
        """Return the batch padded to a shape for which code is compiled."""
        padded = batch.padded(self.longest)
        self.shapes.add(padded.shape)
        return padded

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Run the compiled code in each call of a layer while the context is open."""
        limits = {
            "recompile_limit": _MOST_SHAPES,
            "accumulated_recompile_limit": _MOST_SHAPES,
            "fail_on_recompile_limit_hit": True,
        }
        for layer, forward in self.forwards:
            layer.forward = forward  # type: ignore[method-assign]
        try:
            with torch._dynamo.config.patch(limits):
                yield
        finally:
            for layer, _ in self.forwards:
                del layer.forward


def _with_free_rows(forward: Callable[..., Tensor], *inputs: Any) -> Tensor:
    """Call compiled code with a dynamic number of rows; torch compiles a single row separately."""
    for tensor in _tensors_of(inputs):
        if tensor.size(0) > 1:
            torch._dynamo.maybe_mark_dynamic(tensor, 0)
    return forward(*inputs)


def _tensors_of(inputs: tuple[Any, ...]) -> Iterator[Tensor]:
    """Yield the tensors among the inputs, those in nested tuples included."""
    for value in inputs:
        if isinstance(value, tuple):
            yield from _tensors_of(value)
        elif isinstance(value, Tensor):
            yield value


def check_compiler(device: torch.device) -> None:
    """Check before training that torch.compile works on a device: compile an addition.

    Raises:
        ConfigError: nothing can be compiled on this machine; the message names what is missing.
    """
    try:
        if device.type == "cpu":
            from torch._inductor.cpp_builder import get_cpp_compiler  # slow to import, and rarely needed

            get_cpp_compiler()  # a cached addition would compile without a compiler
        torch.compile(torch.add, fullgraph=True)(torch.ones(8, device=device), 1.0)
    except Exception as error:  # the type of the exception depends on what is missing
        reason = " ".join(str(error).split("\n")[:2])
        raise ConfigError(
            [
                f"training.compile = true, but nothing can be compiled on {device}: {reason}. A CPU needs a C++ "
                "compiler (Debian and Ubuntu: apt install g++ python3-dev), which CXX may name. Or leave it out."
            ]
        ) from error
