"""Ask what short texts cannot show: look-ahead and padding that long texts alone see, and ends that are lost.

Both sides of a comparison have the same shape, so that without a dependence they are equal to the last bit.

Shapes: B batch, S source length, T target length.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from transformer_doctor.catalogue import in_case, model_finding
from transformer_doctor.checks.behaviour import ON_LENGTH
from transformer_doctor.checks.calls import gradients, run
from transformer_doctor.checks.dependence import FOR_DOUBLE
from transformer_doctor.errors import UsageError, is_for_users
from transformer_doctor.guesses import attributes
from transformer_doctor.model_adapter import ModelAdapter, Samples, error_of, with_padding
from transformer_doctor.module_state import in_precision, weight_count
from transformer_doctor.report import Finding, Report, reason_of, report_on
from transformer_doctor.signatures import words_of
from transformer_doctor.tolerances import change_of_most, percentage, relative_change

_FIRST_LENGTH = 32
_WORK = 2e11  # weights times tokens of the longest text that is tried
# Powers of two, every other one with 5 tokens more: a text ends with a whole chunk, or with the beginning of one.
_LENGTHS = (13, 16, 37, 64, 133, 256, 517, 1024, 2048)
_SECONDS = 0.2  # of processor time after which no longer text is tried, shared by the sides
_TOKENS = 4096  # of a batch
_EVERY_CUT = 64  # length up to which later tokens are replaced from every position on
_UNREAD = 3  # tokens at the end of a source whose loss is a cut
_COMPARED = 3  # rows of a batch that are compared with shorter texts
_WINDOWS = {"window", "chunk"}  # words of settings
_ROUNDING = 1e-6  # share of the spread of the scores, or of the largest gradient, that rounding may cause
_REMAINS = 0.03  # share of a change in float32 that is left of it in float64, unless it is rounding

FUTURE = "no position depends on later target tokens in long texts"
SOURCE = "long sources are read to their end, and without padding"


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
    most = affordable_length(adapter, longest)
    for side in adapter.sides:
        error = _error_at(adapter, samples, side, most)
        if error is not None and (is_for_users(error) or isinstance(error, ValueError)):
            return None
        if error is not None:
            at = partial(_error_at, adapter, samples, side)
            first = bisect_left(range(most), True, 2, key=lambda length: at(length) is not None)
            return LengthLimit(side, first - 1, at(first) or error)
    return None


def affordable_length(adapter: ModelAdapter, longest: int) -> int:
    """Return a length in tokens: `longest`, or less where the model states a lower limit or has many weights."""
    affordable = int(_WORK / max(weight_count(adapter.module), 1))
    return min(longest, adapter.stated_limit or longest, max(_FIRST_LENGTH, affordable))


def _error_at(adapter: ModelAdapter, samples: Samples, side: str, length: int) -> Exception | None:
    lengths = {"source": 3, "target": 2} | {side: length}
    ids = samples.ids(batch=samples.smallest_batch, source=lengths["source"], target=lengths["target"])
    return error_of(adapter, ids)


def examine_lengths(
    adapter: ModelAdapter, samples: Samples, longest: int, limit: LengthLimit | None, known: Sequence[str]
) -> Report:
    """Ask of each side what long texts show, at growing lengths; `known` are the symptoms that short texts show."""
    report = Report()
    for side, check, question, symptom in (
        ("target", FUTURE, _look_ahead, "future"), ("source", SOURCE, _source_findings, "padding"),
    ):  # fmt: skip
        if side not in adapter.sides:
            continue
        no_numbers = any(finding.name == "not-a-number" for finding in report.findings)
        if no_numbers or {"random", "not_finite", "constant-scores", "neighbours", symptom} & {*known}:
            report += report_on(check, reason="short texts show a defect already")
            continue
        if side == "source" and adapter.pad is None:
            report += report_on(check, reason="pad was not given")
            continue
        most = limit.length if limit is not None and limit.side == side else affordable_length(adapter, longest)
        lengths = [length for length in _LENGTHS if length < most] + [most]
        report += _ask(adapter, partial(question, adapter, samples), check, lengths)
    return report


def tried_lengths(adapter: ModelAdapter, longest: int) -> str:
    """Return how long the texts of a check were, compared with the limit or the window that the model states."""
    window = max(stated_windows(adapter.module), default=0)
    words = f", {'beyond' if longest > window else 'within'} its window of {window}" if window else ""
    words = ", the limit that the model states" if longest == adapter.stated_limit else words
    return f"up to {longest} tokens{words}"


def stated_windows(module: nn.Module | None) -> list[int]:
    """Return the tokens of the windows, or of the chunks, that a module or its configuration states."""
    named = ((value, {*words_of(name)}) for name, value in attributes(module) if type(value) is int)
    return [value for value, words in named if words & _WINDOWS]


def _ask(
    adapter: ModelAdapter, question: Callable[[int], Iterator[Finding]], check: str, lengths: Sequence[int]
) -> Report:
    """Ask at one length after the other, up to the first finding, an error, or the end of its time."""
    start, passed, end = time.thread_time(), 0, ""
    budget = _SECONDS / len(adapter.sides)
    for length in lengths:
        if passed and time.thread_time() - start > budget:
            end = f"; longer ones would take more than {budget:g} s"
            break
        try:
            finding = next(question(length), None)
        except _NotANumber:
            finding = model_finding("not-a-number", f"some scores of texts of {length} tokens are NaN")
        except Exception as error:  # any exception of the user's model
            end = f"; with {length}, {reason_of(error)}"
            break
        if finding is not None:
            evidence = finding.evidence + (f"; with {passed} tokens nothing was seen" if passed else "")
            return report_on(check, [replace(finding, evidence=evidence, check=check)])
        passed = length
    if not passed:
        return report_on(check, reason=end.removeprefix("; "))
    return report_on(check, tried=tried_lengths(adapter, passed) + end)


def _look_ahead(adapter: ModelAdapter, samples: Samples, length: int) -> Iterator[Finding]:
    """Yield a finding if other target tokens from a position on change scores before it; each row has its own."""
    for cuts in torch.tensor(_cuts(length)).split(max(1, _TOKENS // length)):
        cuts = cuts.repeat(1 + (len(cuts) < samples.smallest_batch))
        ids = samples.ids(batch=len(cuts), target=length)
        later = torch.arange(length) >= cuts[:, None]
        other = ids | {"target": torch.where(later, samples.others("target", ids["target"]), ids["target"])}
        scores = _scores(adapter, ids)
        differs = (scores != _scores(adapter, other)).any(-1) & ~later
        change = _confirmed_change(adapter, (ids, other), differs) if differs.any() else 0.0
        if change:
            ahead = torch.where(differs.any(1), cuts - differs.long().argmax(1), 0)
            row = int(ahead.argmax())
            seeing = differs[row].nonzero().flatten().tolist()
            evidence = (
                f"in texts of {length} tokens, other target tokens from position {int(cuts[row]) + 1} on "
                f"change the scores at positions {seeing[0] + 1} to {seeing[-1] + 1}, up to {int(ahead[row])} "
                f"positions ahead of them, by {percentage(change)} of their spread"
            )
            yield in_case(model_finding("sees-the-future", evidence), "mask-in-long-texts")
    end, tolerance = 3 * length // 4 - 1, adapter.tolerances.other_shape
    part = {side: rows[:_COMPARED] for side, rows in ids.items()}
    beginning = _scores(adapter, part | {"target": part["target"][:, :end]})
    change = change_of_most(scores[:_COMPARED, :end], beginning, tolerance)
    if change > tolerance:
        evidence = ON_LENGTH.format(end=end, length=length, change=percentage(change))
        yield model_finding("depends-on-the-length", evidence)


class _NotANumber(Exception):
    """A score of a long text is NaN."""


def _cuts(length: int) -> Sequence[int]:
    """Return the positions from which on tokens are replaced: all, or in a long text three."""
    power = 1 << ((length - 1).bit_length() - 1)  # 512 of 517 and of 1024 tokens
    return range(1, length) if length <= _EVERY_CUT else (3 * power // 4 - 3, power, length - 1)


def _scores(adapter: ModelAdapter, ids: Mapping[str, Tensor]) -> Tensor:
    scores = run(adapter, ids)
    if bool(scores.isnan().any()):
        raise _NotANumber
    return scores


def _confirmed_change(adapter: ModelAdapter, pair: Sequence[Mapping[str, Tensor]], differs: Tensor) -> float:
    """Return the change of the scores between two batches where they differ (B, T), 0 if it may be rounding.

    A dependence has the same effect in float64; rounding, and a tie that it decides, have none there.
    """

    def change() -> float:
        return relative_change(*(run(adapter, ids)[differs] for ids in pair))

    plain = precise = change()
    least = adapter.tolerances.same_shape
    if adapter.module is not None and weight_count(adapter.module) <= FOR_DOUBLE:
        with suppress(Exception), in_precision(adapter.module, torch.float64):  # a model may name float32 itself
            precise, least = change(), max(_ROUNDING, _REMAINS * plain)
    return plain if precise > least else 0.0


def _source_findings(adapter: ModelAdapter, samples: Samples, length: int) -> Iterator[Finding]:
    """Yield findings about an end of the source that is not read, and about padding that is."""
    size, real = samples.smallest_batch, length - length // 4
    ids = samples.ids(batch=size, source=length)
    scores, others = _scores(adapter, ids), samples.others("source", ids["source"])

    def reads(first: int) -> bool:
        changed = torch.cat([ids["source"][:, :first], others[:, first:]], 1)
        return not torch.equal(scores, _scores(adapter, {**ids, "source": changed}))

    if adapter.kind == "encoder-decoder" and not reads(length - _UNREAD) and reads(0):
        end = bisect_left(range(length - _UNREAD), True, key=lambda first: not reads(first))
        evidence = f"of a source of {length} tokens, those from position {end + 1} on change no score"
        yield model_finding("silent-cut", evidence)
    padded = ids | {"source": with_padding(ids["source"][:, :real], adapter.pad or 0, length - real)}
    scored = slice(0, real if adapter.kind == "encoder" else None)
    found = [gradient for _, gradient in gradients(adapter, padded, "source", [scored])]
    if not found:
        raise UsageError("no embeddings of the source were seen")
    largest = float(found[0][:, real:].abs().max())
    if largest > _ROUNDING * float(found[0].abs().max()):
        evidence = f"with {real} tokens and {length - real} of padding, scores have a gradient of {largest:.2g}"
        yield model_finding("no-source-padding-mask", f"{evidence} by what is read at padded positions")
