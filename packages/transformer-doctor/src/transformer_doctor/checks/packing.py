"""Ask a decoder that reads several texts in a row whether they are hidden from each other.

Shapes: B batch, T length of a row, of which the second text begins in the middle.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from transformer_doctor.catalogue import model_finding
from transformer_doctor.checks.calls import run, trace_pass
from transformer_doctor.checks.masks import covered_scores
from transformer_doctor.huggingface import huggingface_config
from transformer_doctor.model_adapter import ModelAdapter, Samples
from transformer_doctor.report import Finding, Report, report_on
from transformer_doctor.signatures import parameters_of
from transformer_doctor.tolerances import percentage, relative_change

PACKED = "texts that are packed in a row do not see each other"
_NUMBERS = re.compile("(segment|sequence|document|doc)_ids?")  # of each token; not token_type_ids, for embeddings
_POSITIONS = re.compile("pos(ition)?(s|_ids)")


def packing_report(adapter: ModelAdapter, samples: Samples) -> Report:
    """Return whether texts of a row see each other; empty where the model takes nothing that tells them apart.

    Texts are told apart by their numbers, or by positions that begin again. A model of transformers is not asked:
    whether it hides texts depends on the kind of its attention.
    """
    names = [parameter.name for parameter in parameters_of(adapter.module) or ()]
    given = [*filter(_NUMBERS.fullmatch, names), *filter(_POSITIONS.fullmatch, names)][:1]
    if adapter.kind != "decoder" or not given or huggingface_config(adapter.module) is not None:
        return Report()
    packed = _Packed(adapter, samples, given[0], [name for name in names if "mask" in name])
    return packed.by_numbers() if _NUMBERS.fullmatch(given[0]) else packed.by_positions()


class _Packed:
    """Rows of two texts, told apart by the argument `name`; `masks` are further arguments."""

    def __init__(self, adapter: ModelAdapter, samples: Samples, name: str, masks: list[str]) -> None:
        self.adapter, self.name, self.masks = adapter, name, masks
        self.ids, self.first = samples.ids()["target"], samples.target // 2
        self.others = torch.cat([samples.others("target", self.ids)[:, : self.first], self.ids[:, self.first :]], 1)
        self.second = (torch.arange(samples.target) >= self.first).long().expand_as(self.ids)

    def by_numbers(self) -> Report:
        """Judge a model that takes the number of each token's text, with the masks that it is called with."""
        numbers = 1 + self.second
        (hidden, scores, begins), (usual, of_one, _) = self.trace(numbers), self.trace(torch.ones_like(numbers))
        partly = [
            0 < float(keys[~before].float().mean()) < 1
            for keys, before in zip(hidden, usual, strict=False) if keys.shape == before.shape and not before.all()
        ]  # fmt: skip
        changes = self.changes(numbers)
        seen = f"the tokens of the first text change the scores of the second by {percentage(max(changes))}"
        evidence = ""
        if max(changes) and torch.equal(scores, of_one):
            evidence = f"with and without a second text in {self.name} the scores are the same"
        elif max(changes) and (any(partly) or not min(changes)):
            evidence = f"a part of what {self.name} tells apart is hidden"
        elif max(changes) and begins:
            evidence = f"positions begin again with the second text in {self.name}"
        found = [model_finding("packed-texts-mixed", f"{seen} of their spread; {evidence}", "warning")]
        return report_on(PACKED, found if evidence else self._positions_go_on(scores, changes))

    def by_positions(self) -> Report:
        """Judge a model that takes positions, if it tells texts apart by them, with a mask of ones and without."""
        positions = torch.arange(self.second.size(1)) - self.first * self.second
        changes = {False: self.changes(positions, masked=False)}
        if self.masks:
            with suppress(Exception):  # of a model that takes masks of another kind
                changes[True] = self.changes(positions, masked=True)
        if all(min(by_token) for by_token in changes.values()):
            return Report()
        mixed = {masked: by_token for masked, by_token in changes.items() if max(by_token)}
        where = " and ".join(f"{'with' if masked else 'without'} a mask" for masked in mixed)
        seen = percentage(max(map(max, mixed.values()), default=0.0))
        evidence = f"where {self.name} begin again another text begins, and {where} the tokens of the first text"
        evidence += f" change the scores of the second by {seen} of their spread"
        return report_on(PACKED, [model_finding("packed-texts-mixed", evidence, "warning")] if mixed else [])

    def changes(self, values: Tensor, *, masked: bool | None = None) -> list[float]:
        """Return for each token of the second text by how much other tokens of the first change its scores."""
        before, after = (self.trace(values, ids, masked=masked)[1] for ids in (self.ids, self.others))
        return [relative_change(before[:, place], after[:, place]) for place in range(before.size(1))]

    def _positions_go_on(self, scores: Tensor, changes: list[float]) -> Iterator[Finding]:
        change = relative_change(run(self.adapter, {"target": self.ids[:, self.first :]}), scores)
        if not max(changes) and change > self.adapter.tolerances.other_shape:
            evidence = f"a text behind another in {self.name} has other scores than alone, by {percentage(change)}"
            yield model_finding("packed-texts-mixed", f"{evidence} of their spread: its positions go on", "note")

    def trace(
        self, values: Tensor, ids: Tensor | None = None, *, masked: bool | None = None
    ) -> tuple[list[Tensor], Tensor, bool]:
        """Return which keys of the first text each attention hides from the second, and the scores of the second.

        The last value says whether positions that are looked up begin again with the second text.
        """

        def with_values(module: nn.Module, args: Any, named: Any) -> Any:
            bound = inspect.signature(module.forward).bind(*args, **named)
            bound.arguments |= {self.name: values.to(self.adapter.device)}
            for mask in self.masks if masked is not None else ():
                given = bound.arguments.get(mask)
                usual = values.new_ones(values.shape) if given is None else given
                bound.arguments[mask] = usual.to(self.adapter.device) if masked else None
            return bound.args, bound.kwargs

        assert self.adapter.module is not None
        hook = self.adapter.module.register_forward_pre_hook(with_values, with_kwargs=True)
        try:
            tracer, scores = trace_pass(self.adapter, {"target": self.ids if ids is None else ids})
        finally:
            hook.remove()
        length = self.ids.size(1)
        whole = [found for found in tracer.attentions if found.queries == found.keys == length]
        again = torch.arange(length) - self.first * self.second[0]
        begins = any(
            lookup.ids.size(-1) == length and bool((lookup.ids == again).all())
            for lookup in tracer.lookups if lookup.ids.dim()
        )  # fmt: skip
        hidden = [covered_scores(found)[..., self.first :, : self.first] for found in whole]
        return hidden, scores[:, self.first :].cpu(), begins
