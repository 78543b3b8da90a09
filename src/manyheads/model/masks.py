"""Masks. One convention everywhere: True means "may attend".

Shapes: B batch, S source/key length, T target/query length. A mask broadcasts to (B, H, T, S).
Padding hides keys only. A query at a padded place is never masked, so no row is ever empty of keys
(unless all its keys are padding), and what it computes is never looked at.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["causal_mask", "padding_mask", "position_ids"]


def padding_mask(ids: Tensor, pad: int) -> Tensor:
    """Which keys are real: token ids (B, S) -> bool (B, 1, 1, S)."""
    return (ids != pad)[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Each query sees its own place and the ones before it: bool (1, 1, T, T) (section 3.2.3)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]


def position_ids(mask: Tensor) -> Tensor:
    """Number the real tokens 0, 1, 2... wherever padding stands: padding mask (B, 1, 1, S) -> int64 (B, S)."""
    return (mask[:, 0, 0].cumsum(-1) - 1).clamp_min(0)
