"""Observe how the weights of a module are updated: gradients, clipping, and the steps of torch's optimizers.

The observations need no knowledge of the training loop: hooks on the parameters and on the optimizers make them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

_CLIPPING = ("clip_grad_norm_", "clip_grad_value_")
_RELATED = 0.5  # cosine of old and new weights from which on these were changed, not drawn anew


@dataclass
class Clipping:
    """Call of one of torch's clipping functions.

    Attributes:
        limit: norm, or largest value, that gradients are clipped to; at the step, after they were unscaled.
        before, after: norm of all gradients before and after the call.
        in_time: whether gradients had arrived since the last step.
    """

    limit: float
    before: float
    after: float
    in_time: bool


@dataclass
class UpdateTracer:
    """Record of the backward passes and the updates of the parameters of a module.

    Attributes:
        parameters: trained parameters by name.
        start: their values before the first step.
        reached: names of parameters with a gradient other than zero.
        in_optimizer: identities of parameters in an optimizer of torch that made a step.
        rates, decays: learning rates and weight decays in such an optimizer, by identity, the highest ones.
        rate_grows: whether a learning rate was higher at a later step.
        cleared: names of parameters whose gradient was set to zero between two backward passes of an update.
        redrawn: names of parameters that other code than an optimizer replaced by unrelated values.
        fresh: optimizers that had no state before their first step.
        clippings: calls of torch's clipping functions.
        moving, lost: numbers of weights of half precision with a gradient, and of those that no step changed.
        left_over: names of parameters whose gradient was still that of an earlier update when the next one came.
        count: number of optimizer steps.
        passes: by the number of optimizer steps before them, the number of backward passes.
    """

    parameters: Mapping[str, nn.Parameter]
    start: Mapping[str, Tensor] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)
    in_optimizer: set[int] = field(default_factory=set)
    rates: dict[int, float] = field(default_factory=dict)
    decays: dict[int, float] = field(default_factory=dict)
    rate_grows: bool = False
    cleared: set[str] = field(default_factory=set)
    redrawn: set[str] = field(default_factory=set)
    clippings: list[Clipping] = field(default_factory=list)
    fresh: list[Optimizer] = field(default_factory=list)
    moving: int = 0
    lost: int = 0
    left_over: set[str] = field(default_factory=set)
    count: int = 0
    passes: dict[int, int] = field(default_factory=dict)
    _arrivals: dict[str, int] = field(default_factory=dict)
    _updated: set[str] = field(default_factory=set)
    _latest: dict[str, Tensor] = field(default_factory=dict)
    _cleared: set[str] = field(default_factory=set)  # since the last step
    _arrived: dict[str, tuple[int, bool]] = field(default_factory=dict)  # version of a weight, gradient of use
    _stepped: dict[str, Tensor] = field(default_factory=dict)  # weights after their last step
    _moving: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)  # weights before a step, and a mask

    @classmethod
    def of(cls, module: nn.Module) -> UpdateTracer:
        """Return a tracer of the parameters of a module that require a gradient."""
        trained = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
        return cls(trained, {name: parameter.detach().clone() for name, parameter in trained.items()})

    @property
    def changed(self) -> list[str]:
        """Return the names of the parameters whose values are no longer those of the start."""
        return [name for name, parameter in self.parameters.items() if not _same_bits(parameter, self.start[name])]

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Observe gradients and optimizers inside the context."""
        with ExitStack() as hooks:
            for name, parameter in self.parameters.items():
                if parameter.requires_grad:
                    hooks.callback(parameter.register_hook(self._arrival(name, parameter)).remove)
            hooks.callback(register_optimizer_step_pre_hook(self._before_step).remove)
            hooks.callback(register_optimizer_step_post_hook(self._after_step).remove)
            for function in [vars(nn.utils)[name] for name in _CLIPPING]:
                self._replace_everywhere(function, hooks)
            yield

    def _replace_everywhere(self, function: Callable[..., Any], hooks: ExitStack) -> None:
        """Replace a clipping function in every Python module that has imported it, until the hooks are closed."""

        def clip(parameters: Any, limit: Any = None, *args: Any, **named: Any) -> Any:
            parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
            names = {id(parameter): name for name, parameter in self.parameters.items()}
            in_time = any(names.get(id(parameter)) in self._arrivals for parameter in parameters)
            before = self.gradient_norm()
            given = limit if limit is not None else named.get("max_norm", named.get("clip_value", math.inf))
            result = function(parameters, *([] if limit is None else [limit]), *args, **named)
            self.clippings.append(Clipping(float(given), before, self.gradient_norm(), in_time))
            return result

        name = function.__name__
        for module in list(sys.modules.values()):
            if getattr(module, "__dict__", {}).get(name) is function:
                setattr(module, name, clip)
                hooks.callback(setattr, module, name, function)

    def gradient_norm(self) -> float:
        """Return the norm of the gradients of all parameters."""
        gradients = [parameter.grad for parameter in self.parameters.values() if parameter.grad is not None]
        return math.sqrt(sum(float(gradient.detach().float().norm()) ** 2 for gradient in gradients))

    def begin_call(self) -> None:
        """Record which parameters were updated by code that is no optimizer of torch."""
        if self.in_optimizer:
            return
        for name, parameter in self.parameters.items():
            known = self._latest.get(name, self.start[name])
            if not _same_bits(parameter, known):
                self._updated.add(name)
                self._latest[name] = parameter.detach().clone()

    def _arrival(self, name: str, parameter: nn.Parameter) -> Callable[[Tensor], None]:
        """Return a hook for the gradients of a parameter in backward passes."""

        def receive(gradient: Tensor) -> None:
            self._arrivals[name] = self._arrivals.get(name, 0) + 1
            self.passes[self.count] = max(self.passes.get(self.count, 0), self._arrivals[name])
            useful = _is_nonzero(gradient)
            if useful:
                self.reached.add(name)
            empty = parameter.grad is None or not _is_nonzero(parameter.grad)
            if empty and self._arrived.get(name, (0, False))[1] and not self._weights_moved():
                self._cleared.add(name)
            self._arrived[name] = parameter._version, useful and bool(gradient.isfinite().all())
            if name in self._updated:
                self._updated.discard(name)
                if parameter.grad is not None and _is_nonzero(parameter.grad):
                    self.left_over.add(name)

        return receive

    def _weights_moved(self) -> bool:
        """Return whether weights were changed since their last gradient, as in sharpness-aware minimisation."""
        return any(self.parameters[name]._version != version for name, (version, _) in self._arrived.items())

    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        known = {id(parameter) for parameter in self.parameters.values()}
        self.fresh += [] if optimizer.state else [optimizer]
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if id(parameter) in known:
                    self.in_optimizer.add(id(parameter))
                    rate, decay = float(group.get("lr", 1.0)), float(group.get("weight_decay") or 0.0)
                    self.rate_grows |= rate > self.rates.get(id(parameter), rate)
                    self.rates[id(parameter)] = max(rate, self.rates.get(id(parameter), 0.0))
                    self.decays[id(parameter)] = max(decay, self.decays.get(id(parameter), 0.0))
        if self.clippings and self.clippings[-1].in_time and self.clippings[-1].after > 0:
            self.clippings[-1].limit *= self.gradient_norm() / self.clippings[-1].after
        for name, parameter in self.parameters.items():
            if name in self._stepped and _is_unrelated(self._stepped[name], parameter.detach()):
                self.redrawn.add(name)
            if parameter.itemsize <= 2 and parameter.grad is not None and id(parameter) in self.in_optimizer:
                self._moving[name] = parameter.detach().clone(), parameter.grad != 0

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        stepped = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        names = {name for name, parameter in self.parameters.items() if id(parameter) in stepped}
        self._updated |= names
        self.cleared |= self._cleared & names
        self._cleared -= names
        self._stepped |= {name: self.parameters[name].detach().clone() for name in names}
        for name, (values, moving) in self._moving.items():
            self.moving += int(moving.sum())
            self.lost += int((moving & (values == self.parameters[name].detach())).sum())
        self._moving.clear()
        if names:
            self.count += 1
            self._arrivals = {name: count for name, count in self._arrivals.items() if name not in names}
            self._arrived.clear()


def _is_nonzero(gradient: Tensor) -> bool:
    """Return whether any value of a gradient, which may be sparse, is not zero."""
    return bool((gradient.coalesce().values() if gradient.is_sparse else gradient).any())


def _is_unrelated(old: Tensor, new: Tensor) -> bool:
    """Return whether weights of another direction stand in the place of old ones, which were not zero."""
    if torch.equal(old, new) or not old.any():
        return False
    return float(nn.functional.cosine_similarity(old.flatten().float(), new.flatten().float(), 0)) < _RELATED


def _same_bits(left: Tensor, right: Tensor) -> bool:
    """Return whether two tensors are equal, NaN being equal to NaN."""
    return torch.equal(left.detach().nan_to_num(), right.nan_to_num())
