"""Check the outputs of a model: the invariants B, C, D, E and N.

Each check returns its evidence, a sentence with numbers, or None when all is well. Outputs are compared as numbers;
dependence is also read from gradients, which are exactly zero where there is none.

Shapes: B batch, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from manyheads.doctor.attention_tracer import AttentionTracer
from manyheads.doctor.catalogue import model_finding
from manyheads.doctor.model_adapter import ModelAdapter, Samples, with_padding
from manyheads.doctor.report import Finding, Report, make_report
from manyheads.doctor.tolerances import NO_GRADIENT, OTHER_SHAPE, SAME_SHAPE, relative_change
from manyheads.errors import ManyheadsError

__all__ = [
    "OUTPUT_CHECKS",
    "STEPPING",
    "LengthLimit",
    "OutputCheck",
    "Stepping",
    "check_stepper",
    "find_limit",
]

MORE_PADDING = (3, 6)
FIRST_LENGTH = 32
STEPPING = "step-by-step decoding gives the scores of teacher forcing"


def randomness(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Call the model twice with different states of the random generator."""
    ids = samples.ids()
    with torch.no_grad():
        first, second = adapter(ids), adapter(ids, seed=1)
    change = relative_change(first, second)
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
        change = relative_change(scores[:, :position], run(adapter, ids | {"target": mixed})[:, :position])
        if change > SAME_SHAPE:
            return (
                f"other target tokens from position {position + 1} on change the scores at positions 1 to "
                f"{position} by {change:.1%} of their spread"
            )
    for position, gradient in gradients(adapter, ids, "target", range(length - 1)):
        later = float(gradient[:, position + 1 :].abs().max())
        if later > NO_GRADIENT * float(gradient.abs().max()):
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
    change = relative_change(before, after)
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
        change = relative_change(scores, padded)
        if not change <= OTHER_SHAPE:
            return f"{amount} more padded source positions change the scores by {change:.1%} of their spread"
    length = ids["source"].size(1)
    padded_ids = ids | {"source": with_padding(ids["source"], pad, MORE_PADDING[0])}
    for _, gradient in gradients(adapter, padded_ids, "source", [slice(0, real)]):
        largest = float(gradient[:, length:].abs().max())
        if largest > NO_GRADIENT * float(gradient.abs().max()):
            return f"the scores have a gradient of {largest:.2g} by what is read at padded source positions"
    return None


def dependence_on_left_padding(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Check that real positions do not depend on padding before the text of the first side (invariant C)."""
    ids, side = samples.ids(), adapter.sides[0]
    before = torch.full((len(ids[side]), MORE_PADDING[0]), adapter.pad or 0)
    padded = run(adapter, ids | {side: torch.cat([before, ids[side]], 1)})
    scores = run(adapter, ids)
    change = relative_change(scores, padded[:, -scores.size(1) :])
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
    reordered = run(adapter, {side: rows[order] for side, rows in ids.items()})
    changes = {
        "alone": relative_change(scores, alone),
        "in another order": relative_change(scores[order], reordered),
    }
    for condition, change in changes.items():
        if not change <= OTHER_SHAPE:
            return (
                f"rows {condition} give scores that differ by {change:.1%} of their spread from those of the batch"
            )
    return None


def independence_of_the_source(adapter: ModelAdapter, samples: Samples) -> str | None:
    """Check that other sources change the scores (invariant N)."""
    ids = samples.ids()
    change = relative_change(
        run(adapter, ids), run(adapter, ids | {"source": samples.others("source", ids["source"])})
    )
    if change > 0:
        return None
    return "all source tokens replaced by others change no score at all"


@dataclass(frozen=True)
class OutputCheck:
    """Check of the outputs of a model in eval().

    Attributes:
        symptom: name under which the evidence is stored.
        sentence: statement that is true of a sound model, as the report lists it.
        observe: function that calls a model with samples and returns the evidence, None where all is well.
        needs: conditions of the check: sides of the model, an id of padding, a request for left padding.
    """

    symptom: str
    sentence: str
    observe: Callable[[ModelAdapter, Samples], str | None]
    needs: tuple[str, ...] = ()

    def possible(self, adapter: ModelAdapter, *, left_padding: bool) -> bool:
        """Return whether the check can be made of a model."""
        available = {"pad": adapter.pad is not None, "left_padding": left_padding}
        available |= {side: side in adapter.sides for side in ("source", "target")}
        return all(available[need] for need in self.needs)

    def reason(self, adapter: ModelAdapter) -> str:
        """Return why the check cannot be made of a model, empty where it does not apply."""
        if not {"source", "target"} & {*self.needs} <= {*adapter.sides}:
            return ""
        return "no id of padding was given" if adapter.pad is None else "left_padding was not given"


OUTPUT_CHECKS = (
    OutputCheck("random", "eval() makes the model deterministic", randomness),
    OutputCheck("not_finite", "scores are numbers", not_finite),
    OutputCheck("future", "no position depends on later target tokens", dependence_on_the_future, ("target",)),
    OutputCheck("padded_query", "padded target positions do not see the future", padded_query, ("target", "pad")),
    OutputCheck("padding", "results do not depend on source padding", dependence_on_padding, ("source", "pad")),
    OutputCheck("left_padding", "results do not depend on padding before the text", dependence_on_left_padding,
                ("left_padding", "pad")),
    OutputCheck("neighbours", "results do not depend on the rest of the batch", dependence_on_neighbours),
    OutputCheck("unread", "scores depend on the source", independence_of_the_source, ("source", "target")),
)  # fmt: skip


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
            error_there = error_at(adapter, samples, side, middle)
            passed, failed, error = (passed, middle, error_there) if error_there else (middle, failed, error)
        if error is not None:
            return LengthLimit(side, passed, error)
    return None


def error_at(adapter: ModelAdapter, samples: Samples, side: str, length: int) -> Exception | None:
    """Return the exception at a length of one side, the other side being short; None where there is none."""
    lengths = {"source": 3, "target": 2} | {side: length}
    try:
        run(adapter, samples.ids(batch=1, source=lengths["source"], target=lengths["target"]))
    except Exception as error:  # any exception of the user's model
        return error
    return None


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


class Stepping(Protocol):
    """Decoder that keeps its state between tokens."""

    def step(self, tokens: Tensor) -> Tensor:
        """Feed the next token of each row (B,); return scores or log-probabilities of the following one (B, V)."""
        ...


@torch.no_grad()
def check_stepper(adapter: ModelAdapter, samples: Samples, start: Callable[[Tensor], Stepping]) -> Report:
    """Feed a target token by token and all at once, and compare the probabilities."""
    ids = samples.ids()
    at_once = adapter(ids).log_softmax(-1)
    stepper = start(ids[adapter.sides[0]].to(adapter.device))
    target = ids["target"].to(adapter.device)
    findings: list[Finding] = []
    for position in range(target.size(1)):
        step = stepper.step(target[:, position]).float().log_softmax(-1)
        change = relative_change(at_once[:, position], step)
        if not change <= OTHER_SHAPE:
            evidence = f"at step {position + 1} the log-probabilities differ by {change:.1%} of their spread"
            findings.append(model_finding("cache-differs", evidence))
            break
    return make_report(findings, [STEPPING])
