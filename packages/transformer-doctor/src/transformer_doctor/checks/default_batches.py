"""Make batches for a training step whose project has no collate function.

A Hugging Face model shifts its labels itself. Its training steps take them as DataCollatorForSeq2Seq makes them:
without a start symbol, -100 at padding, in a mapping or as separate arguments. What a step can read is tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor

from transformer_doctor.checks.labels import label_findings
from transformer_doctor.checks.memorization import TrainingFunctions
from transformer_doctor.checks.training import Collate, Rows
from transformer_doctor.checks.trial import Trial
from transformer_doctor.model_adapter import ModelAdapter, restore_modes, restore_weights
from transformer_doctor.signatures import parameters_of

_NO_LABEL = -100  # label that cross_entropy ignores by default


def default_collate(adapter: ModelAdapter, *, time_first: bool) -> Collate:
    """Return a function that pads rows at the end: sources with end mark, targets between both marks.

    The targets of an encoder are a class for each text, (B,), or one for each token, (B, S), -100 at the marks;
    if they are the texts themselves, as for masked language models, a batch is the texts alone.
    """

    def tensor(rows: Rows, first: int | None, last: int | None, pad: int = adapter.pad or 0) -> Tensor:
        ids = _padded(adapter, rows, first, last, pad)
        return ids.t() if time_first else ids

    def collate(sources: list[list[int]], targets: list[list[int]]) -> Sequence[Any]:
        if adapter.kind == "encoder":
            read = tensor(sources, None, adapter.eos)
            if targets == sources:
                return (read,)
            if all(len(row) == 1 for row in targets):
                return read, torch.tensor([row[0] for row in targets], device=adapter.device)
            return read, tensor(targets, None, None if adapter.eos is None else _NO_LABEL, _NO_LABEL)
        target = tensor(targets, adapter.bos, adapter.eos)
        return (target,) if adapter.kind == "decoder" else (tensor(sources, None, adapter.eos), target)

    return collate


def _padded(adapter: ModelAdapter, rows: Rows, first: int | None, last: int | None, pad: int) -> Tensor:
    before, after = [[] if mark is None else [mark] for mark in (first, last)]
    marked = [[*before, *row, *after] for row in rows]
    longest = max(map(len, marked))
    return torch.tensor([[*row, *[pad] * (longest - len(row))] for row in marked], device=adapter.device)


class _Batch(dict[str, Tensor]):
    """Mapping whose entries are attributes too, with `to`, as the BatchEncoding of transformers."""

    def __init__(self, entries: dict[str, Tensor]) -> None:
        super().__init__(entries)
        self.__dict__ = self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        return type(self)({name: tensor.to(*args, **kwargs) for name, tensor in self.items()})


def fitting_collate(adapter: ModelAdapter, functions: TrainingFunctions, seed: int) -> Collate:
    """Return the first collate function whose batches a training step reads without an error or a wrong label.

    Where labels are wrong with all of them, it is the last one without an error. The weights are restored.
    """
    takes_labels = any(parameter.name == "labels" for parameter in parameters_of(adapter.module) or ())
    of_library = takes_labels and hasattr(adapter.module, "config")
    accepted = functions.collate
    for collate in (*_labelled_collates(adapter, functions), functions.collate) if of_library else ():
        trial = Trial.of(adapter, replace(functions, collate=collate), seed)
        with restore_modes(adapter.module), restore_weights(adapter.module), torch.enable_grad():
            try:
                trial.make_step(*next(trial.step_rows()))
            except Exception:  # any exception of the user's step: the batch is not the one that it wants
                continue
        read = trial.record.batches.get(0)
        if read is None or "target" not in adapter.sides or not any(label_findings(adapter, read, trial.own_token)):
            return collate
        accepted = collate
    return accepted


def _labelled_collates(adapter: ModelAdapter, functions: TrainingFunctions) -> Iterator[Collate]:
    """Yield collate functions for a step of one argument, a mapping or a pair, or of several ones."""
    parameters = parameters_of(functions.train_step)
    names = [parameter.name for parameter in parameters or () if parameter.required]
    names = ["input_ids", "labels"] if parameters is None else names  # a step of *batch
    decodes, start = adapter.kind == "decoder", adapter.bos if adapter.kind == "decoder" else None

    def mapping(sources: list[list[int]], targets: list[list[int]]) -> _Batch:
        read = targets if decodes else sources
        ids, known = (_padded(adapter, read, start, adapter.eos, pad) for pad in (adapter.pad or 0, _NO_LABEL))
        labels = _padded(adapter, targets, start, adapter.eos, _NO_LABEL)
        if adapter.kind == "encoder":
            labels = functions.collate(sources, targets)[-1]
        return _Batch({"input_ids": ids, "attention_mask": (known >= 0).long(), "labels": labels})

    def in_order(sources: list[list[int]], targets: list[list[int]]) -> Sequence[Tensor]:
        batch = mapping(sources, targets)
        named = ["attention_mask" if "mask" in name else "labels" for name in names[1:]]
        return [batch[name] for name in ("input_ids", *named)]

    if len(names) == 1 and decodes:
        yield functions.collate
    if len(names) == 1:
        yield lambda sources, targets: (mapping(sources, targets),)
        yield lambda sources, targets: ([*mapping(sources, targets).values()][::2],)
    elif len(names) > 1 and adapter.kind != "encoder":
        yield in_order
