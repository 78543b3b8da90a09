"""What both searches share: the most likely next tokens of every row, and how an output is scored.

Shapes: R rows, V vocabulary, C candidates a row, F forbidden ids.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.search.interface import Hypothesis

__all__ = ["best_tokens", "check_limits", "divisors", "make_hypothesis"]

# Width of the pieces in which a large vocabulary is searched; 64 was the fastest of 16 to 128 on a CPU.
PIECE = 64
FEW_ROWS = 4  # of which the single best tokens are looked for at once


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
    if count == 1 and len(log_probs) <= FEW_ROWS:
        largest, first = log_probs.max(dim=1, keepdim=True)  # the first one of equals
        if not any((first == one).any() for one in forbidden) and not largest.isnan().any():
            return largest.double().cpu(), first.cpu()
    # One more than needed shows whether equals of the last one were left out.
    values, ids = _largest(log_probs, min(taken + 1, vocabulary))
    if np.isnan(values).any():
        raise FloatingPointError("the model gave log-probabilities that are not numbers (NaN)")
    plain = bool((values[:, 1:] < values[:, :-1]).all()) and not any((ids == one).any() for one in forbidden)
    if not plain:
        values, ids = _in_order(log_probs, values, ids, taken, forbidden)
    return torch.from_numpy(values[:, :wanted].astype(np.float64)), torch.from_numpy(ids[:, :wanted])


def _largest(values: Tensor, count: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """As topk along the second axis, on the CPU: (R, V) -> values (R, C), ids (R, C).

    A wide row is cut into pieces; the C pieces with the largest maxima hold its C largest values. Maxima are
    cheap, and topk sees 2 % of the row (3.8 -> 1.0 ms for 320 rows of 8000 on one CPU core).
    """
    width = values.size(1)
    pieces = width // PIECE
    if pieces < 4 * count:
        largest, places = _on_cpu(*values.topk(count, dim=1))
        return largest, places
    whole = pieces * PIECE
    body = values[:, :whole].unflatten(1, (pieces, PIECE))  # (R, pieces, PIECE)
    chosen = body.amax(dim=2).topk(count, dim=1).indices  # (R, C)
    few = body.gather(1, chosen[:, :, None].expand(-1, -1, PIECE)).flatten(1)
    found, where = torch.cat([few, values[:, whole:]], dim=1).topk(count, dim=1)
    largest, both = _on_cpu(found, torch.cat([where, chosen], dim=1))
    places, chosen_pieces = both[:, :count], both[:, count:]
    piece, offset = np.divmod(places, PIECE)
    ids = np.take_along_axis(chosen_pieces, np.minimum(piece, count - 1), axis=1) * PIECE + offset
    return largest, np.where(piece < count, ids, places - few.size(1) + whole)


def _on_cpu(values: Tensor, indices: Tensor) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Values (R, C) and indices (R, C') as arrays, in one transfer."""
    if values.device.type == "cpu":
        return values.float().numpy(), indices.numpy()
    packed = torch.cat([values.float().view(torch.int32), indices.int()], dim=1).cpu()
    first, rest = packed.split([values.size(1), indices.size(1)], dim=1)
    return first.contiguous().view(torch.float32).numpy(), rest.long().numpy()


def _in_order(
    log_probs: Tensor, found: NDArray[np.float32], places: NDArray[np.int64], taken: int, forbidden: Sequence[int]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Put equals in the order of their ids and what is forbidden last: (R, V), twice (R, >= C) -> twice (R, C)."""
    values, ids = torch.from_numpy(found), torch.from_numpy(places)
    if taken < log_probs.size(1):
        tied = (values[:, taken - 1] == values[:, taken]) & (values[:, taken] > -torch.inf)
        values, ids = values[:, :taken], ids[:, :taken]
        if tied.any():
            ids[tied] = _with_lowest_ids(log_probs[tied.to(log_probs.device)], values[tied], ids[tied])
    banned = torch.isin(ids, torch.tensor(forbidden, dtype=torch.int64))
    ids, by_id = ids.sort(dim=1)
    values = values.masked_fill(banned, -torch.inf).gather(1, by_id)
    values, by_value = values.sort(dim=1, descending=True, stable=True)
    return values.numpy(), ids.gather(1, by_value).numpy()


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


@functools.lru_cache(maxsize=8)
def divisors(longest: int, length_penalty: float) -> NDArray[np.float64]:
    """What the log-probabilities of outputs of 0 to `longest` tokens are divided by, for their scores."""
    with np.errstate(over="ignore"):
        found: NDArray[np.float64] = np.maximum(np.arange(longest + 1.0), 1) ** length_penalty
    return found


def make_hypothesis(
    tokens: Sequence[int],
    token_scores: Sequence[float],
    *,
    ended: bool,
    length_penalty: float,
) -> Hypothesis:
    """Build what a search returns.

    Args:
        tokens: T ids, the end symbol last when `ended`.
        token_scores: their T log-probabilities.
        ended: whether the last token is the end symbol.
        length_penalty: exponent of the length in the score.
    """
    scores = tuple(token_scores)
    total = sum(scores)
    return Hypothesis(
        tokens=tuple(tokens[:-1] if ended else tokens),
        log_probability=total,
        score=total / max(len(scores), 1) ** length_penalty,
        token_scores=scores,
        ended=ended,
    )
