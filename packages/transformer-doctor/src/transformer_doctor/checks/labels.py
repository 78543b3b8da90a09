"""Check the labels of a traced training step.

Shapes: B batch, T length of the decoder's input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from transformer_doctor.catalogue import in_case, model_finding
from transformer_doctor.checks.step_tracer import IGNORED
from transformer_doctor.checks.training import BEGIN, UNCLEAR, UNKNOWN, TrainedBatch, align_texts, start_of
from transformer_doctor.model_adapter import ModelAdapter
from transformer_doctor.report import Finding

_MIN_SHARE = 0.9  # share of the positions from which on they are taken for all
# share of the usual weight from which on a position has a label, not label smoothing alone
_FULL_WEIGHT_SHARE = 0.5
_LEAST_LEFT, _MOST_SHOWN = 0.1, 0.5  # shares of the tokens, and of the labels, that masked inputs show


@dataclass(frozen=True)
class _Alignment:
    """Labels of a batch, compared with the inputs at their positions; for `own_token` see `Trial`."""

    adapter: ModelAdapter
    batch: TrainedBatch
    own_token: bool | None

    @cached_property
    def content(self) -> Tensor:
        """Return the mask of the inputs that are no marks (B, T)."""
        return ~torch.isin(self.batch.inputs, torch.tensor([*self.adapter.marks, UNKNOWN]))

    @cached_property
    def same(self) -> float:
        """Return the share of the labels that are the token fed at their position."""
        judged = self.content & self.batch.trained
        return float((self.batch.labels == self.batch.inputs)[judged].float().mean()) if judged.any() else 0.0

    @property
    def labels_are_inputs(self) -> bool:
        return self.same > _MIN_SHARE or self.own_token is False

    @cached_property
    def expected(self) -> Tensor:
        """Return the labels that fit the inputs (B, T), UNKNOWN where the inputs do not determine them."""
        inputs = self.batch.inputs
        if self.labels_are_inputs:
            return inputs
        return torch.cat([inputs[:, 1:], torch.full_like(inputs[:, :1], UNKNOWN)], 1)

    @cached_property
    def past_end(self) -> Tensor:
        """Return the mask of the positions after that of the end mark (B, T)."""
        positions = torch.arange(self.batch.inputs.size(1))
        last = (self.content * (positions + 1)).amax(1, keepdim=True) - 1
        return positions > last + int(self.labels_are_inputs)


def label_findings(adapter: ModelAdapter, batch: TrainedBatch, own_token: bool | None) -> Iterator[Finding]:
    """Yield findings unless labels are the next tokens, from the first one to the end mark."""
    alignment = _Alignment(adapter, batch, own_token)
    yield from _padding_findings(alignment)
    trained = batch.trained & ~alignment.past_end
    if not trained.any():
        return
    shifted = alignment.same <= _MIN_SHARE or own_token is False
    if not shifted:
        evidence = f"{alignment.same:.0%} of the labels are the token the decoder is fed there"
        yield model_finding("target-not-shifted", evidence)
    else:
        judged = trained & (alignment.expected != UNKNOWN)
        judged &= alignment.expected != (UNKNOWN if adapter.pad is None else adapter.pad)
        pairs = zip(alignment.expected.tolist(), batch.targets, strict=True)
        own = judged & torch.tensor([[token in text for token in row] for row, text in pairs])
        judged = own if own.any() else judged  # inputs may be replaced as noise
        agreed = float((alignment.expected == batch.labels)[judged].float().mean()) if judged.any() else 0.0
        if agreed < _MIN_SHARE:
            next_token = "there" if alignment.labels_are_inputs else "next"
            evidence = f"{agreed:.0%} of the labels are the token that is fed {next_token}"
            yield model_finding("wrong-labels", evidence)
    begin = (adapter.bos,) if adapter.bos not in (None, adapter.pad, adapter.eos) else ()
    if begin and bool(batch.inputs[:, :2].eq(*begin).all()):
        evidence = f"all rows of the decoder's input begin with the start symbol {adapter.bos} twice"
        yield model_finding("starts-otherwise", evidence)
    if adapter.kind == "encoder-decoder" and (shifted or adapter.bos is not None):
        yield from _start_symbol_findings(alignment)
    end = UNKNOWN if adapter.eos is None else adapter.eos
    fed = adapter.kind == "encoder-decoder" or bool(batch.inputs.eq(end).any())
    if adapter.eos is not None and fed and not torch.isin(batch.labels, torch.tensor([end, UNCLEAR])).any():
        evidence = f"the end symbol {adapter.eos} is the label of no position of {int(batch.trained.sum())}"
        yield model_finding("end-never-trained", evidence)


def _padding_findings(alignment: _Alignment) -> Iterator[Finding]:
    """Yield findings about positions after the end mark in the loss, and end marks that the decoder is fed."""
    adapter, batch, past = alignment.adapter, alignment.batch, alignment.past_end
    trained = batch.trained
    usual = float(batch.weights[trained & ~past].median()) if (trained & ~past).any() else 0.0
    full = trained & (batch.weights >= _FULL_WEIGHT_SHARE * usual)
    padding = full & batch.labels.eq(UNKNOWN if adapter.pad is None else adapter.pad)
    padding = padding & past if adapter.pad == adapter.eos else padding
    ended: Tensor = torch.zeros_like(past)
    if adapter.eos not in (None, adapter.pad) and not alignment.labels_are_inputs:
        ended = past & batch.inputs.eq(adapter.eos or 0) & (torch.arange(past.size(1)) > 0)
    taught = past & full & ~padding
    if taught.any() and (taught & ended).any():
        labels = " or ".join(map(str, sorted(set(batch.labels[taught].tolist()))[:3]))
        evidence = f"at {int(taught.sum())} positions the decoder is fed the end symbol {adapter.eos}, or"
        yield model_finding("end-fed-to-decoder", f"{evidence} what follows it, and has to predict {labels}")
    elif bool(ended.any(1).all()) and bool(ended[:, -1].any()) and adapter.kind == "encoder-decoder":
        evidence = f"all {len(ended)} rows of the decoder's input hold the end symbol {adapter.eos}, the"
        yield model_finding("end-fed-to-decoder", f"{evidence} longest one too; no label stands there", "note")
    if padding.any():
        yield model_finding("padding-in-loss", f"{int(padding.sum())} of {int(trained.sum())} labels are padding")
        return
    smoothed = past & trained & ~full
    if smoothed.any():
        evidence = f"{int(smoothed.sum())} of {int(trained.sum())} positions with a gradient stand behind the"
        yield model_finding("padding-in-mean", f"{evidence} end of their target, without a label of their own")


def _start_symbol_findings(alignment: _Alignment) -> Iterator[Finding]:
    """Yield a finding if no start symbol stands before the first token of a target."""
    batch = alignment.batch
    rows = [index for index, target in enumerate(batch.targets) if target]
    first = torch.tensor([batch.targets[row][0] for row in rows])
    inputs, labels, trained = batch.inputs[rows], batch.labels[rows], batch.trained[rows]
    unmarked = float((inputs[:, 0] == first).float().mean())
    # it is the label before its own position, or there in rows that are not shifted; a source may stand before it
    texts = [batch.targets[row][:BEGIN] for row in rows]
    starts = torch.tensor([start_of(row, text) for row, text in zip(inputs.tolist(), texts, strict=True)])
    starts[starts < 0] = 1  # its inputs are replaced as noise
    places = torch.arange(inputs.size(1)) - starts[:, None]
    near = (places == -1) | (places == 0)
    learned = float(((labels == first[:, None]) & trained & near).any(1).float().mean())
    if unmarked > _MIN_SHARE and (alignment.own_token or learned < _MIN_SHARE):
        evidence = "the decoder's first input is the first token of the target, not a start symbol"
        yield model_finding("no-start-symbol", evidence + ("" if learned else "; that token is never a label"))
    elif learned < 1 - _MIN_SHARE:
        yield model_finding("no-start-symbol", "the first token of a target is never a label")


def ignored_labels(adapter: ModelAdapter, batch: TrainedBatch, own_token: bool | None) -> list[int]:
    """Return the tokens inside targets that the loss ignores wherever they are the next token."""
    alignment = _Alignment(adapter, batch, own_token)
    trained: dict[int, bool] = {}
    for row, target in enumerate(batch.targets):
        if not batch.trained[row].any():  # a row that is left out as a whole ignores no token
            continue
        inputs = batch.inputs[row].tolist()
        start = start_of(inputs, target[:BEGIN])
        for index, token in enumerate(target[1:], 1):
            position = start + index - int(not alignment.labels_are_inputs)
            if start >= 0 and position < len(inputs):
                trained[token] = trained.get(token, False) or bool(batch.labels[row, position] != IGNORED)
    ignored = [token for token, is_trained in trained.items() if not is_trained]
    return sorted(ignored) if 2 * len(ignored) < len(trained) else []


def text_label_findings(adapter: ModelAdapter, batch: TrainedBatch, *, masked: bool) -> Iterator[Finding]:
    """Yield a finding if labels of the tokens of texts stand at padding, which a mask may hide."""
    pad = UNKNOWN if adapter.pad is None else adapter.pad
    padding = batch.trained & (batch.inputs.eq(pad) | (masked & batch.labels.eq(pad)))
    if padding.any():
        evidence = f"{int(padding.sum())} of {int(batch.trained.sum())} labels stand at padding"
        yield model_finding("padding-in-loss", evidence)


def masked_label_findings(batches: Iterable[TrainedBatch]) -> list[Finding]:
    """Return findings unless labels of a masked language model are the tokens that its inputs hide."""
    rows = []
    for batch in batches:
        text = align_texts(batch.inputs, batch.targets)
        rows.append(torch.stack([text, batch.inputs, batch.labels])[:, text != UNKNOWN])
    text, inputs, labels = torch.cat(rows, 1)
    left, labelled = _share(inputs == text), labels >= 0
    own, shown = _share((labels == text)[labelled]), _share((inputs == text)[labelled])
    if left < _LEAST_LEFT:
        if _share(inputs == inputs.mode().values) < _MOST_SHOWN:
            return []  # no mask stands in the place of the texts: the step does not read them as they are
        finding = model_finding("source-not-read", f"{left:.0%} of the tokens of texts are left in the input")
    elif labelled.any() and own < _MIN_SHARE:
        evidence = f"{own:.0%} of the labels are the token of the text at their position"
        finding = model_finding("wrong-labels", evidence)
    elif shown > _MOST_SHOWN:
        evidence = f"{shown:.0%} of the labels are the token that the input shows at their position"
        severity = "note" if _share(labelled) > _MIN_SHARE else None  # as in a corrector of texts
        finding = model_finding("target-not-shifted", evidence, severity)
    else:
        return []
    return [in_case(finding, "masked-labels")]


def _share(chosen: Tensor) -> float:
    return float(chosen.float().mean()) if chosen.numel() else 0.0


def class_findings(classes: list[int], labels: Tensor) -> Iterator[Finding]:
    """Yield findings unless the labels (B,) of a classifier, -1 where ignored, are the classes of the texts."""
    expected = torch.tensor(classes)
    trained = labels >= 0
    missing = sorted(set(expected[labels == IGNORED].tolist()) - set(expected[trained].tolist()))
    if missing and trained.any():
        named = ", ".join(map(str, missing[:3]))
        yield model_finding("ignored-label", f"the loss ignores every text whose class is {named}")
    agreed = float((labels == expected)[trained].float().mean()) if trained.any() else 1.0
    if agreed < _MIN_SHARE:
        yield model_finding("wrong-labels", f"{agreed:.0%} of the labels are the class that the batch was made of")
