"""Ask a decoder that reads several texts in a row whether they are hidden from each other.

Shapes: B batch, T length of a row, of which the second text begins in the middle.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from typing import Any

import torch
from torch import Tensor, nn

from transformer_doctor.attention_tracer import AttentionTracer
from transformer_doctor.catalogue import model_finding
from transformer_doctor.checks.calls import run, trace_pass
from transformer_doctor.checks.masks import covered_scores
from transformer_doctor.huggingface import huggingface_config
from transformer_doctor.model_adapter import ModelAdapter, Samples
from transformer_doctor.report import Report, report_on
from transformer_doctor.signatures import parameters_of
from transformer_doctor.tolerances import percentage, relative_change

PACKED = "texts that are packed in a row do not see each other"
_NUMBERS = re.compile("(segment|sequence|document|doc)_ids?")  # of each token; not token_type_ids, for embeddings
_POSITIONS = re.compile("pos(ition)?(s|_ids)")


def packing_report(adapter: ModelAdapter, samples: Samples) -> Report:
    """Return whether texts of a row see each other; empty where the model takes nothing that tells them apart.

    Texts are told apart by their numbers, or by positions that begin again, with a mask of ones and without: then
    at least one token of the second text sees nothing of the first. A model of transformers is not asked: whether
    it hides texts depends on the kind of its attention.
    """
    names = [parameter.name for parameter in parameters_of(adapter.module) or ()]
    given = [*filter(_NUMBERS.fullmatch, names), *filter(_POSITIONS.fullmatch, names)][:1]
    if adapter.kind != "decoder" or not given or huggingface_config(adapter.module) is not None:
        return Report()
    by_numbers = bool(_NUMBERS.fullmatch(given[0]))
    ids, first, length = samples.ids()["target"], samples.target // 2, samples.target
    others = torch.cat([samples.others("target", ids)[:, :first], ids[:, first:]], 1)
    second = (torch.arange(length) >= first).long().expand_as(ids)
    begin_again = torch.arange(length) - first * second
    values, masks = 1 + second if by_numbers else begin_again, [name for name in names if "mask" in name]
    ways: dict[str, dict[str, Tensor | None]] = {"": {}}
    if not by_numbers:
        ways = {"without a mask": dict.fromkeys(masks)}
        ways |= {"with a mask": dict.fromkeys(masks, torch.ones_like(ids))} if masks else {}
    changes = {}  # by way, of the scores of each token of the second text
    for way, further in ways.items():
        with suppress(Exception) if way == "with a mask" else nullcontext():  # of a model that takes other masks
            before, after = (_trace(adapter, rows, {given[0]: values, **further})[1] for rows in (ids, others))
            changes[way] = [relative_change(before[:, at], after[:, at]) for at in range(first, length)]
    told_apart = any(not min(by_token) for by_token in changes.values())
    evidence = f"a part of what {given[0]} tells apart is hidden" if told_apart else ""
    if by_numbers:
        (tracer, scores), (plain, of_one) = (
            _trace(adapter, ids, {given[0]: rows}) for rows in (values, torch.ones_like(ids))
        )
        if torch.equal(scores[:, first:], of_one[:, first:]):
            evidence = f"with and without a second text in {given[0]} the scores are the same"
        elif _hides_a_part(tracer, plain, first):
            evidence = f"a part of what {given[0]} tells apart is hidden"
        elif not evidence and any(_is_row(lookup.ids.cpu(), begin_again[0]) for lookup in tracer.lookups):
            evidence = f"positions begin again with the second text in {given[0]}"
        change = relative_change(run(adapter, {"target": ids[:, first:]}), scores[:, first:])
        if not max(changes[""]) and change > adapter.tolerances.other_shape:
            evidence = f"a text behind another in {given[0]} has other scores than alone, by {percentage(change)}"
            evidence += " of their spread: its positions go on"
            return report_on(PACKED, [model_finding("packed-texts-mixed", evidence, "note")])
    elif not told_apart:
        return Report()
    mixed = {way: max(by_token) for way, by_token in changes.items() if max(by_token)}
    if not mixed or not evidence:
        return report_on(PACKED)
    seen = f"the tokens of the first text change the scores of the second by {percentage(max(mixed.values()))}"
    evidence = "; ".join([f"{seen} of their spread", evidence, *filter(None, mixed)])
    return report_on(PACKED, [model_finding("packed-texts-mixed", evidence, "warning")])


def _is_row(ids: Tensor, row: Tensor) -> bool:
    """Return whether ids (T,) or (B, T) are a row (T,), or rows like it."""
    return ids.shape[-1:] == row.shape and bool((ids == row).all())


def _trace(
    adapter: ModelAdapter, ids: Tensor, given: Mapping[str, Tensor | None]
) -> tuple[AttentionTracer, Tensor]:
    """Return the trace and the scores of a pass in which the module is given further arguments."""

    def with_given(module: nn.Module, args: Any, named: Any) -> Any:
        bound = inspect.signature(module.forward).bind(*args, **named)
        bound.arguments |= {name: None if rows is None else rows.to(adapter.device) for name, rows in given.items()}
        return bound.args, bound.kwargs

    assert adapter.module is not None
    hook = adapter.module.register_forward_pre_hook(with_given, with_kwargs=True)
    try:
        tracer, scores = trace_pass(adapter, {"target": ids})
    finally:
        hook.remove()
    return tracer, scores.cpu()


def _hides_a_part(tracer: AttentionTracer, plain: AttentionTracer, first: int) -> bool:
    """Return whether an attention hides some keys of the first text from the second that another pass shows."""
    for own, usual in zip(tracer.attentions, plain.attentions, strict=False):
        hidden, before = (covered_scores(record)[..., first:, :first] for record in (own, usual))
        if hidden.shape == before.shape and not before.all() and 0 < float(hidden[~before].float().mean()) < 1:
            return True
    return False
