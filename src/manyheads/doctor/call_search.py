"""Find how a model is called: try the ways in which people write models, and judge each by what the model does.

A call is sound where the scores are finite, rows do not influence each other, no position depends on later ones,
and padding changes nothing. A model that takes masks is sound in the style of its author alone, so that the style
is found by trying; a model that is sound in none keeps the best one, and the checks find what is wrong.

Shapes: B batch, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from manyheads.doctor.calling import Callee, CallForm, caller
from manyheads.doctor.mask_guesses import mask_styles, refined_styles
from manyheads.doctor.model_adapter import ModelAdapter, Samples, with_padding
from manyheads.doctor.signatures import Role
from manyheads.doctor.tolerances import relative_change
from manyheads.errors import UsageError

__all__ = ["CallSearch", "FoundCall", "judge", "masks_wanted"]

# Shares of the spread of the scores up to which they are the same; coarse, as gross effects alone are asked for.
SAME_HALF, SAME_FLOAT32 = 0.05, 1e-3
MASKS: Mapping[str, Role] = {"source_mask": "source mask", "target_mask": "target mask"}  # that a batch may hold


@dataclass(frozen=True)
class FoundCall:
    """A way to call a model that runs.

    Attributes:
        adapter: adapter with that call.
        form: the way.
        sound: by property, whether the model has it when it is called so.
        scores: what the model gave for the first ids.
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
        """Return whether the model has all of them."""
        return all(self.sound.values())

    def remark(self, *remarks: str) -> FoundCall:
        """Return the call with more remarks on what was guessed."""
        return replace(self, adapter=replace(self.adapter, remarks=(*self.adapter.remarks, *remarks)))


class CallSearch:
    """Search for a way to call a model.

    Args:
        adapter: kind, sizes and marks of the model; its call is replaced.
        callee: what is called.
        width: V of the scores, where it is known.
    """

    def __init__(self, adapter: ModelAdapter, callee: Callee, width: int | None) -> None:
        self.adapter, self.callee, self.width = adapter, callee, width

    def find(self, form: CallForm) -> FoundCall | Exception:
        """Return the best way to call the model, or the error of the first one where none runs.

        Args:
            form: form to begin with; time_first in it is kept.
        """
        errors: list[Exception] = []
        found: list[FoundCall] = []
        for trial in self.plain_forms(form):
            outcome = self.attempt(trial)
            turned = trial.time_first and not form.time_first
            if isinstance(outcome, FoundCall) and turned and not outcome.sound["rows"]:
                continue  # the time is not first there: another reason made the call with the batch first fail
            if isinstance(outcome, FoundCall):
                found.append(outcome)
                if trial.container != "mapping" or outcome.all_sound:
                    break
            else:
                errors.append(outcome)
        if found and (best(found).all_sound or found[0].form.container != "arguments"):
            return best(found)
        styled = list(self.styled_calls(found[0].form if found else form))
        if styled and not found and not understood(styled):
            return UsageError(masks_wanted(self.callee, self.adapter.sides))
        found += styled
        if found and not form.time_first and not found[0].sound["rows"] and not best(found).all_sound:
            found += self.time_first_calls(found[0].form)
        if found:
            return best(found)
        return errors[0] if errors else UsageError(masks_wanted(self.callee, self.adapter.sides))

    def plain_forms(self, form: CallForm) -> Iterator[CallForm]:
        """Yield the forms that need no masks: as arguments, with labels, in one mapping or tuple."""
        arguments, sides = self.callee.arguments, self.adapter.sides
        given = sum(role in sides for _, role in arguments or ())
        complete = not self.callee.aids(required=True) and not self.callee.unknown()
        if arguments is None or (complete and given == len(sides)):
            yield form
        if arguments is not None and complete and any(role == "label" for _, role in arguments):
            yield replace(form, labels=True)
        if arguments is None or sum(each.required for each, _ in arguments) <= 1:
            if len(sides) == 2:
                yield replace(form, container="tuple")
            for style in mask_styles(MASKS):
                yield replace(form, container="mapping", style=style)
        if complete and not form.time_first:
            yield replace(form, time_first=True)

    def styled_calls(self, form: CallForm) -> Iterator[FoundCall]:
        """Yield the calls with masks that run, up to the first that is sound."""
        masks = {name: role for name, role in self.callee.aids().items() if role.endswith("mask")}
        if not self.callee.aids() or self.callee.unknown():
            return
        found: list[FoundCall] = []
        batch_first = (replace(form, style=style) for style in mask_styles(masks))
        time_first = (replace(form, style=style, time_first=True) for style in mask_styles(masks))
        for trials in (batch_first, time_first, self.refined(found, masks)):
            if trials is time_first and any(call.sound["rows"] for call in found):
                continue
            for trial in trials:
                outcome = self.attempt(trial)
                if isinstance(outcome, FoundCall):
                    yield outcome
                    found.append(outcome)
                    if outcome.all_sound:
                        return

    def refined(self, found: list[FoundCall], masks: Mapping[str, Role]) -> Iterator[CallForm]:
        """Yield the forms that differ from the best one in the masks of one side."""
        if found:
            call = best(found)
            assert call.form.style is not None
            failed = {"source": not call.sound.get("padding", True), "target": not call.sound.get("future", True)}
            for style in refined_styles(call.form.style, masks, [side for side, fails in failed.items() if fails]):
                yield replace(call.form, style=style)

    def time_first_calls(self, form: CallForm) -> list[FoundCall]:
        """Return the call with the time first, where it is sound and the order of the tokens matters in it.

        Without the second condition the batch axis, taken for the time axis by mistake, would pass for time first.
        """
        outcome = self.attempt(replace(form, time_first=True))
        sound = isinstance(outcome, FoundCall) and outcome.all_sound and order_matters(outcome.adapter)
        return [outcome] if isinstance(outcome, FoundCall) and sound else []

    def attempt(self, form: CallForm) -> FoundCall | Exception:
        """Call the model in a form and judge what it does; return the error that it raises."""
        call = caller(self.callee, self.adapter.sides, form, self.adapter.pad, self.width)
        return judge(replace(self.adapter, call=call), form)


def masks_wanted(callee: Callee, sides: Sequence[str]) -> str:
    """Return the message for a model whose further arguments cannot be made."""
    names = [each.name for each, _ in callee.arguments or () if each.required]
    further = [*callee.unknown(), *callee.aids(required=True)]
    return (
        f"the model takes {len(names)} arguments ({', '.join(names)}), and what {', '.join(further)} should "
        "hold could not be found out. Say so: masks=a function of the ids that returns the further arguments, in "
        f"order or by name. Or examine a function: lambda {', '.join(sides)}: model(...), all arguments by name."
    )


def best(found: Iterable[FoundCall]) -> FoundCall:
    """Return the call with the most points, the first of several."""
    return max(found, key=lambda each: each.points)


def understood(styled: list[FoundCall]) -> bool:
    """Return whether masks work in some style, or change nothing in any."""
    first = styled[0].scores
    ignored = all(
        same(first, other.scores, SAME_FLOAT32) for other in styled[1:] if other.scores.shape == first.shape
    )
    asked = [name for name in ("future", "padding") if name in styled[0].sound]
    return ignored or not asked or any(call.sound[name] for call in styled for name in asked)


def same(before: Tensor, after: Tensor, tolerance: float) -> bool:
    """Return whether scores are the same up to a share of their spread; NaN is like nothing."""
    return relative_change(before, after) <= tolerance


@torch.no_grad()
def judge(adapter: ModelAdapter, form: CallForm) -> FoundCall | Exception:
    """Return what a model does when it is called in a form, or the error of its first call.

    A property whose observation raises an error, as in a model for one length alone, is one it does not have.
    """
    samples = Samples(adapter)
    ids = samples.ids()
    try:
        adapter(samples.with_the_highest())
        scores = adapter(ids)
    except Exception as error:  # any exception of the user's model
        return error
    tolerance = tolerance_of(adapter)
    order = torch.arange(len(scores)).roll(1)

    def rows() -> bool:
        fewer, moved = (adapter({side: each[part] for side, each in ids.items()}) for part in (slice(0, 2), order))
        return same(scores[:2], fewer, tolerance) and same(scores[order.to(scores.device)], moved, tolerance)

    def future() -> bool:
        middle = ids["target"].size(1) // 2
        changed = samples.others("target", ids["target"])
        target = torch.cat([ids["target"][:, :middle], changed[:, middle:]], 1)
        return same(scores[:, :middle], adapter({**ids, "target": target})[:, :middle], tolerance)

    def padding() -> bool:
        padded = adapter({**ids, "source": with_padding(ids["source"], adapter.pad or 0, 3)})
        return same(scores, padded[:, : scores.size(1)], tolerance)

    observations = {"finite": lambda: bool(scores.isfinite().all()), "rows": rows}
    if "target" in adapter.sides:
        observations["future"] = future
    if adapter.pad is not None and "source" in adapter.sides:
        observations["padding"] = padding
    return FoundCall(adapter, form, {name: holds(observe) for name, observe in observations.items()}, scores)


def holds(observe: Callable[[], bool]) -> bool:
    """Return the outcome of an observation, False where it raises an error."""
    try:
        return observe()
    except Exception:  # any exception of the user's model
        return False


def tolerance_of(adapter: ModelAdapter) -> float:
    """Return the tolerance for the type of the weights of a model."""
    weights = None if adapter.module is None else next(adapter.module.parameters(), None)
    return SAME_HALF if weights is not None and weights.dtype.itemsize < 4 else SAME_FLOAT32


@torch.no_grad()
def order_matters(adapter: ModelAdapter) -> bool:
    """Return whether another order of the first side's tokens gives other scores, beyond moving them along."""
    ids = Samples(adapter).ids()
    side = adapter.sides[0]
    scores, turned = adapter(ids), adapter({**ids, side: ids[side].flip(1)})
    moved = turned.flip(1) if len(adapter.sides) == 1 else turned
    return not same(scores, moved, tolerance_of(adapter))
