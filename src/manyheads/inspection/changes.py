"""Ablations that show the effect of parts of a model: heads off, no causal mask, no position encoding.

Shapes: B batch, S length, D model width, E head width.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from manyheads.errors import UsageError
from manyheads.inference.inspect_options import Changes, HeadName
from manyheads.model.attention import MultiHeadAttention
from manyheads.model.positions import RotaryPositions
from manyheads.model.transformer import Transformer
from manyheads.tensors.capture import attention_groups


def attention_of(name: HeadName, model: Transformer) -> MultiHeadAttention:
    """Return the attention module of the head; raise `UsageError` if the model has no such head."""
    groups = attention_groups(model)
    if name.kind not in groups:
        raise UsageError(f'this model has no attention of kind "{name.kind[:40]}"; it has {", ".join(groups)}.')
    modules = groups[name.kind]
    if name.layer >= len(modules) or name.head >= modules[0].num_heads:
        raise UsageError(
            f"there is no head {'.'.join(map(str, name))}: this model has layers 0 to {len(modules) - 1} and "
            f"heads 0 to {modules[0].num_heads - 1}."
        )
    return modules[name.layer]


@contextmanager
def changed(model: Transformer, changes: Changes) -> Iterator[None]:
    """Apply the changes to all calls of the modules of a model within the context."""
    with ExitStack() as hooks:
        for name in changes.heads:
            hooks.enter_context(_head_off(attention_of(name, model), name.head))
        if not changes.mask:
            hooks.enter_context(_causal_mask_off(model))
        if not changes.positions:
            hooks.enter_context(_positions_off(model))
        yield


def _head_off(module: MultiHeadAttention, head: int) -> RemovableHandle:
    """Set the output of a head to zero, before the output projection."""

    def hook(_: nn.Module, inputs: tuple[Tensor]) -> Tensor:
        (x,) = inputs  # (B, S, D), the heads side by side
        width = x.size(-1) // module.num_heads
        off = torch.arange(x.size(-1), device=x.device) // width == head
        return x.masked_fill(off, 0.0)

    return module.project_out.register_forward_pre_hook(hook)


@contextmanager
def _causal_mask_off(model: Transformer) -> Iterator[None]:
    """Let each position of the decoder attend to all positions."""
    groups = attention_groups(model)
    if "decoder" not in groups:
        raise UsageError("this model has no causal mask: each of its tokens attends to all others.")

    def hook(_: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        x, mask, *others = inputs
        return (x, torch.ones_like(mask), *others)

    modules = set(groups["decoder"])
    with ExitStack() as hooks:
        for layer in model.layers():
            if layer.self_attention in modules:
                hooks.enter_context(layer.register_forward_pre_hook(hook))
        yield


@contextmanager
def _positions_off(model: Transformer) -> Iterator[None]:
    """Replace position embeddings by zeros, and the angles of rotary positions by 0."""

    def rotate_nothing(_: nn.Module, __: Any, cos_sin: Tensor) -> Tensor:
        return torch.tensor([1.0, 0.0], device=cos_sin.device).expand_as(cos_sin)

    def add_nothing(_: nn.Module, __: Any, embeddings: Tensor) -> Tensor:
        return torch.zeros_like(embeddings)

    with ExitStack() as hooks:
        for name, module in model.named_modules():
            if isinstance(module, RotaryPositions):
                hooks.enter_context(module.register_forward_hook(rotate_nothing))
            elif name.endswith("embedding.positions"):
                hooks.enter_context(module.register_forward_hook(add_nothing))
        yield
