"""What a model's outputs show, whatever is inside: the invariants B, C, D and N.

Each function returns what was seen, a sentence with its numbers, or None when all is well. Outputs are compared
as numbers, and dependence is also read from gradients, where "not at all" is exactly zero.

Shapes: B batch, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from manyheads.doctor.listening import Listener
from manyheads.doctor.patient import Patient
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
    """What was seen; None where all is well or nothing could be asked.

    Attributes:
        random: two calls in eval() differ.
        not_finite: scores are NaN or infinite.
        future: a position depends on later target tokens.
        padded_query: a padded position depends on later target tokens, though real ones need not.
        padding: real positions depend on the amount or the content of source padding.
        left_padding: they depend on padding before the text.
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


def observe(patient: Patient, samples: Samples, *, left_padding: bool) -> Symptoms:
    """Ask a model in eval() all that can be asked of its outputs."""
    writes, reads = "target" in patient.sides, "source" in patient.sides
    padded = patient.pad is not None
    return Symptoms(
        random=randomness(patient, samples),
        not_finite=not_finite(patient, samples),
        future=dependence_on_the_future(patient, samples) if writes else None,
        padded_query=padded_query(patient, samples) if writes and padded else None,
        padding=dependence_on_padding(patient, samples) if reads and padded else None,
        left_padding=dependence_on_left_padding(patient, samples) if left_padding and padded else None,
        neighbours=dependence_on_neighbours(patient, samples),
        unread=independence_of_the_source(patient, samples) if reads and writes else None,
    )


def randomness(patient: Patient, samples: Samples) -> str | None:
    """Two calls with another state of the random generator."""
    ids = samples.ids()
    with torch.no_grad():
        first, second = patient(ids), patient(ids, seed=1)
    change = relative(first, second)
    if change <= SAME_SHAPE:
        return None
    unreached = "; the function names no module, so that eval() could not be called here: call it before"
    return f"the same ids twice give scores that differ by {change:.1%} of their spread" + (
        unreached if patient.module is None else ""
    )


def not_finite(patient: Patient, samples: Samples) -> str | None:
    """Scores at real positions; rows of different lengths."""
    ids = samples.ids()
    if patient.pad is not None:
        ids = {side: with_padding(rows, patient.pad, 2) for side, rows in ids.items()}
    scores = run(patient, ids)[:, : ids[patient.sides[-1]].size(1) - 2]
    bad = int((~scores.isfinite()).sum())
    return f"{bad} of {scores.numel()} scores of real positions are NaN or infinite" if bad else None


def dependence_on_the_future(patient: Patient, samples: Samples) -> str | None:
    """B: another token at t + 1 and later changes nothing at positions up to t, in values and in gradients."""
    ids = samples.ids()
    scores, changed = run(patient, ids), samples.others("target", ids["target"])
    length = ids["target"].size(1)
    for place in range(1, length):
        mixed = torch.cat([ids["target"][:, :place], changed[:, place:]], 1)
        change = relative(scores[:, :place], run(patient, ids | {"target": mixed})[:, :place])
        if change > SAME_SHAPE:
            return (
                f"other target tokens from position {place + 1} on change the scores at positions 1 to {place} "
                f"by {change:.1%} of their spread"
            )
    for place, gradient in gradients(patient, ids, "target", range(length - 1)):
        later = float(gradient[:, place + 1 :].abs().max())
        if later > 1e-9 * float(gradient.abs().max()):
            return f"the scores at position {place + 1} have a gradient of {later:.2g} by later target tokens"
    return None


def padded_query(patient: Patient, samples: Samples) -> str | None:
    """C: padding inside a target; its position still sees nothing of what comes after it."""
    ids = samples.ids()
    place = 2
    target = ids["target"].clone()
    target[:, place] = patient.pad or 0
    changed = target.clone()
    changed[:, place + 2 :] = samples.others("target", target)[:, place + 2 :]
    before, after = (run(patient, ids | {"target": rows})[:, place] for rows in (target, changed))
    if not before.isfinite().all():
        return "the scores at a padded target position are NaN or infinite"
    change = relative(before, after)
    if change > SAME_SHAPE:
        return (
            f"at a padded target position (3 of 5), other tokens at position 5 change the scores by {change:.1%} "
            "of their spread: it sees the future"
        )
    return None


def dependence_on_padding(patient: Patient, samples: Samples) -> str | None:
    """C: scores at real positions do not depend on how much padding the source has, nor on what is read there."""
    ids, pad = samples.ids(), patient.pad or 0
    real = ids[patient.sides[-1]].size(1)
    scores = run(patient, ids)
    for amount in MORE_PADDING:
        padded = run(patient, ids | {"source": with_padding(ids["source"], pad, amount)})[:, :real]
        change = relative(scores, padded)
        if not change <= OTHER_SHAPE:
            return f"{amount} more padded source positions change the scores by {change:.1%} of their spread"
    length = ids["source"].size(1)
    padded_ids = ids | {"source": with_padding(ids["source"], pad, MORE_PADDING[0])}
    for _, gradient in gradients(patient, padded_ids, "source", [slice(0, real)]):
        seen = float(gradient[:, length:].abs().max())
        if seen > 1e-9 * float(gradient.abs().max()):
            return f"the scores have a gradient of {seen:.2g} by what is read at padded source positions"
    return None


def dependence_on_left_padding(patient: Patient, samples: Samples) -> str | None:
    """C: the same for padding before the text, on the first side."""
    ids, side = samples.ids(), patient.sides[0]
    before = torch.full((len(ids[side]), MORE_PADDING[0]), patient.pad or 0)
    padded = run(patient, ids | {side: torch.cat([before, ids[side]], 1)})
    scores = run(patient, ids)
    change = relative(scores, padded[:, -scores.size(1) :])
    if not change <= OTHER_SHAPE:
        return (
            f"{MORE_PADDING[0]} padded positions before the text change the scores by {change:.1%} of their spread"
        )
    return None


def dependence_on_neighbours(patient: Patient, samples: Samples) -> str | None:
    """D: a row alone, among others, and among others in another order, all of the same length."""
    ids = samples.ids()
    scores = run(patient, ids)
    alone = torch.cat(
        [run(patient, {side: rows[[row]] for side, rows in ids.items()}) for row in range(len(scores))]
    )
    order = torch.arange(len(scores)).roll(1)
    turned = run(patient, {side: rows[order] for side, rows in ids.items()})
    for what, change in (("alone", relative(scores, alone)), ("in another order", relative(scores[order], turned))):
        if not change <= OTHER_SHAPE:
            return f"rows {what} give scores that differ by {change:.1%} of their spread from those of the batch"
    return None


def independence_of_the_source(patient: Patient, samples: Samples) -> str | None:
    """N: other sources change the scores."""
    ids = samples.ids()
    change = relative(run(patient, ids), run(patient, ids | {"source": samples.others("source", ids["source"])}))
    if change > 0:
        return None
    return "all source tokens replaced by others change no score at all"


@dataclass(frozen=True)
class LengthLimit:
    """The longest text that went through, and the error of one token more."""

    side: str
    length: int
    error: Exception


def find_limit(patient: Patient, samples: Samples, longest: int) -> LengthLimit | None:
    """Texts of growing length, up to what the model says it takes; None if all go through or the error says why."""
    longest = min(longest, patient.stated_limit or longest)
    for side in patient.sides:
        passed, length = 1, min(FIRST_LENGTH, longest)
        error = None
        while error is None and passed < longest:
            error = error_at(patient, samples, side, length)
            passed, length = (passed, length) if error else (length, min(2 * length, longest))
        if isinstance(error, (ManyheadsError, ValueError)):
            return None
        failed = length
        while error is not None and failed - passed > 1:
            middle = (passed + failed) // 2
            found = error_at(patient, samples, side, middle)
            passed, failed, error = (passed, middle, found) if found else (middle, failed, error)
        if error is not None:
            return LengthLimit(side, passed, error)
    return None


def error_at(patient: Patient, samples: Samples, side: str, length: int) -> Exception | None:
    """What is raised at a length of one side, the other one being short."""
    lengths = {"source": 3, "target": 2} | {side: length}
    try:
        run(patient, samples.ids(batch=1, source=lengths["source"], target=lengths["target"]))
    except Exception as error:  # any: whatever somebody's model raises
        return error
    return None


@torch.no_grad()
def run(patient: Patient, ids: Mapping[str, Tensor]) -> Tensor:
    """Scores on the CPU, without gradients."""
    return patient(ids).cpu()


def gradients(
    patient: Patient, ids: Mapping[str, Tensor], side: str, places: Iterator[int] | range | list[slice]
) -> Iterator[tuple[int, Tensor]]:
    """For positions of the scores, their gradient by the embeddings of a side: (place, (B, length, D)).

    Nothing where the model looks up no embeddings of these ids, or computes without gradients.
    """
    watched = {name: rows.to(patient.device) for name, rows in ids.items()}
    with torch.enable_grad(), Listener(watched, leaves=True) as listener:
        scores = patient(watched)
    leaf = listener.leaf(side)
    if leaf is None or not scores.requires_grad:
        return
    weights = torch.randn(scores.shape, generator=torch.Generator().manual_seed(2)).to(scores)
    for place in places:
        wanted = (scores[:, place] * weights[:, place]).nan_to_num().sum()
        (gradient,) = torch.autograd.grad(
            wanted, leaf, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        turned = gradient.transpose(0, 1) if gradient.shape[:2] != ids[side].shape else gradient
        yield place if isinstance(place, int) else 0, turned.cpu()


def relative(before: Tensor, after: Tensor) -> float:
    """The largest change as a share of the spread of the scores; infinite where one is not a number."""
    change = float((before - after).abs().max())
    spread = float(before.max() - before.min())
    return change / max(spread, 1e-30) if change == change and spread == spread else float("inf")
