"""Layers as compiled code (torch.compile), made for each shape of a batch when it first comes.

The number of rows is free, and only the lengths are fixed: `Batch.padded` takes them from a few. Equal layers share
their code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

from manyheads.errors import ConfigError
from manyheads.model.transformer import Transformer
from manyheads.training.part import Part

__all__ = ["CompiledLayers", "EagerLayers", "check_compiler", "why_nothing_compiles"]

# `next_length` knows 27 lengths up to 65,536 tokens, and one row is a case of its own: 2 x 27 x 27 shapes at most
# (and a few at the end of learned positions).
# Code that is made anew for any other reason is a fault of ours, and raises instead of being slow in silence.
MOST_SHAPES = 2_000


class EagerLayers:
    """The layers as they are, and batches as they come.

    Attributes:
        shapes: what has been compiled: nothing.
    """

    shapes: Set[tuple[bool | int, ...]] = frozenset()

    def padded(self, batch: Part) -> Part:
        """The batch itself."""
        return batch

    def in_use(self) -> AbstractContextManager[None]:
        """Nothing has to be done."""
        return nullcontext()


class CompiledLayers(EagerLayers):
    """The layers of a model, compiled while `in_use`; else the model is as it was.

    So validation and decoding, with their many shapes, compile nothing; and no parameter changes its name.

    Attributes:
        shapes: the `Part.shape` of all that has been compiled.
    """

    def __init__(self, model: Transformer) -> None:
        self.shapes: set[tuple[bool | int, ...]] = set()
        self.longest = model.config.max_positions if model.config.positions == "learned" else sys.maxsize
        kinds = {type(layer) for layer in model.layers()}
        compiled = {kind: torch.compile(kind.forward, fullgraph=True, dynamic=False) for kind in kinds}
        self.forwards = [(layer, partial(with_free_rows, compiled[type(layer)], layer)) for layer in model.layers()]

    def padded(self, batch: Part) -> Part:
        """The batch in one of the shapes that code is made for."""
        padded = batch.padded(self.longest)
        self.shapes.add(padded.shape)
        return padded

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """While open, calling a layer runs its compiled code."""
        limits = {
            "recompile_limit": MOST_SHAPES,
            "accumulated_recompile_limit": MOST_SHAPES,
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


def with_free_rows(forward: Callable[..., Tensor], *inputs: Any) -> Tensor:
    """Call compiled code, which is to do for any number of rows; torch makes one row a case of its own."""
    for tensor in tensors_of(inputs):
        if tensor.size(0) > 1:
            torch._dynamo.maybe_mark_dynamic(tensor, 0)
    return forward(*inputs)


def tensors_of(inputs: tuple[Any, ...]) -> Iterator[Tensor]:
    """The tensors among inputs, and in tuples among them."""
    for each in inputs:
        if isinstance(each, tuple):
            yield from tensors_of(each)
        elif isinstance(each, Tensor):
            yield each


def check_compiler(device: torch.device) -> None:
    """Compile something, so that what is missing is known before training begins.

    Raises:
        ConfigError: nothing can be compiled here.
    """
    if reason := why_nothing_compiles(device):
        raise ConfigError(
            [f"training.compile = true, but nothing can be compiled on {device}: {reason} Or leave it out."]
        )


def why_nothing_compiles(device: torch.device) -> str | None:
    """Compile a sum; what is missing and what to do if that fails, in sentences."""
    try:
        if device.type == "cpu":
            from torch._inductor.cpp_builder import get_cpp_compiler  # slow to import, and rarely needed

            get_cpp_compiler()  # the code of the sum may be left from a time when there was one
        torch.compile(torch.add, fullgraph=True)(torch.ones(8, device=device), 1.0)
    except Exception as error:  # of many kinds, by what is missing
        reason = " ".join(str(error).split("\n")[:2])
        return (
            f"{reason}. A CPU needs a C++ compiler (Debian and Ubuntu: apt install g++ python3-dev), which CXX may "
            "name."
        )
    return None
