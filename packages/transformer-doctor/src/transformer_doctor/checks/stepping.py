"""Compare a decoder that keeps a cache between tokens with teacher forcing (invariant E).

Both sides get the same ids, masks and positions, so that what the model makes of them does not matter: only that it
computes the same in pieces.

Shapes: B batch, T target length, n new tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from transformer_doctor.attention_tracer import AttentionTracer
from transformer_doctor.caching import CAPACITY, CachedCall, Continuation, reorder_rows
from transformer_doctor.catalogue import model_finding
from transformer_doctor.checks.cache_faults import Comparison
from transformer_doctor.checks.cases import in_case
from transformer_doctor.model_adapter import ModelAdapter, Samples, error_of
from transformer_doctor.report import Finding, Report, Severity, attempt, make_report
from transformer_doctor.tolerances import percentage, relative_change
from transformer_doctor.trace import Attention

STEPPING = "step-by-step decoding gives the scores of teacher forcing"
_PIECES = "several tokens at a time are decoded as one at a time"
_PADDED = "padded prompts are decoded with a cache as without"
_REORDERED = "a cache whose rows are reordered continues them, as in a beam"
_CUT = "a cache that is cut continues what is left"
_STATIC = "a cache of fixed size gives the scores of teacher forcing"
_AGAIN = "a new text is decoded without a trace of the last one"
_LENGTH, _PROMPT = 13, 5  # tokens of a text and of its prompt: more than a small window, and distinct axis sizes


class Stepping(Protocol):
    """Decoder that keeps its state between tokens."""

    def step(self, tokens: Tensor) -> Tensor:
        """Feed the next token of each row (B,); return scores or log-probabilities of the following one (B, V)."""
        ...


@torch.no_grad()
def check_stepper(adapter: ModelAdapter, samples: Samples, start: Callable[[Tensor], Stepping]) -> Report:
    """Feed a target token by token and all at once, and compare the probabilities."""
    ids = samples.ids()
    at_once, target = adapter(ids).float().log_softmax(-1), ids["target"].to(adapter.device)

    def decode() -> Iterator[Tensor]:
        stepper = start(ids[adapter.sides[0]].to(adapter.device))
        for position in range(target.size(1)):
            yield stepper.step(target[:, position]).float().log_softmax(-1)

    changes = {
        position: relative_change(at_once[:, position], scores) for position, scores in enumerate(decode())
    }
    wrong = _wrong(adapter, changes)
    if not wrong:
        return make_report([], [STEPPING])
    evidence = f"at step {wrong[0] + 1} the log-probabilities differ by {_extent(changes, wrong)}"
    item, decoding = Continuation({**ids, "target": target[:, : wrong[0] + 1]}, wrong[0]), decode()
    for _ in range(wrong[0]):
        next(decoding)
    finding = model_finding("cache-differs", evidence)
    return make_report(
        [_explain(adapter, finding, lambda item: adapter(item.ids), lambda: (next(decoding), item)[1])], [STEPPING]
    )


@dataclass(frozen=True)
class _Trial:
    """One way to decode a text with a cache.

    Attributes:
        check: sentence of the check.
        words: how the text was decoded, for the evidence.
        ids: ids of the text by side.
        sizes: numbers of target tokens of the pieces.
        first, begin: number of tokens that the first cache holds, and the function that returns it.
        real, positions: of the whole text, as in `Continuation`.
        case: case of the finding, empty where attentions tell it.
        severity: severity of the finding, the usual one where it is None.
    """

    check: str
    words: str
    ids: Mapping[str, Tensor]
    sizes: Sequence[int]
    first: int = 0
    begin: Callable[[], Any] = lambda: None
    real: Tensor | None = None
    positions: Tensor | None = None
    case: str = ""
    severity: Severity | None = None

    def item(self, length: int, first: int = 0, cache: Any = None) -> Continuation:
        """Return the tokens of the text from `first` up to a length."""
        parts = [None if part is None else part[:, :length] for part in (self.real, self.positions)]
        return Continuation({**self.ids, "target": self.ids["target"][:, :length]}, first, cache, *parts)

    def decode(self, adapter: ModelAdapter, call: CachedCall) -> Iterator[tuple[Continuation, Tensor]]:
        """Yield the pieces of the text with their scores (B, n, V), of fewer tokens if the model scores fewer."""
        _begin(adapter)
        cache, first = self.begin(), self.first
        for size in self.sizes:
            item = self.item(first + size, first, cache)
            scores, cache = call.step(item)
            yield item, scores[:, -size:].float().cpu()
            first += size


@torch.no_grad()
def check_cache(adapter: ModelAdapter, samples: Samples, call: CachedCall) -> Report:
    """Decode texts in several ways with a cache, and compare the scores with those of a call without."""
    report, findings = Report(), list[Finding]()

    def compare(trials: Sequence[_Trial]) -> Report:
        for trial in trials:
            findings.extend(_findings(adapter, call, trial))
        return make_report([], [trials[0].check])

    for check, trials in _trials(adapter, samples, call).items():
        if any(finding.check == STEPPING for finding in findings):
            report += make_report([], [], [(check, "decoding one token at a time differs already")])
        elif isinstance(trials, str):
            report += make_report([], [], [(check, trials)])
        else:
            report += attempt([check], partial(compare, trials))
    if len(findings) > 1:
        further = "; ".join(finding.evidence for finding in findings[1:])
        findings[0] = replace(findings[0], evidence=f"{findings[0].evidence}; {further}")
    return report + make_report(findings[:1], [])


def _trials(adapter: ModelAdapter, samples: Samples, call: CachedCall) -> dict[str, list[_Trial] | str]:
    """Return the ways to decode by check, or the reason why a check is not made."""
    length, prompt = _LENGTH, 1 if adapter.kind == "encoder-decoder" else _PROMPT
    ids = samples.ids(target=length)
    if error_of(adapter, ids) is not None:
        length, ids = samples.target, samples.ids()
    prompt = min(prompt, length - 2)
    target, rest = ids["target"], [1] * (length - prompt)
    if "source" in ids and adapter.pad is not None and not samples.fixed_length:
        ids["source"][-1, -2:] = adapter.pad
    plain = _Trial(STEPPING, "one token at a time", ids, [prompt, *rest])
    places = torch.arange(length).expand(target.shape)
    placed = replace(plain, words=f"{plain.words} at given positions", positions=places)
    trials: dict[str, list[_Trial] | str] = {STEPPING: [plain, placed][: 1 + call.takes_positions]}
    if adapter.kind == "decoder":  # a decoder beside an encoder begins with one token
        several = replace(plain, check=_PIECES, words="several tokens at a time", severity="warning")
        trials[_PIECES] = [replace(several, sizes=[prompt, length - prompt - 1, 1])]
        reason = "no id of padding was given" if adapter.pad is None else "the model is called without masks"
        padded = adapter.pad is not None and not call.without_masks
        trials[_PADDED] = [*_padded(plain, adapter.pad or 0, call)] if padded else reason
    order = torch.arange(len(target)).roll(1).clamp_max(max(len(target) - 2, 0))
    others = {side: samples.others(side, values) for side, values in ids.items()}
    shared = {side: values[:1].expand_as(values) for side, values in ids.items()}  # a beam has one source
    moved = {**shared, "target": torch.cat([target[order, :prompt], target[:, prompt:]], 1)}

    def after(prompt: Tensor, sources: Mapping[str, Tensor] = ids) -> Any:
        return call.step(Continuation({**sources, "target": prompt}))[1]

    trials[_REORDERED] = [
        _Trial(_REORDERED, "after its rows were reordered", moved, rest, prompt,
               lambda: reorder_rows(call.owner, after(target[:, :prompt], shared), order), case="cache-rows")
    ]  # fmt: skip
    trials[_AGAIN] = [
        replace(plain, check=_AGAIN, words="after another text", case="cache-kept",
                begin=lambda: after(others["target"], others) and None)
    ]  # fmt: skip
    if call.static is not None:
        begin = partial(call.static, ids["source"].size(1) if "source" in ids else 0, CAPACITY)
        trials[_STATIC] = [replace(plain, check=_STATIC, words="with a fixed size", begin=begin)]
    if call.cut is not None:
        cut, longer = call.cut, torch.cat([target[:, :prompt], others["target"][:, prompt : prompt + 2]], 1)
        trials[_CUT] = [
            _Trial(_CUT, "after two tokens were cut off", ids, rest, prompt, lambda: cut(after(longer), 2), case="cache-kept")
        ]
    return trials


def _padded(plain: _Trial, pad: int, call: CachedCall) -> Iterator[_Trial]:
    """Yield ways to decode behind a prompt whose rows are padded on the left, and on the right."""
    target, prompt = plain.ids["target"], plain.sizes[0]
    for side in ("left", "right"):
        real = torch.ones_like(target, dtype=torch.bool)
        for row in range(1, len(target)):
            amount = min(1 + row % 3, prompt - 1)
            real[row, slice(amount) if side == "left" else slice(prompt - amount, prompt)] = False
        ids = {**plain.ids, "target": target.masked_fill(~real, pad)}
        words = f"behind a prompt that is padded on the {side}"
        yield replace(plain, check=_PADDED, words=words, ids=ids, real=real)
        if side == "left" and call.takes_positions:
            positions = (real.cumsum(1) - 1).clamp_min(0)
            yield replace(plain, check=_PADDED, words=f"{words}, at given positions", ids=ids, real=real, positions=positions)


def _findings(adapter: ModelAdapter, call: CachedCall, trial: _Trial) -> Iterator[Finding]:
    """Yield the finding about a way to decode that gives other scores than a call without cache."""
    _begin(adapter)
    plain = call.plain(trial.item(trial.ids["target"].size(1))).float().cpu()
    real = torch.ones(plain.shape[:2], dtype=torch.bool) if trial.real is None else trial.real
    changes: dict[int, float] = {}
    pieces: dict[int, int] = {}
    for number, (item, scores) in enumerate(trial.decode(adapter, call)):
        end = item.ids["target"].size(1)
        for position in range(end - scores.size(1), end):
            rows, pieces[position] = real[:, position], number
            changes[position] = relative_change(plain[rows, position], scores[rows, position - end])
    wrong = _wrong(adapter, changes)
    if not wrong or plain[real].isnan().any():
        return
    evidence = f"decoded with a cache {trial.words}, the scores of token {wrong[0] + 1} differ by {_extent(changes, wrong)}"
    finding = replace(model_finding("cache-differs", evidence, trial.severity), check=trial.check)
    if trial.case:
        yield in_case(finding, trial.case)
        return
    decoding = trial.decode(adapter, call)
    for _ in range(pieces[wrong[0]]):
        next(decoding)
    yield _explain(adapter, finding, call.plain, lambda: next(decoding)[0])


def _explain(
    adapter: ModelAdapter,
    finding: Finding,
    plain: Callable[[Continuation], Tensor],
    make_step: Callable[[], Continuation],
) -> Finding:
    """Return a finding with the case that the attentions of a step show, beside those of a call without cache."""
    with AttentionTracer({}) as step:
        item = make_step()
    tokens = item.ids["target"]

    def attentions(target: Tensor, real: Tensor | None = None, positions: Tensor | None = None) -> list[Attention]:
        _begin(adapter)
        with AttentionTracer({}) as tracer:
            plain(Continuation({**item.ids, "target": target}, real=real, positions=positions))
        return tracer.attentions

    return Comparison(
        step.attentions,
        attentions(tokens, item.real, item.positions),
        tokens.size(1) - item.first,
        tokens.size(1),
        adapter.tolerances.other_shape,
        repeat=lambda: attentions(tokens[:, -1:].expand(-1, tokens.size(1) + 1)),
        padded=item.real is not None,
    ).explain(finding)


def _begin(adapter: ModelAdapter) -> None:
    """Make the next call of a model a first one."""
    if adapter.state is not None:
        adapter.state.restore()


def _wrong(adapter: ModelAdapter, changes: Mapping[int, float]) -> list[int]:
    """Return the positions whose scores differ by more than rounding."""
    return [position for position, change in changes.items() if not change <= adapter.tolerances.other_shape]


def _extent(changes: Mapping[int, float], wrong: Sequence[int]) -> str:
    """Return the size of the first difference, and how many tokens differ."""
    further = f", and those of {len(wrong)} of {len(changes)} tokens" if len(wrong) > 1 else ""
    return f"{percentage(changes[wrong[0]])} of their spread{further}"
