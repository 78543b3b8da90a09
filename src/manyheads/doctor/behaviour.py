"""Check the outputs of a model: the invariants B, C, D and N.

Each check returns its evidence, a sentence with numbers, or None when all is well. Outputs are compared as numbers;
dependence is also read from gradients, which are exactly zero where there is none.

Shapes: B batch, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from manyheads.doctor.attention_tracer import AttentionTracer
from manyheads.doctor.model_adapter import ModelAdapter
from manyheads.doctor.samples import Samples, with_padding
from manyheads.errors import ManyheadsError

__all__ = ["LengthLimit", "Symptoms", "find_limit", "observe"]

# Shares of the spread of the scores. Arithmetic of another shape is rounded differently, about 1e-6 of it; the
# effects that are looked for are beyond 1e-3 even in a model at its start with weights of deviation 0.02.
SAME_SHAPE, OTHER_SHAPE = 1e-5, 1e-4
MORE_PADDING = (3, 6)
FIRST_LENGTH = 32


@dataclass(frozen=True)
class Symptoms:
    """Evidence of each check; None where all is well or the check does not apply.

    Attributes:
        random: two calls in eval() differ.
        not_finite: scores are NaN or infinite.
        future: a position depends on later target tokens.
        padded_query: a padded position depends on later target tokens, though real ones need not.
        padding: real positions depend on the amount or the content of source padding.
        left_padding: real positions depend on padding before the text.
        neighbours: a row depends on the other rows, all of the same length.
        unread: scores do not depend on the source.
    """

    random: str | None = None
    not_finite: str | None = None
    future: str | None = None
    padded_query: str | None = None
    padding: str | None = None
    left_padding: str | None = None
    neighbours: str | None = None
    unread: str | None = None


def observe(adapter: ModelAdapter, samples: Samples, *, left_padding: bool) -> Symptoms:
    """Make every check that applies to a model in eval()."""
    writes, reads = "target" in adapter.sides, "source" in adapter.sides
    padded = adapter.pad is not None
    return Symptoms(
        random=randomness(adapter, samples),
        not_finite=not_finite(adapter, samples),
        future=dependence_on_the_future(adapter, samples) if writes else None,
        padded_query=padded_query(adapter, samples) if writes and padded else None,
        padding=dependence_on_padding(adapter, samples) if reads and padded else None,
        left_padding=dependence_on_left_padding(adapter, samples) if left_padding and padded else None,
        neighbours=dependence_on_neighbours(adapter, samples),
        unread=independence_of_the_source(adapter, samples) if reads and writes else None,
    )


def randomness(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Call the model twice with different states of the random generator."""
    ids = samples.ids()
    with torch.no_grad():
        first, second = adapter(ids), adapter(ids, seed=1)
    change = relative(first, second)
    if change <= SAME_SHAPE:
        return None
    unreached = "; the function names no module, so that eval() could not be called here: call it before"
    return f"the same ids twice give scores that differ by {change:.1%} of their spread" + (
        unreached if adapter.module is None else ""
    )


def not_finite(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Check that scores at real positions are finite."""
    ids = samples.ids()
    if adapter.pad is not None:
        ids = {side: with_padding(rows, adapter.pad, 2) for side, rows in ids.items()}
    scores = run(adapter, ids)[:, : ids[adapter.sides[-1]].size(1) - 2]
    bad = int((~scores.isfinite()).sum())
    return f"{bad} of {scores.numel()} scores of real positions are NaN or infinite" if bad else None


def dependence_on_the_future(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Check that tokens from t + 1 on change nothing up to t, in values and in gradients (invariant B)."""
    ids = samples.ids()
    scores, changed = run(adapter, ids), samples.others("target", ids["target"])
    length = ids["target"].size(1)
    for position in range(1, length):
        mixed = torch.cat([ids["target"][:, :position], changed[:, position:]], 1)
        change = relative(scores[:, :position], run(adapter, ids | {"target": mixed})[:, :position])
        if change > SAME_SHAPE:
            return (
                f"other target tokens from position {position + 1} on change the scores at positions 1 to "
                f"{position} by {change:.1%} of their spread"
            )
    for position, gradient in gradients(adapter, ids, "target", range(length - 1)):
        later = float(gradient[:, position + 1 :].abs().max())
        if later > 1e-9 * float(gradient.abs().max()):
            return f"the scores at position {position + 1} have a gradient of {later:.2g} by later target tokens"
    return None


def padded_query(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Check that a padded position inside a target sees no later token (invariant C)."""
    ids = samples.ids()
    position = 2
    target = ids["target"].clone()
    target[:, position] = adapter.pad or 0
    changed = target.clone()
    changed[:, position + 2 :] = samples.others("target", target)[:, position + 2 :]
    before, after = (run(adapter, ids | {"target": rows})[:, position] for rows in (target, changed))
    if not before.isfinite().all():
        return "the scores at a padded target position are NaN or infinite"
    change = relative(before, after)
    if change > SAME_SHAPE:
        return (
            f"at a padded target position (3 of 5), other tokens at position 5 change the scores by {change:.1%} "
            "of their spread: it sees the future"
        )
    return None


def dependence_on_padding(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Check that real positions depend neither on the amount nor on the content of source padding (invariant C)."""
    ids, pad = samples.ids(), adapter.pad or 0
    real = ids[adapter.sides[-1]].size(1)
    scores = run(adapter, ids)
    for amount in MORE_PADDING:
        padded = run(adapter, ids | {"source": with_padding(ids["source"], pad, amount)})[:, :real]
        change = relative(scores, padded)
        if not change <= OTHER_SHAPE:
            return f"{amount} more padded source positions change the scores by {change:.1%} of their spread"
    length = ids["source"].size(1)
    padded_ids = ids | {"source": with_padding(ids["source"], pad, MORE_PADDING[0])}
    for _, gradient in gradients(adapter, padded_ids, "source", [slice(0, real)]):
        seen = float(gradient[:, length:].abs().max())
        if seen > 1e-9 * float(gradient.abs().max()):
            return f"the scores have a gradient of {seen:.2g} by what is read at padded source positions"
    return None


def dependence_on_left_padding(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Check that real positions do not depend on padding before the text of the first side (invariant C)."""
    ids, side = samples.ids(), adapter.sides[0]
    before = torch.full((len(ids[side]), MORE_PADDING[0]), adapter.pad or 0)
    padded = run(adapter, ids | {side: torch.cat([before, ids[side]], 1)})
    scores = run(adapter, ids)
    change = relative(scores, padded[:, -scores.size(1) :])
    if not change <= OTHER_SHAPE:
        return (
            f"{MORE_PADDING[0]} padded positions before the text change the scores by {change:.1%} of their spread"
        )
    return None


def dependence_on_neighbours(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Compare a row alone, in a batch and in a batch in another order, all of one length (invariant D)."""
    ids = samples.ids()
    scores = run(adapter, ids)
    alone = torch.cat(
        [run(adapter, {side: rows[[row]] for side, rows in ids.items()}) for row in range(len(scores))]
    )
    order = torch.arange(len(scores)).roll(1)
    turned = run(adapter, {side: rows[order] for side, rows in ids.items()})
    for what, change in (("alone", relative(scores, alone)), ("in another order", relative(scores[order], turned))):
        if not change <= OTHER_SHAPE:
            return f"rows {what} give scores that differ by {change:.1%} of their spread from those of the batch"
    return None


def independence_of_the_source(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Check that other sources change the scores (invariant N)."""
    ids = samples.ids()
    change = relative(run(adapter, ids), run(adapter, ids | {"source": samples.others("source", ids["source"])}))
    if change > 0:
        return None
    return "all source tokens replaced by others change no score at all"


@dataclass(frozen=True)
class LengthLimit:
    """Longest text that the model takes, and the error that one more token raises."""

    side: str
    length: int
    error: Exception


def find_limit(adapter: ModelAdapter, samples: Samples, longest: int) -> LengthLimit | None:
    """Find the longest text by bisection; None if all lengths work or the error names the limit.

    Lengths go up to `longest` tokens, or to a lower limit that the model states.
    """
    longest = min(longest, adapter.stated_limit or longest)
    for side in adapter.sides:
        passed, length = 1, min(FIRST_LENGTH, longest)
        error = None
        while error is None and passed < longest:
            error = error_at(adapter, samples, side, length)
            passed, length = (passed, length) if error else (length, min(2 * length, longest))
        if isinstance(error, (ManyheadsError, ValueError)):
            return None
        failed = length
        while error is not None and failed - passed > 1:
            middle = (passed + failed) // 2
            found = error_at(adapter, samples, side, middle)
            passed, failed, error = (passed, middle, found) if found else (middle, failed, error)
        if error is not None:
            return LengthLimit(side, passed, error)
    return None


def error_at(adapter: ModelAdapter, samples: Samples, side: str, length: int) -> Exception | None:
    """Return the exception at a length of one side, the other side being short; None where there is none."""
    lengths = {"source": 3, "target": 2} | {side: length}
    try:
        run(adapter, samples.ids(batch=1, source=lengths["source"], target=lengths["target"]))
    except Exception as error:  # any: whatever somebody's model raises
        return error
    return None


@torch.no_grad()
def run(adapter: ModelAdapter, ids: Mapping[str, Tensor]) -> Tensor:
    """Return the scores on the CPU, without gradients."""
    return adapter(ids).cpu()


def gradients(
    adapter: ModelAdapter, ids: Mapping[str, Tensor], side: str, positions: Iterator[int] | range | list[slice]
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
        turned = gradient.transpose(0, 1) if gradient.shape[:2] != ids[side].shape else gradient
        yield position if isinstance(position, int) else 0, turned.cpu()


def relative(before: Tensor, after: Tensor) -> float:
    """Return the largest change as a share of the spread of the scores; infinite where a score is NaN."""
    change = float((before - after).abs().max())
    spread = float(before.max() - before.min())
    return change / max(spread, 1e-30) if change == change and spread == spread else float("inf")
