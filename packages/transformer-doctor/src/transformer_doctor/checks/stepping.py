"""Compare a decoder that keeps a cache between tokens with teacher forcing (invariant E).

Both sides get the same ids, masks and positions, so that what the model makes of them does not matter: only that it
computes the same in pieces.

Shapes: B batch, T target length, n new tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from transformer_doctor.attention_tracer import AttentionTracer
from transformer_doctor.caching import CachedCall, Continuation, reorder_rows
from transformer_doctor.catalogue import in_case, model_finding
from transformer_doctor.checks.cache_faults import Comparison
from transformer_doctor.checks.calls import errors_of
from transformer_doctor.checks.dependence import FOR_DOUBLE, STRONGER
from transformer_doctor.checks.lengths import affordable_length, stated_windows
from transformer_doctor.errors import UsageError
from transformer_doctor.model_adapter import ModelAdapter, Samples, error_of
from transformer_doctor.module_state import in_precision, stronger_matrices, weight_count
from transformer_doctor.preparation import double_tolerances, measured_tolerances
from transformer_doctor.report import Finding, Report, attempt, make_report, report_on
from transformer_doctor.tolerances import percentage, relative_change
from transformer_doctor.trace import Attention

STEPPING = "step-by-step decoding gives the scores of teacher forcing"
_PIECES = "several tokens at a time are decoded as one at a time"
_PADDED = "padded prompts are decoded with a cache as without"
_REORDERED = "a cache whose rows are reordered continues them, as in a beam"
_CUT = "a cache that is cut continues what is left"
_STATIC = "a cache of fixed size gives the scores of teacher forcing"
_AGAIN = "a new text is decoded without a trace of the last one"
_LONG = "texts longer than a window or a block are decoded with a cache as without"
_LENGTH, _PROMPT = 13, 5  # tokens of a text and of its prompt: more than a small window, and distinct axis sizes
_LONG_LENGTH = 130  # tokens of a long text, more than the usual blocks of 64 and 128
_BLOCKS = (128, 64, 32)  # tokens of one where the model takes no more
_BEYOND, _LARGEST_WINDOW = 5, 512  # tokens that follow a window, and the largest window that is tried
_LAST_STEPS, _FEWEST_STEPS = 72, 8  # at the end of a long text: from before a block of 64 on; of a large model
_STEP_WEIGHTS = 7e7  # weights times such steps
_ROUNDED_CACHE = 1e-6  # rounding in float64 of a model whose cache stays in float32


class Stepping(Protocol):
    """Decoder that keeps its state between tokens."""

    def step(self, tokens: Tensor) -> Tensor:
        """Feed the next token of each row (B,); return scores or log-probabilities of the following one (B, V)."""
        ...


def check_stepper(adapter: ModelAdapter, samples: Samples, start: Callable[[Tensor], Stepping]) -> Report:
    """Feed target tokens one by one and all at once, and compare the probabilities; reorder rows, if it can."""

    @errors_of("stepper", start)
    def step(item: Continuation) -> tuple[Tensor, Stepping]:
        stepper = start(item.ids[adapter.sides[0]].to(adapter.device)) if item.cache is None else item.cache
        scores = stepper.step(item.ids["target"][:, item.first].to(adapter.device))
        return scores.float().log_softmax(-1)[:, None], stepper

    call = CachedCall(step, lambda item: adapter(item.ids).log_softmax(-1), None, single=True)
    return check_cache(adapter, samples, call, [STEPPING, _REORDERED])


class _Trial(NamedTuple):
    """One way to decode a text with a cache that holds `first` tokens; without a case the attentions tell it."""

    check: str
    words: str
    text: Continuation
    sizes: Sequence[int]
    first: int = 0
    begin: Callable[[], Any] = lambda: None
    case: str = ""

    def decode(self, adapter: ModelAdapter, call: CachedCall) -> Iterator[tuple[Continuation, Tensor]]:
        """Yield the pieces of the text with their scores (B, n, V), of fewer tokens if the model scores fewer."""
        adapter.restore()
        cache, first = self.begin(), self.first
        for size in self.sizes:
            item = self.text.up_to(first + size, first, cache)
            scores, cache = call.step(item)
            yield item, scores[:, -size:].float().cpu()
            first += size


@torch.no_grad()
def check_cache(
    adapter: ModelAdapter, samples: Samples, call: CachedCall, checks: Sequence[str] | None = None
) -> Report:
    """Decode texts in several ways with a cache, and compare the scores with those of a call without.

    `checks` are the sentences of the checks to make; all by default. In a new model a state that is lost may change
    the scores by less than rounding does in others: a small model is compared in float64, if it runs there; of
    others where nothing is found, texts are decoded again with stronger matrices, if the model then rounds no more.
    """
    double = double_tolerances(adapter, samples) if checks is None else None
    if double is not None:
        fine = replace(double, rounding=max(double.rounding, _ROUNDED_CACHE))
        report = Report()
        with suppress(Exception), in_precision(adapter.module, torch.float64):  # a cache may name float32 itself
            report = _decode_all(replace(adapter, tolerances=fine), samples, call, None)
        if STEPPING in report.asked:
            left = [check for check, _ in report.skipped]
            return report if report.findings else report + _decode_all(adapter, samples, call, left)
    report = _decode_all(adapter, samples, call, checks)
    if report.findings or STEPPING not in report.asked or weight_count(adapter.module) > FOR_DOUBLE:
        return report
    with suppress(Exception), stronger_matrices(adapter.module, STRONGER):  # of a model that fails with them
        strong = replace(adapter, tolerances=measured_tolerances(adapter, samples))
        if strong.tolerances.other_shape == adapter.tolerances.other_shape:
            found = _decode_all(strong, samples, call, report.asked).findings
            words = f"with matrices {STRONGER:g} times as strong"
            found = [replace(finding, evidence=f"{words}, {finding.evidence}") for finding in found]
            return report + make_report(found, [])
    return report


def _decode_all(adapter: ModelAdapter, samples: Samples, call: CachedCall, checks: Sequence[str] | None) -> Report:
    report, findings = Report(), list[Finding]()

    def compare(check: str, trials: Iterable[_Trial]) -> Report:
        lengths = []

        def find() -> Iterator[Finding]:
            for trial in trials:
                lengths.append(trial.text.ids["target"].size(1))
                yield from _findings(adapter, call, trial)

        findings.extend(islice(find(), 1))
        return report_on(check, tried=f"a text of {max(lengths, default=0)} tokens")

    ways = _trials(adapter, samples, call)
    for check, trials in {check: ways[check] for check in ways if checks is None or check in checks}.items():
        failed = [finding.check for finding in findings] + [skipped for skipped, _ in report.skipped]
        if STEPPING in failed or isinstance(trials, str):
            reason = trials if isinstance(trials, str) else "decoding one token at a time differs or fails"
            report += make_report([], [], [(check, reason)])
        else:
            report += attempt([check], partial(compare, check, trials))
    if len(findings) > 1:
        findings[0] = replace(findings[0], evidence="; ".join(finding.evidence for finding in findings))
    return report + make_report(findings[:1], [])


def _trials(adapter: ModelAdapter, samples: Samples, call: CachedCall) -> dict[str, Iterable[_Trial] | str]:
    """Return the ways to decode by check, or the reason why a check is not made."""
    length, ids = _LENGTH, samples.ids(target=_LENGTH)
    if error_of(adapter, ids) is not None:
        length, ids = samples.target, samples.ids()
    target, prompt = ids["target"], min(_PROMPT, length - 2)
    begin = 1 if call.single or adapter.kind == "encoder-decoder" else prompt
    if "source" in ids and adapter.pad is not None and not samples.fixed_length:
        ids["source"][-1, -2:] = adapter.pad
    text = Continuation(ids)
    plain = _Trial(STEPPING, "one token at a time", text, [begin] + [1] * (length - begin))
    placed = replace(text, positions=torch.arange(length).expand(target.shape))
    trials: dict[str, Iterable[_Trial] | str] = {STEPPING: [plain]}
    if call.takes_positions:
        trials[STEPPING] = [plain, plain._replace(words=f"{plain.words} at given positions", text=placed)]
    if adapter.kind == "decoder":
        trials[_PADDED] = "pad was not given" if adapter.pad is None else call.no_padding
        trials[_PADDED] = trials[_PADDED] or _padded(plain, adapter.pad or 0, call)
    order = torch.arange(len(target)).roll(1).clamp_max(max(len(target) - 2, 0))
    others = {side: samples.others(side, values) for side, values in ids.items()}
    shared = {side: values[:1].expand_as(values) for side, values in ids.items()}  # a beam has one source
    moved = replace(text, ids={**shared, "target": torch.cat([target[order, :prompt], target[:, prompt:]], 1)})
    longer = torch.cat([target[:, :prompt], others["target"][:, prompt : prompt + 2]], 1)

    def after(sources: Mapping[str, Tensor], target: Tensor) -> Any:
        cache, first = None, 0
        for end in range(begin, target.size(1) + 1):
            item = Continuation({**sources, "target": target}).up_to(end, first, cache)
            (_, cache), first = call.step(item), end
        return cache

    def reordered() -> Any:
        cache = after(shared, target[:, :prompt])
        with errors_of("stepper", cache) if call.single else nullcontext():
            return reorder_rows(call.owner, cache, order)

    def after_another() -> None:
        after(others, others["target"])

    behind = _Trial(
        _REORDERED, "whose rows were reordered", moved, [1] * (length - prompt), prompt, reordered, "cache-rows"
    )
    again = plain._replace(check=_AGAIN, words="after another text", begin=after_another, case="cache-kept")
    trials |= {_REORDERED: [behind], _AGAIN: [again]}
    if call.static is not None:
        fixed = partial(call.static, length)
        trials[_STATIC] = [plain._replace(check=_STATIC, words="of fixed size", begin=fixed)]
    if call.cut is not None:
        cut = call.cut
        left = behind._replace(check=_CUT, words="that was cut", text=text, case="cache-kept")
        trials[_CUT] = [left._replace(begin=lambda: cut(after(ids, longer), 2))]
    pieces = plain._replace(check=_PIECES, words="several tokens at a time", sizes=[prompt, length - prompt - 1, 1])
    trials |= {_LONG: "the model takes no longer texts", _PIECES: [pieces]}
    if (long := _long_text(adapter, samples, length)) is not None:
        end = long.ids["target"].size(1)
        affordable = int(_STEP_WEIGHTS / max(weight_count(adapter.module), 1))
        steps = end - begin if call.single else min(end - begin, _LAST_STEPS, max(_FEWEST_STEPS, affordable))
        # A decoder that begins with one token is asked for single tokens alone; several at once are the next check.
        sizes = [1] * steps if begin == 1 else [end - steps, *[1] * steps]
        words = f"{plain.words} up to token {sum(sizes)}"
        trials[_LONG] = [plain._replace(check=_LONG, words=words, text=long, sizes=sizes)]
        trials[_PIECES] = [pieces, pieces._replace(text=long, sizes=[end // 3, end // 3, end - end // 3 * 2])]
    return trials


def _long_text(adapter: ModelAdapter, samples: Samples, shorter: int) -> Continuation | None:
    """Return a text longer than the window that the model states, else as long as it takes; None if it is short."""
    windows = [window for window in stated_windows(adapter.module) if window <= _LARGEST_WINDOW]
    most = affordable_length(adapter, max(_LONG_LENGTH, *(window + _BEYOND for window in windows), 0))
    lengths = [length for length in (most, *_BLOCKS) if shorter < length <= most and not samples.fixed_length]
    texts = (samples.ids(batch=max(2, samples.smallest_batch), target=length) for length in lengths)
    return next((Continuation(ids) for ids in texts if error_of(adapter, ids) is None), None)


def _padded(plain: _Trial, pad: int, call: CachedCall) -> Iterator[_Trial]:
    """Yield ways to decode behind a prompt whose rows are padded on the left, and on the right."""
    ids, prompt = plain.text.ids, plain.sizes[0]
    for side in ("left", "right"):
        real = torch.ones_like(ids["target"], dtype=torch.bool)
        for row in range(1, len(real)):
            amount = min(1 + row % 3, prompt - 1)
            real[row, slice(amount) if side == "left" else slice(prompt - amount, prompt)] = False
        text = Continuation({**ids, "target": ids["target"].masked_fill(~real, pad)}, real=real)
        padded = plain._replace(check=_PADDED, words=f"behind a prompt that is padded on the {side}", text=text)
        yield padded
        if side == "left" and call.takes_positions:
            text = replace(text, positions=(real.cumsum(1) - 1).clamp_min(0))
            yield padded._replace(words=f"{padded.words}, at given positions", text=text)


def _findings(adapter: ModelAdapter, call: CachedCall, trial: _Trial) -> Iterator[Finding]:
    """Yield the finding about a way to decode that gives other scores than a call without cache.

    Raises:
        UsageError: scores depend on the number of tokens that follow without a cache too, as where an attention
            takes the best of keys that are equally good.
    """

    def plain(length: int) -> Tensor:
        adapter.restore()
        return call.plain(trial.text.up_to(length)).float().cpu()

    whole, tolerance = plain(trial.text.ids["target"].size(1)), adapter.tolerances.other_shape
    real = torch.ones(whole.shape[:2], dtype=torch.bool) if trial.text.real is None else trial.text.real
    changes: dict[int, float] = {}
    pieces: dict[int, int] = {}
    ends: list[int] = []
    for number, (item, scores) in enumerate(trial.decode(adapter, call)):
        ends.append(item.ids["target"].size(1))
        for position in range(ends[-1] - scores.size(1), ends[-1]):
            rows, pieces[position] = real[:, position], number
            changes[position] = relative_change(whole[rows, position], scores[rows, position - ends[-1]])
    wrong = [position for position, change in changes.items() if not change <= tolerance]
    if not wrong or whole[real].isnan().any():
        return
    for end in ends[: pieces[wrong[0]] + 1]:
        if not relative_change(whole[:, :end][real[:, :end]], plain(end)[real[:, :end]]) <= tolerance:
            raise UsageError("scores depend on the number of tokens that follow, even without a cache")
    evidence = (
        f"decoded with a cache {trial.words}, the scores of token {wrong[0] + 1} differ by "
        f"{percentage(changes[wrong[0]])} of their spread, and those of {len(wrong)} of {len(changes)} tokens"
    )
    severity = "warning" if trial.check == _PIECES else None  # many models take one token at a time
    finding = replace(model_finding("cache-differs", evidence, severity), check=trial.check)
    if trial.case:
        yield in_case(finding, trial.case)
        return
    decoding = trial.decode(adapter, call)
    for _ in range(pieces[next(filter(None, wrong), wrong[0])]):  # an attention to a single token tells nothing
        next(decoding)
    with AttentionTracer({}) as step:
        item, _ = next(decoding)
    tokens = item.ids["target"]

    def attentions(target: Tensor, item: Continuation) -> list[Attention]:
        adapter.restore()
        with AttentionTracer({}) as tracer:
            call.plain(replace(item, ids={**item.ids, "target": target}, first=0, cache=None))
        return tracer.attentions

    def repeat() -> list[Attention]:
        return attentions(tokens[:, -1:].expand(-1, tokens.size(1) + 1), Continuation(item.ids))

    compared = Comparison(
        step.attentions, attentions(tokens, item), tokens.size(1) - item.first, tokens.size(1),
        adapter.tolerances.other_shape, repeat, padded=item.real is not None,
    )  # fmt: skip
    yield compared.explain(finding)
