"""Attention masks, with one convention everywhere: True means "may attend" (section 3.2.3).

Shapes: B batch, S source/key length, T target/query length. A mask broadcasts to (B, H, T, S).
Only keys are masked as padding. Queries at padded positions still attend to the real keys, so that no softmax is
empty, and the results at these positions are never used.
"""

from __future__ import annotations

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad: int) -> Tensor:
    """Return the mask of the keys that are no padding: token ids (B, S) -> bool (B, 1, 1, S)."""
    return (ids != pad)[:, None, None, :]


def source_mask(ids: Tensor, pad: int, unread: int | None) -> Tensor:
    """Return the mask of the keys of a source: token ids (B, S) -> bool (B, 1, 1, S).

    Args:
        ids: the source, with its end marks.
        pad: id of padding.
        unread: id of the end mark if the model does not read it; an empty source keeps it.
    """
    mask = ids != pad
    if unread is not None:
        mask[:, 1:] &= ids[:, 1:] != unread
    return mask[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Return the mask by which a query attends to its own position and those before it: bool (1, 1, T, T)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]


def position_ids(mask: Tensor) -> Tensor:
    """Number the real tokens 0, 1, 2, ..., skipping padding: padding mask (B, 1, 1, S) -> int64 (B, S)."""
    return (mask[:, 0, 0].cumsum(-1) - 1).clamp_min(0)
