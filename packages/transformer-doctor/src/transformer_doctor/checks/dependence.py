"""Check what the scores of a model are, and what they depend on: tokens, their order, the token that is fed.

Each check returns its evidence, a sentence with numbers, or None when all is well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import torch

from transformer_doctor.checks.calls import run
from transformer_doctor.errors import UsageError
from transformer_doctor.model_adapter import ModelAdapter, Samples, restore_modes
from transformer_doctor.module_state import (
    ModuleState,
    filled_zero_weights,
    in_precision,
    stronger_matrices,
    weight_count,
)
from transformer_doctor.tolerances import percentage, relative_change

_PROBABILITY = 1e-3  # deviation from 1 of a sum of probabilities
# The order of tokens is ignored where it changes the scores by less than this share of what other tokens change. In
# float64 a sum in another order differs by 1e-15, and by 1e-7 where a part computes in float32 all the same; the
# effect of positions in a new model is 1e-6 and more, and far more with stronger matrices. In float32 the order is
# ignored where tokens have a large effect, and their order no more than rounding.
_SAME_ORDER, _LARGE, _MERE_ROUNDING = 1e-6, 1e-2, 2
STRONGER = 4.0  # factor of matrices that makes faint effects of a new model large
FOR_DOUBLE = 2e8  # weights up to which a model is converted to float64


def independence_of_all_tokens(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Check that the scores vary with the tokens at all."""
    ids = samples.ids()
    scores = run(adapter, ids)
    others = run(adapter, {side: samples.others(side, rows) for side, rows in ids.items()})
    if not scores.isfinite().any() or relative_change(scores, others) > 0:
        return None
    return "all tokens replaced by others change no score at all, so that no dependence can be seen in the scores"


def probabilities(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Check that the scores of a position are not yet normalised by a softmax: not negative and with the sum 1."""
    scores = run(adapter, samples.ids())
    if scores.size(-1) < 3 or not bool((scores >= 0).all()):
        return None
    deviation = float((scores.sum(-1) - 1).abs().max())
    if not deviation < max(_PROBABILITY, adapter.tolerances.other_shape):
        return None
    return (
        f"at all {scores[..., 0].numel()} positions the {scores.size(-1)} scores lie between 0 and "
        f"{float(scores.max()):.2g} and have the sum 1"
    )


def ignored_order(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Check that another order of tokens changes the scores; the first and the last tokens keep their places.

    In a target the tokens before the last two are permuted, and the scores of the last position compared. A causal
    model of several layers sees the order even without positions: only a single layer shows that they are missing.
    """
    if adapter.module is not None and weight_count(adapter.module) <= FOR_DOUBLE:
        with suppress(Exception), in_precision(adapter.module, torch.float64):  # a model may name float32 itself
            return _ignored_in_double(adapter, samples)
    rounding = _MERE_ROUNDING * adapter.tolerances.rounding
    return _ignored_sides(adapter, samples, lambda order, tokens: tokens > _LARGE and order <= rounding)


def _ignored_in_double(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Return the evidence that the order of the tokens of some side is ignored, also with stronger matrices."""

    def ignored(order: float, tokens: float) -> bool:
        return order <= _SAME_ORDER * tokens

    evidence = _ignored_sides(adapter, samples, ignored)
    if evidence is not None:
        with suppress(UsageError), stronger_matrices(adapter.module, STRONGER):
            return evidence if _ignored_sides(adapter, samples, ignored) else None
    return evidence


def _ignored_sides(adapter: ModelAdapter, samples: Samples, ignored: Callable[[float, float], bool]) -> str | None:
    """Return the evidence that the order of the tokens of some side is ignored.

    `ignored` is a function of the changes of the scores by another order and by other tokens.

    Raises:
        UsageError: a score is NaN or infinite, so that no change can be measured.
    """
    length = {} if not samples.longer else {"source": 9, "target": 9}
    for side in adapter.sides:
        ids = samples.ids(**length)
        moved = torch.arange(1, ids[side].size(1) - (1 if side == "source" else 2))
        order = torch.arange(ids[side].size(1))
        order[moved] = moved.roll(1)  # neighbours differ, so that each of these positions gets another token
        others = ids[side].clone()
        others[:, moved] = samples.others(side, ids[side])[:, moved]
        scores, permuted, replaced = (
            run(adapter, {**ids, side: rows}) for rows in (ids[side], ids[side][:, order], others)
        )
        if side == "target":
            scores, permuted, replaced = (side_scores[:, -1:] for side_scores in (scores, permuted, replaced))
        elif adapter.kind == "encoder" and scores.size(1) == len(order):
            scores, replaced = scores[:, order], replaced[:, order]
        changes = relative_change(scores, permuted), relative_change(scores, replaced)
        if not all(map(math.isfinite, changes)):
            raise UsageError(f"scores of {len(order)} {side} tokens are NaN or infinite")
        if len(moved) >= 3 and changes[1] > 0 and ignored(*changes):
            return (
                f"{len(moved)} {side} tokens in another order change the scores by {percentage(changes[0])} of "
                f"their spread, other tokens there by {percentage(changes[1])}"
            )
    return None


def depends_on_own_token(adapter: ModelAdapter, samples: Samples) -> bool | None:
    """Return whether the score at a target position depends on the token that is fed there.

    It does not if the model shifts its input itself. The result is None if the model has no target or raises an
    error, or if no score depends on any token. The mode of the model, its state and its weights are restored.
    """
    if "target" not in adapter.sides:
        return None
    try:
        with restore_modes(adapter.module), filled_zero_weights(adapter.module):
            if adapter.module is not None:
                adapter.module.eval()
            adapter = replace(adapter, state=adapter.state or ModuleState(adapter.module))
            ids = samples.ids()
            scores, others = run(adapter, ids), samples.others("target", ids["target"])
            dependent = relative_change(scores, run(adapter, {**ids, "target": others})) > 0
            for position in range(1, ids["target"].size(1)):
                target = ids["target"].clone()
                target[:, position] = others[:, position]
                new_scores = run(adapter, {**ids, "target": target})[:, position]
                if relative_change(scores[:, position], new_scores) > adapter.tolerances.same_shape:
                    return True
    except Exception:  # any exception of the user's model
        return None
    return False if dependent else None
