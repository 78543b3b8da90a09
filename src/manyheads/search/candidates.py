"""What both searches share: the most likely next tokens of every row, and how an output is scored.

Shapes: R rows, V vocabulary, C candidates a row, F forbidden ids.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from manyheads.search.interface import Hypothesis

__all__ = ["best_tokens", "check_limits", "make_hypothesis"]

# Width of the pieces in which a large vocabulary is searched; 64 was the fastest of 16 to 128 on a CPU.
PIECE = 64


def best_tokens(log_probs: Tensor, count: int, forbidden: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Find the most likely tokens of each row, best first, the lower id first among equals.

    The result of a row depends on that row alone, to the bit and on any device. Forbidden ids come last, with
    log-probability -inf, like all that cannot follow.

    Args:
        log_probs: (R, V), float32; not changed.
        count: how many are wanted; C = min(count, V).
        forbidden: ids that never come out.

    Returns:
        Log-probabilities (R, C) in float64 and token ids (R, C), both on the CPU.

    Raises:
        FloatingPointError: a log-probability is not a number.
    """
    vocabulary = log_probs.size(1)
    wanted = min(count, vocabulary)
    taken = min(count + len(forbidden), vocabulary)
    # One more than needed shows whether equals of the last one were left out.
    values, ids = _largest(log_probs, min(taken + 1, vocabulary))
    packed = torch.cat([values.float().view(torch.int32), ids.int()], dim=1).cpu()  # one transfer
    values, ids = packed[:, : values.size(1)].view(torch.float32), packed[:, values.size(1) :].long()
    if values.isnan().any():
        raise FloatingPointError("the model gave log-probabilities that are not numbers (NaN)")
    if taken < vocabulary:
        tied = (values[:, taken - 1] == values[:, taken]) & (values[:, taken] > -torch.inf)
        values, ids = values[:, :taken], ids[:, :taken]
        if tied.any():
            ids[tied] = _with_lowest_ids(log_probs[tied.to(log_probs.device)], values[tied], ids[tied])
    banned = torch.isin(ids, torch.tensor(forbidden, dtype=torch.int64))
    ids, by_id = ids.sort(dim=1)
    values = values.masked_fill(banned, -torch.inf).gather(1, by_id)
    values, by_value = values.sort(dim=1, descending=True, stable=True)
    return values[:, :wanted].double(), ids.gather(1, by_value)[:, :wanted]


def _largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """As topk along the second axis: (R, V) -> values (R, C), ids (R, C).

    A wide row is cut into pieces; the C pieces with the largest maxima hold its C largest values. Maxima are
    cheap, and topk sees 2 % of the row (3.8 -> 1.0 ms for 320 rows of 8000 on one CPU core).
    """
    rows, width = values.shape
    pieces = width // PIECE
    if pieces < 4 * count:
        return values.topk(count, dim=1)
    whole = pieces * PIECE
    body = values[:, :whole].unflatten(1, (pieces, PIECE))  # (R, pieces, PIECE)
    chosen = body.amax(dim=2).topk(count, dim=1).indices  # (R, C)
    row = torch.arange(rows, device=values.device)[:, None]
    few = torch.cat([body[row, chosen].flatten(1), values[:, whole:]], dim=1)
    columns = torch.arange(PIECE, device=values.device)
    tail = torch.arange(whole, width, device=values.device).expand(rows, -1)
    ids = torch.cat([(chosen[:, :, None] * PIECE + columns).flatten(1), tail], dim=1)
    largest, places = few.topk(count, dim=1)
    return largest, ids.gather(1, places)


def _with_lowest_ids(log_probs: Tensor, values: Tensor, ids: Tensor) -> Tensor:
    """Take the lowest of the ids that share the last value: (N, V), (N, C) best first, (N, C) -> ids (N, C)."""
    width, count = log_probs.size(1), values.size(1)
    last = values[:, -1:]
    countdown = torch.arange(width, 0, -1, dtype=torch.int32, device=log_probs.device)
    equal = torch.where(log_probs == last.to(log_probs.device), countdown, 0)
    lowest = equal.topk(count, dim=1).indices.cpu()
    place = torch.arange(count) - (values > last).sum(dim=1, keepdim=True)  # which of the equals stands here
    return torch.where(place >= 0, lowest.gather(1, place.clamp(min=0)), ids)


def check_limits(max_lengths: Tensor) -> Tensor:
    """Bring the longest outputs (B,) to the CPU; a negative one would never be met.

    Raises:
        ValueError: one is negative.
    """
    limits = max_lengths.cpu()
    if (limits < 0).any():
        raise ValueError(f"max_lengths must not be negative, but one is {int(limits.min())}")
    return limits


def make_hypothesis(tokens: Tensor, token_scores: Tensor, *, ended: bool, length_penalty: float) -> Hypothesis:
    """Build what a search returns.

    Args:
        tokens: (T,) ids, the end symbol last when `ended`.
        token_scores: (T,) their log-probabilities, float64.
        ended: whether the last token is the end symbol.
        length_penalty: exponent of the length in the score.
    """
    scores = tuple(token_scores.tolist())
    total = sum(scores)
    return Hypothesis(
        tokens=tuple(tokens.tolist()[:-1] if ended else tokens.tolist()),
        log_probability=total,
        score=total / max(len(scores), 1) ** length_penalty,
        token_scores=scores,
        ended=ended,
    )
