"""Find how to call a model: try the usual forms of a call, and judge each by the scores that it returns.

A call is sound where the scores are finite, rows do not influence each other, no position depends on later ones,
and padding changes nothing (padding before the text too, if that is asked). A model that takes masks is sound in
one mask style only, so each style is tried; if no call is sound, the best one is used, and the checks find what is
wrong.

Shapes: B batch, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from transformer_doctor.calling import Callee, CallForm, as_function, caller
from transformer_doctor.errors import UsageError
from transformer_doctor.mask_guesses import mask_styles, refined_styles
from transformer_doctor.model_adapter import ModelAdapter, Samples, with_padding
from transformer_doctor.signatures import Role
from transformer_doctor.tolerances import relative_change

# Changes of scores that count as none, as shares of their spread; coarse, as only gross effects matter here.
_SAME_HALF, _SAME_FLOAT32 = 0.05, 1e-3
_MASKS: Mapping[str, Role] = {"source_mask": "source mask", "target_mask": "target mask"}  # entries of a batch


@dataclass(frozen=True)
class FoundCall:
    """Call of a model that raises no error.

    Attributes:
        adapter: adapter with that call.
        form: form of the call.
        sound: whether the model has each property when it is called in that form.
        scores: scores of the first ids.
    """

    adapter: ModelAdapter
    form: CallForm
    sound: Mapping[str, bool]
    scores: Tensor

    @property
    def points(self) -> int:
        """Return the number of properties that the model has; independent rows count more than all others."""
        return sum(self.sound.values()) + len(self.sound) * self.sound["rows"]

    @property
    def all_sound(self) -> bool:
        """Return whether the model has all properties."""
        return all(self.sound.values())

    def remark(self, *remarks: str) -> FoundCall:
        """Return the call with further remarks on what was guessed."""
        return replace(self, adapter=replace(self.adapter, remarks=(*self.adapter.remarks, *remarks)))


class CallSearch:
    """Search for a way to call a model of some kind; `width` is V of the scores, where it is known."""

    def __init__(self, adapter: ModelAdapter, callee: Callee, width: int | None) -> None:
        self.adapter, self.callee, self.width = adapter, callee, width

    def find(self, form: CallForm) -> FoundCall | Exception:
        """Return the best call of the model, or the error of the first one if all raise errors.

        The search begins with a form; if its time_first is set, all forms have it.
        """
        errors: list[Exception] = []
        calls: list[FoundCall] = []
        for trial in self.plain_forms(form):
            outcome = self.attempt(trial)
            made_time_first = trial.time_first and not form.time_first
            if isinstance(outcome, FoundCall) and made_time_first and not outcome.sound["rows"]:
                continue  # its time is not first: the call with the batch first failed for another reason
            if isinstance(outcome, FoundCall):
                calls.append(outcome)
                if trial.container != "mapping" or outcome.all_sound:
                    break
            else:
                errors.append(outcome)
        if calls and (_best(calls).all_sound or calls[0].form.container != "arguments"):
            return _best(calls)
        styled = list(self.styled_calls(calls[0].form if calls else form))
        if styled and not calls and not _understood(styled):
            return UsageError(masks_wanted(self.callee, self.adapter.sides))
        calls += styled
        if calls and not form.time_first and not calls[0].sound["rows"] and not _best(calls).all_sound:
            calls += self.time_first_calls(calls[0].form)
        if calls:
            return _best(calls)
        return errors[0] if errors else UsageError(masks_wanted(self.callee, self.adapter.sides))

    def plain_forms(self, form: CallForm) -> Iterator[CallForm]:
        """Yield the forms that need no masks: ids as arguments, with labels, or in one mapping or tuple."""
        arguments, sides = self.callee.arguments, self.adapter.sides
        id_arguments = sum(role in sides for _, role in arguments or ())
        complete = not self.callee.aids(required=True) and not self.callee.unknown()
        if arguments is None or (complete and id_arguments == len(sides)):
            yield form
        if arguments is not None and complete and any(role == "label" for _, role in arguments):
            yield replace(form, labels=True)
        if arguments is None or sum(parameter.required for parameter, _ in arguments) <= 1:
            if len(sides) == 2:
                yield replace(form, container="tuple")
            for style in mask_styles(_MASKS):
                yield replace(form, container="mapping", style=style)
        if complete and not form.time_first:
            yield replace(form, time_first=True)

    def styled_calls(self, form: CallForm) -> Iterator[FoundCall]:
        """Yield the calls with masks that run, up to the first that is sound."""
        masks = {name: role for name, role in self.callee.aids().items() if role.endswith("mask")}
        places = form.left_padding and any(role == "positions" for _, role in self.callee.arguments or ())
        if not (self.callee.aids() or places) or self.callee.unknown():
            return
        calls: list[FoundCall] = []
        batch_first = [replace(form, style=style) for style in mask_styles(masks)]
        placed = (replace(trial, placed=True) for trial in batch_first if places)
        time_first = (replace(form, style=style, time_first=True) for style in mask_styles(masks))
        for trials in (batch_first, placed, time_first, self.refined(calls, masks)):
            if trials is time_first and any(call.sound["rows"] for call in calls):
                continue
            for trial in trials:
                outcome = self.attempt(trial)
                if isinstance(outcome, FoundCall):
                    yield outcome
                    calls.append(outcome)
                    if outcome.all_sound:
                        return

    def refined(self, calls: list[FoundCall], masks: Mapping[str, Role]) -> Iterator[CallForm]:
        """Yield the forms that differ from the best one in the masks of one side."""
        if calls:
            call = _best(calls)
            assert call.form.style is not None
            failed = {"source": not call.sound.get("padding", True), "target": not call.sound.get("future", True)}
            for style in refined_styles(call.form.style, masks, [side for side, fails in failed.items() if fails]):
                yield replace(call.form, style=style)

    def time_first_calls(self, form: CallForm) -> list[FoundCall]:
        """Return the call with the time first, if it is sound and its scores depend on the order of the tokens.

        Without the second condition, a batch axis that is mistaken for the time axis would pass.
        """
        outcome = self.attempt(replace(form, time_first=True))
        sound = isinstance(outcome, FoundCall) and outcome.all_sound and _order_matters(outcome.adapter)
        return [outcome] if isinstance(outcome, FoundCall) and sound else []

    def attempt(self, form: CallForm) -> FoundCall | Exception:
        """Call the model in a form and judge what it does; return the error that it raises."""
        call = caller(self.callee, self.adapter.sides, form, self.adapter.pad, self.width)
        return judge(replace(self.adapter, call=call), form)


def masks_wanted(callee: Callee, sides: Sequence[str]) -> str:
    """Return the error message for a model with arguments whose values are unknown."""
    names = [parameter.name for parameter, _ in callee.arguments or () if parameter.required]
    further = [*callee.unknown(), *callee.aids(required=True)]
    return (
        f"the model takes {len(names)} arguments ({', '.join(names)}), and what {', '.join(further)} should "
        "hold could not be found out. Say so: masks=a function of the ids that returns the further arguments, in "
        f"order or by name. Or examine a function: {as_function(sides)}."
    )


def _best(calls: Iterable[FoundCall]) -> FoundCall:
    return max(calls, key=lambda call: call.points)


def _understood(styled: list[FoundCall]) -> bool:
    """Return whether masks have the intended effect in some style, or no effect in any."""
    first = styled[0].scores
    ignored = all(
        _same(first, later.scores, _SAME_FLOAT32) for later in styled[1:] if later.scores.shape == first.shape
    )
    checked = [name for name in ("future", "padding") if name in styled[0].sound]
    return ignored or not checked or any(call.sound[name] for call in styled for name in checked)


def _same(before: Tensor, after: Tensor, tolerance: float) -> bool:
    """Return whether scores are the same up to a share of their spread; NaN is never the same."""
    return relative_change(before, after) <= tolerance


@torch.no_grad()
def judge(adapter: ModelAdapter, form: CallForm) -> FoundCall | Exception:
    """Call a model in a form; return the properties that it has, or the error of its first call.

    A property whose observation raises an error, as in a model for one length only, counts as missing.
    """
    samples = Samples(adapter)
    ids = samples.ids()
    try:
        adapter(samples.with_the_highest())
        scores = adapter(ids)
    except Exception as error:  # any exception of the user's model
        return error
    tolerance = _tolerance_of(adapter)
    order = torch.arange(len(scores)).roll(1)

    def rows() -> bool:
        fewer, moved = (
            adapter({side: side_ids[part] for side, side_ids in ids.items()}) for part in (slice(0, 2), order)
        )
        return _same(scores[:2], fewer, tolerance) and _same(scores[order.to(scores.device)], moved, tolerance)

    length, pad = scores.size(1), adapter.pad or 0
    changed: dict[str, tuple[dict[str, Tensor], slice, slice]] = {}  # ids, and parts of both scores that agree
    if "target" in adapter.sides:
        beginning = slice(0, ids["target"].size(1) // 2)
        target = samples.others("target", ids["target"])
        target[:, beginning] = ids["target"][:, beginning]
        changed["future"] = {**ids, "target": target}, beginning, beginning
    if adapter.pad is not None and "source" in adapter.sides:
        padded = with_padding(ids["source"], pad, 3)
        changed["padding"] = {**ids, "source": padded}, slice(None), slice(0, length)
    if adapter.pad is not None and form.left_padding:
        side = adapter.sides[0]
        padded = with_padding(ids[side].flip(1), pad, 3).flip(1)
        changed["left padding"] = {**ids, side: padded}, slice(None), slice(-length, None)
    sound = {"finite": bool(scores.isfinite().all()), "rows": _holds(rows)}
    for name, (others, own, theirs) in changed.items():
        sound[name] = _holds(lambda: _same(scores[:, own], adapter(others)[:, theirs], tolerance))  # noqa: B023
    return FoundCall(adapter, form, sound, scores)


def _holds(observe: Callable[[], bool]) -> bool:
    try:
        return observe()
    except Exception:  # any exception of the user's model
        return False


def _tolerance_of(adapter: ModelAdapter) -> float:
    weights = None if adapter.module is None else next(adapter.module.parameters(), None)
    return _SAME_HALF if weights is not None and weights.dtype.itemsize < 4 else _SAME_FLOAT32


@torch.no_grad()
def _order_matters(adapter: ModelAdapter) -> bool:
    """Return whether reversing the first side's tokens changes the scores, apart from reversing their order."""
    ids = Samples(adapter).ids()
    side = adapter.sides[0]
    scores, reversed_scores = adapter(ids), adapter({**ids, side: ids[side].flip(1)})
    aligned = reversed_scores.flip(1) if len(adapter.sides) == 1 else reversed_scores
    return not _same(scores, aligned, _tolerance_of(adapter))
