"""Watch an optimizer of a real training: the gradients before each step, and what the step does to the weights."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad
from torch.optim.optimizer import Optimizer

from transformer_doctor.catalogue import model_finding
from transformer_doctor.places import running_place
from transformer_doctor.report import Finding, Place, Severity

UPDATES = "every trained weight is updated, and no other one"
GRADIENTS = "gradients arrive, add up, are clipped and are cleared in the right order"
RATE = "the learning rate is set as planned"
TIMES = 3  # updates in which something is seen before it is said
_EVERY, _FIRST = 64, (1, 2, 3, 4, 8, 16)  # updates that are examined
_MARKS = (4, 16)  # updates after which weights are compared
_NUMBERS, _PROBES = 256, 3  # numbers of a weight that are compared; weights whose gradients are counted
_STILL_ZERO = 10  # updates after which a rate of 0 is no warm-up
_MOST_CLEARED, _MOST_PASSES = 18, 256  # backward passes without a step
_WHOLE = 0.8, 1.05  # sum of the weights of a mean loss; label smoothing lowers it
_EQUAL, _UNEQUAL = 1.04, 2.0  # ratio of the weights, and of the labels, of two micro-batches
_CLIP = "_clip_grads_with_norm_"  # called by clip_grad_norm_, wherever that was imported
_UNSCALED = 1 / 8  # factor of a gradient between clipping and step that comes from a loss scale
_TIGHT, _LARGE_DECAY = 1e-3, 0.5  # norm of clipped gradients, and weight decay, that are no usual ones
_LOST_SHARE = 0.9  # share of the weights whose updates are lost in half precision
_RELATED = 0.5  # cosine of old and new weights from which on these were changed, not drawn anew
_UNDONE, _ALL = 0.6, 0.9  # share of a way that is gone back; share of the numbers that are taken for all
_UPHILL = 0.5  # cosine of a change and the gradient
_FALL, _FALLS = 0.9, 6  # factor of the rate, and updates in a row with the same one
_LOW_RATE, _SAME_RATE = 1e-2, 1e-6  # share of the highest rate; relative difference
_NAMED = 3


@dataclass
class TrainingFindings:
    """Findings of a training, each reported once, when it is seen.

    Attributes:
        tell: receives a finding.
        update: number of updates so far.
        place: line of the program that last called the model.
        raised: error of `tell`, which is to go through to the training.
    """

    tell: Callable[[Finding], object]
    findings: dict[str, Finding] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    update: int = 0
    place: Place | None = None
    raised: Exception | None = None
    times: Counter[str] = field(default_factory=Counter)

    def find(self, name: str, evidence: str, check: str, severity: Severity | None = None) -> None:
        """Make a finding, unless it was made before."""
        self.asked.add(check)
        if name in self.findings:
            return
        finding = model_finding(name, f"at update {self.update + 1}, {evidence}", severity)
        self.findings[name] = replace(finding, place=running_place() or self.place, check=check)
        try:
            self.tell(self.findings[name])
        except Exception as error:
            self.raised = error
            raise

    def find_repeated(self, name: str, evidence: str, check: str, severity: Severity | None = None) -> None:
        """Make a finding when it is seen for the third time."""
        self.times[name] += 1
        if self.times[name] >= TIMES:
            self.find(name, evidence, check, severity)


@dataclass
class WatchedOptimizer:
    """An optimizer with the weights of a model that it holds, by name, and frozen ones that nothing holds.

    Attributes:
        steps: steps so far.
        passes: backward passes since a step of any optimizer.
        waiting: backward passes since its own last step.
    """

    optimizer: Optimizer
    weights: Mapping[str, nn.Parameter]
    told: TrainingFindings
    plan: Callable[[int], float] | None = None
    on_cpu: bool = False
    steps: int = 0
    passes: int = 0
    waiting: int = 0
    holds_copies: bool = False  # whether the optimizer holds none of the weights, but copies or other ones
    untouched: set[str] | None = None  # names of weights that never had a gradient other than 0
    after: Tensor | None = None  # numbers of the weights after and before the last step
    _before: Tensor | None = None
    _origin: Tensor | None = None  # numbers of the weights where they were changed outside of a step
    _all_steps: int = 0  # of all optimizers at the last backward pass
    _last_passes: int = 0  # backward passes before the last step
    _cleared: int = 0  # passes since it whose gradients were cleared
    _lost: bool = False  # whether there were finite gradients among them
    _left_over: str = ""  # name of a weight whose gradient is added to that of the last update
    _arrivals: Counter[str] = field(default_factory=Counter)
    # by weight: whether its last gradient came to none, was not zero, and was finite; a sum of the weight
    _last: dict[str, tuple[bool, bool, bool, float]] = field(default_factory=dict)
    _coming: dict[str, tuple[bool, bool, bool, float]] = field(default_factory=dict)  # the same, before it is added
    _rates: Sequence[float] = ()
    _zeros: Counter[int] = field(default_factory=Counter)  # updates in a row with a rate of 0, by group
    _peak: float = 0.0
    _last_rate: float = 0.0
    _factor: float = 0.0  # of the last two rates, and the updates in a row with the same one
    _falls: int = 0
    _clipped: tuple[float, float, Tensor, float] | None = None  # limit, norm, a weight, the norm of its gradient
    _clipped_passes: int = 0  # backward passes before gradients were clipped last
    _mark: Tensor | None = None  # numbers after an earlier step, its rate, and which had gradients since
    _mark_rate: float = 0.0
    _moving: Tensor | None = None
    _views: Sequence[Tensor] = ()
    _pointers: Sequence[int] = ()

    def probes(self) -> Mapping[str, nn.Parameter]:
        """Return some weights whose gradients are counted, small ones where there are any."""
        trained = [name for name, weight in self.weights.items() if weight.requires_grad]
        chosen = [name for name in trained if self.weights[name].dim() == 1] or trained
        return {name: self.weights[name] for name in chosen[:: len(chosen) // _PROBES + 1]}

    def looks(self) -> bool:
        """Return whether numbers are read for the coming step."""
        return self.on_cpu or is_examined(self.steps)

    def numbers(self) -> Tensor:
        """Return a copy of some numbers of each weight, one after the other."""
        pointers = [weight.data_ptr() for weight in self.weights.values()]
        if pointers != self._pointers:
            self._views, self._pointers = [_some(weight) for weight in self.weights.values()], pointers
        return torch.cat([view.to(self._views[0].device) for view in self._views])

    def split(self, numbers: Tensor) -> Sequence[Tensor]:
        """Return the numbers of each weight."""
        return numbers.split([len(view) for view in self._views])

    # Backward passes

    def expect(self, name: str, gradient: Tensor) -> None:
        """Look at a gradient of a weight, and at what it will be added to."""
        if self.looks():
            weight, some = self.weights[name], _some(gradient)
            empty = weight.grad is None or not bool(_some(weight.grad).any())
            self._coming[name] = empty, bool(some.any()), bool(some.isfinite().all()), float(_some(weight).sum())

    def count(self, name: str, all_steps: int) -> bool:
        """Count a gradient that a weight got; return whether it is the first one of a backward pass."""
        if self._all_steps != all_steps:
            self._all_steps, self.passes = all_steps, 0
            self._arrivals.clear()
        self._arrivals[name] += 1
        if self._arrivals[name] <= self.passes:
            return False
        self.passes += 1
        self.waiting += 1
        self.told.asked.add(GRADIENTS)
        rates = self._group_rates()
        if self.passes > 1 and rates != self._rates:
            evidence = f"the learning rate changes between backward passes of one update, now to {rates[0]:.4g}"
            self.told.find_repeated("schedule-per-micro-batch", evidence, RATE)
        self._rates = rates
        if name in self._coming:
            self._compare_with_last(name, self._coming.pop(name))
        return True

    def _compare_with_last(self, name: str, now: tuple[bool, bool, bool, float]) -> None:
        """Judge whether gradients were cleared between two backward passes, and before the first one."""
        (empty, _, finite, place), last = now, self._last.get(name)
        if self.waiting == 1 and self.steps:
            self._left_over = "" if empty else name
        elif empty:
            self._left_over = ""
        if self._clipped is not None and self._clipped_passes == self.passes - 1 > 0 and not empty:
            self._clipped_passes = 0
            evidence = f"gradients are clipped after {self.passes - 1} backward passes, and more follow"
            self.told.find_repeated("clipped-wrongly", evidence, GRADIENTS)
        if last is not None and self.passes > 1 and empty and last[1] and last[3] == place:
            self._cleared += 1
            self._lost |= last[2]
        self._last[name] = now
        if self.waiting > _MOST_PASSES or self._cleared > _MOST_CLEARED:
            why = "" if finite else "; gradients are not finite"
            evidence = f"no step followed on {self.waiting} backward passes{why}"
            self.told.find("parameters-not-updated", evidence, UPDATES)

    def clip(self, parameters: Sequence[Tensor], limit: float, norm: Tensor) -> None:
        """Look at the gradients of the weights among some parameters after they were clipped."""
        clipped = {id(parameter) for parameter in parameters}
        own = [weight for weight in self.weights.values() if id(weight) in clipped]
        if not own or not self.looks():
            return
        if self.passes == 0 and self._last_passes:
            evidence = f"gradients are clipped to {limit:g} when none has arrived since the last step"
            self.told.find_repeated("clipped-wrongly", evidence, GRADIENTS)
        weight = next((weight for weight in own if weight.grad is not None), None)
        if weight is not None and weight.grad is not None and self.passes:
            self._clipped = float(limit), float(norm), weight, float(weight.grad.norm())
            self._clipped_passes = self.passes if norm > limit else 0

    # Steps

    def before_step(self, totals: Sequence[tuple[float, int]]) -> None:
        """Judge the gradients before a step; `totals` are those of the losses since the last one (`SeenLoss`)."""
        self._check_rates()
        self._before = self.numbers()
        self._origin = self._before.float() if self._origin is None else self._origin
        if self.looks() and self.after is not None and not torch.equal(self._before, self.after):
            pairs = zip(self.weights, self.split(self.after), self.split(self._before), strict=True)
            redrawn = [name for name, old, new in pairs if _is_unrelated(old, new)]
            if redrawn:
                evidence = f"{listed(redrawn)} got unrelated values since the last step"
                self.told.find("weights-redrawn", evidence, UPDATES)
            self._judge_change(self._origin, self.after.float(), self._before.float())
        if self._left_over and not self.holds_copies:
            evidence = f"the gradient of {self._left_over} still holds that of the last update"
            self.told.find("gradients-accumulated", evidence, GRADIENTS)
        if self._lost:
            evidence = "gradients are set to zero between the backward passes of an update"
            self.told.find_repeated("gradients-lost", evidence, GRADIENTS)
        if self._clipped is not None:
            self._judge_clipping(*self._clipped)
        if is_examined(self.steps):
            arrived = self._gradients() != 0
            self._moving = arrived if self._moving is None else self._moving & arrived
            names = self.weights if self.untouched is None else self.untouched
            self.untouched = {
                name for name in names if self.weights[name].requires_grad and _is_zero(self.weights[name].grad)
            }
            fault = accumulation_fault(totals, _UNEQUAL) if 1 < self.passes == len(totals) else None
            if fault is not None:
                self.told.find(*fault, GRADIENTS)

    def _gradients(self) -> Tensor:
        """Return the gradients of `numbers`, 0 where there are none."""
        return torch.cat([
            torch.zeros_like(view) if weight.grad is None or weight.grad.is_sparse else _some(weight.grad)
            for view, weight in zip(self._views, self.weights.values(), strict=True)
        ])  # fmt: skip

    def _judge_change(self, origin: Tensor, after: Tensor, before: Tensor) -> None:
        """Judge how weights were changed between a step, with the numbers `after` it, and the next one.

        They go back where an average or old weights are left in them, and uphill where SAM's move is not undone.
        """
        change, way, self._origin = before - after, after - origin, before
        undone = -float(change @ way) / max(float(way @ way), 1e-30)
        everywhere = float((change != 0)[way != 0].float().mean()) > _ALL
        if everywhere and undone > _UNDONE:
            evidence = f"weights have gone back by {undone:.0%} of what the updates before changed"
            self.told.find_repeated("weights-redrawn", evidence, UPDATES)
        elif everywhere and nn.functional.cosine_similarity(change, self._gradients().float(), 0) > _UPHILL:
            evidence = "weights were moved along their gradient, and not put back before the step"
            self.told.find_repeated("weights-redrawn", evidence, UPDATES)

    def _group_rates(self) -> Sequence[float]:
        return [rate_of(group) for group in self.optimizer.param_groups]

    def _check_rates(self) -> None:
        self._rates = rates = self._group_rates()
        self._peak = max(self._peak, *rates)
        self._zeros = Counter({index: self._zeros[index] + 1 for index, rate in enumerate(rates) if rate == 0})
        if max(self._zeros.values(), default=0) == _STILL_ZERO:
            whose = "that of a group of weights" if self._peak else "the learning rate"
            self.told.find("parameters-not-updated", f"{whose} has been 0 for {_STILL_ZERO} updates", UPDATES)
        decay = max(group.get("weight_decay") or 0.0 for group in self.optimizer.param_groups)
        if decay >= _LARGE_DECAY:
            left = math.exp(-max(rates) * decay * 1000)
            evidence = (
                f"weight decay is {decay:g}: with this rate it leaves {left:.0%} of a weight in 1,000 updates"
            )
            self.told.find("weight-decay-too-high", evidence, UPDATES)
        factor = rates[0] / self._last_rate if self._last_rate else 1.0
        same = 0 < factor < _FALL and math.isclose(factor, self._factor, rel_tol=1e-3)
        self._last_rate, self._factor, self._falls = rates[0], factor, self._falls + 1 if same else 0
        if self._falls == _FALLS:
            evidence = f"each of {_FALLS} updates multiplies the learning rate by {factor:.2g}"
            self.told.find("unusual-schedule", evidence, RATE)
        if self.plan is not None:
            self.told.asked.add(RATE)
            planned = self.plan(self.steps + 1)
            if not math.isclose(rates[0], planned, rel_tol=_SAME_RATE, abs_tol=1e-12):
                evidence = f"the learning rate is {rates[0]:.6g}, and {planned:.6g} was planned"
                self.told.find("rate-not-as-planned", evidence, RATE)

    def _judge_clipping(self, limit: float, norm: float, weight: Tensor, after: float) -> None:
        self._clipped = None
        factor = float(weight.grad.norm()) / after if weight.grad is not None and after > 0 else 1.0
        if 0 < factor < _UNSCALED:
            evidence = f"gradients are clipped to {limit:g}, and only then unscaled, by a factor of {factor:.2g}"
            self.told.find("clipped-wrongly", evidence, GRADIENTS)
        elif limit <= _TIGHT and norm > 2 * limit:
            evidence = f"gradients of a norm of {norm:.2g} are clipped to {limit:.2g}"
            self.told.find_repeated("clipped-wrongly", evidence, GRADIENTS, "warning")

    def after_step(self) -> None:
        """Look at the weights after a step."""
        looks, self.after = self.looks(), self.numbers()
        frozen = {name for name, weight in self.weights.items() if not weight.requires_grad}
        if looks and self._before is not None and frozen:
            pairs = zip(self.weights, self.split(self._before), self.split(self.after), strict=True)
            moved = [name for name, old, new in pairs if name in frozen and not torch.equal(old, new)]
            if moved:
                evidence = f"a step changed {listed(moved)}, though frozen"
                self.told.find_repeated("frozen-weights-moved", evidence, UPDATES)
        self.steps += 1
        self._last_passes, self.passes, self.waiting, self._cleared = self.passes, 0, 0, 0
        self._lost, self._left_over = False, ""
        self._arrivals.clear()
        if self.is_mark():
            self._compare_with_mark(self.after)

    def is_mark(self) -> bool:
        """Return whether weights are compared after the step that was made last."""
        return self.steps in _MARKS or self.steps % _EVERY == 0

    def _compare_with_mark(self, after: Tensor) -> None:
        """Compare the weights with those of earlier updates, unless the rate grows, or is too small by plan."""
        rate, mark, moving = max(self._rates), self._mark, self._moving
        growing, low = rate > self._mark_rate * (1 + _SAME_RATE), rate < _LOW_RATE * self._peak
        self._mark, self._mark_rate, self._moving = after, rate, None
        if mark is None or moving is None or mark.shape != after.shape or growing or low:
            return
        self.told.asked.add(UPDATES)
        if self.holds_copies:
            if torch.equal(mark, after):
                evidence = "no weight of the model changed in several updates, and the optimizer holds none of them"
                self.told.find("parameters-not-updated", evidence, UPDATES)
            return
        still, lost, count, rounded = [], 0, 0, []
        for (name, weight), part, same in zip(
            self.weights.items(), self.split(moving), self.split(moving & (mark == after)), strict=True
        ):
            if weight.itemsize <= 2:
                lost, count = lost + int(same.sum()), count + int(part.sum())
                rounded += [name] if part.sum() > _PROBES and torch.equal(same, part) else []
            elif part.any() and torch.equal(same, part):
                still.append(name)
        if still:
            evidence = f"no number of {listed(still)} changed in several updates, at a rate of {rate:.2g}"
            self.told.find("parameters-not-updated", evidence, UPDATES)
        if lost > _LOST_SHARE * count or rounded:
            which = f"all numbers of {listed(rounded)}" if rounded else f"{lost} of {count} weights with gradients"
            evidence = f"{which} keep their value in several updates: those by {rate:.2g} are lost"
            self.told.find("lost-in-half-precision", evidence, UPDATES)


def watch_clipping(after: Callable[[Any, float, Tensor], None]) -> Callable[[], None]:
    """Call a function with parameters, limit and norm after each clip_grad_norm_; return what ends it."""
    plain = vars(clip_grad)[_CLIP]

    def clip(parameters: Any, limit: float, norm: Tensor, *further: Any, **options: Any) -> None:
        plain(parameters, limit, norm, *further, **options)
        after(parameters, limit, norm)

    setattr(clip_grad, _CLIP, clip)
    return lambda: setattr(clip_grad, _CLIP, plain)


def accumulation_fault(totals: Sequence[tuple[float, int]], unequal: float) -> tuple[str, str] | None:
    """Return name and evidence of what is wrong with the micro-batches of an update, None where all is well.

    Args:
        totals: for each of them, the sum of the weights of its labels in the loss, and their number.
        unequal: ratio of two numbers of labels from which on they are taken for different ones.
    """
    sums, counts = zip(*totals, strict=True)
    if all(_WHOLE[0] < total < _WHOLE[1] for total in sums):
        evidence = f"the gradients of {len(sums)} micro-batches are added up, each that of a whole mean loss"
        return "accumulation-not-divided", evidence
    if max(sums) < _EQUAL * min(sums) and max(counts) > unequal * min(counts) > 0:
        evidence = f"micro-batches of {min(counts)} and of {max(counts)} labels have the same weight in an update"
        return "micro-batches-averaged", evidence
    return None


def rate_of(group: Mapping[str, Any]) -> float:
    """Return the learning rate of a group of parameters, 1 where the optimizer chooses it."""
    rate = group.get("lr")
    return 1.0 if rate is None else float(rate)


def is_examined(steps: int) -> bool:
    """Return whether the update after so many steps is one that is examined."""
    return steps + 1 in _FIRST or (steps + 1) % _EVERY == 0


def listed(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _some(tensor: Tensor) -> Tensor:
    """Return some numbers of a tensor, evenly spaced: a view where its memory is contiguous."""
    flat = _values(tensor).flatten()
    return flat[:: (len(flat) // _NUMBERS) | 1]


def _values(tensor: Tensor) -> Tensor:
    """Return the numbers of a tensor, sparse or distributed, that this process holds."""
    tensor = tensor.detach().coalesce().values() if tensor.is_sparse else tensor
    return (tensor.to_local() if hasattr(tensor, "to_local") else tensor).detach()


def _is_zero(gradient: Tensor | None) -> bool:
    return gradient is None or not (_some(gradient).any() or _values(gradient).any())


def _is_unrelated(old: Tensor, new: Tensor) -> bool:
    """Return whether other numbers of another direction stand in the place of old ones, which were not zero.

    Numbers that are zero now are left out: they may be pruned.
    """
    old, new = old[new != 0], new[new != 0]
    if len(old) < _PROBES or torch.equal(old, new) or not old.any():
        return False
    return float(nn.functional.cosine_similarity(old.float(), new.float(), 0)) < _RELATED
