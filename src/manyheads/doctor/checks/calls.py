"""Call a model: its scores as numbers, and their gradients by the embeddings that it reads.

Shapes: B batch, T target length, V vocabulary, D model width.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Tensor

from manyheads.doctor.attention_tracer import AttentionTracer
from manyheads.doctor.model_adapter import ModelAdapter

__all__ = ["gradients", "run"]


@torch.no_grad()
def run(adapter: ModelAdapter, ids: Mapping[str, Tensor]) -> Tensor:
    """Return the scores on the CPU, without gradients."""
    return adapter(ids).cpu()


def gradients(
    adapter: ModelAdapter, ids: Mapping[str, Tensor], side: str, positions: Iterable[int | slice]
) -> Iterator[tuple[int, Tensor]]:
    """Yield, for positions of the scores, the gradient by the embeddings of a side: (position, (B, length, D)).

    Yields nothing where the model looks up no embeddings of these ids, or computes without gradients.
    """
    watched = {name: rows.to(adapter.device) for name, rows in ids.items()}
    with torch.enable_grad(), AttentionTracer(watched, leaves=True) as tracer:
        scores = adapter(watched)
    leaf = tracer.leaf(side)
    if leaf is None or not scores.requires_grad:
        return
    weights = torch.randn(scores.shape, generator=torch.Generator().manual_seed(2)).to(scores)
    for position in positions:
        wanted = (scores[:, position] * weights[:, position]).nan_to_num().sum()
        (gradient,) = torch.autograd.grad(
            wanted, leaf, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        time_first = gradient.shape[:2] != ids[side].shape
        yield (
            position if isinstance(position, int) else 0,
            (gradient.transpose(0, 1) if time_first else gradient).cpu(),
        )
