"""Observe how the weights of a module are updated by a training step whose optimizers are not known.

Hooks on the parameters and on all optimizers of torch make the observations. Each optimizer that makes a step is
watched from then on (`watched_optimizer`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from transformer_doctor.checks.watched_optimizer import TrainingFindings, WatchedOptimizer, rate_of, watch_clipping


@dataclass
class UpdateTracer:
    """Record of the backward passes and the updates of the parameters of a module.

    Attributes:
        parameters: trained parameters by name.
        start: their values before the first step.
        told: findings about the optimizers.
        reached: names of parameters with a gradient other than zero.
        rates: by identity of a parameter that an optimizer of torch updates, its highest learning rate.
        rate_grows: whether a learning rate was higher at a later step.
        moving, lost: numbers of weights of half precision with a gradient, and of those that no step changed.
        left_over: names of parameters that code without an optimizer updates, and whose old gradient was still
            there when the next one came.
        count: number of optimizer steps.
        passes: by the number of optimizer steps before them, the number of backward passes.
    """

    parameters: Mapping[str, nn.Parameter]
    start: Mapping[str, Tensor] = field(default_factory=dict)
    told: TrainingFindings = field(default_factory=lambda: TrainingFindings(lambda finding: None))
    reached: set[str] = field(default_factory=set)
    rates: dict[int, float] = field(default_factory=dict)
    rate_grows: bool = False
    moving: int = 0
    lost: int = 0
    left_over: set[str] = field(default_factory=set)
    count: int = 0
    passes: dict[int, int] = field(default_factory=dict)
    _arrivals: Counter[str] = field(default_factory=Counter)
    _latest: dict[str, Tensor] = field(default_factory=dict)
    _moving: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)  # weights before a step, and a mask
    _held: dict[int, WatchedOptimizer] = field(default_factory=dict)  # by the identity of the optimizer
    _hooks: ExitStack = field(default_factory=ExitStack)

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
        with self._hooks as hooks:
            for name, parameter in self.parameters.items():
                if parameter.requires_grad:
                    hooks.callback(parameter.register_hook(partial(self._receive, name)).remove)
            hooks.callback(register_optimizer_step_pre_hook(self._before_step).remove)
            hooks.callback(register_optimizer_step_post_hook(self._after_step).remove)
            hooks.callback(watch_clipping(self._after_clipping))
            yield

    def _receive(self, name: str, gradient: Tensor) -> None:
        self._arrivals[name] += 1
        self.passes[self.count] = max(self.passes.get(self.count, 0), self._arrivals[name])
        if _is_nonzero(gradient):
            self.reached.add(name)
        parameter = self.parameters[name]
        if not self.rates and not _same_bits(parameter, self._latest.get(name, self.start[name])):
            self._latest[name] = parameter.detach().clone()
            if parameter.grad is not None and _is_nonzero(parameter.grad):
                self.left_over.add(name)

    def _hold(self, optimizer: Optimizer) -> WatchedOptimizer | None:
        updated = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        own = {name: parameter for name, parameter in self.parameters.items() if id(parameter) in updated}
        if own and id(optimizer) not in self._held:
            held = self._held[id(optimizer)] = WatchedOptimizer(optimizer, own, self.told, on_cpu=True)
            for name, weight in held.probes().items():
                self._hooks.callback(weight.register_hook(partial(held.expect, name)).remove)
                count = weight.register_post_accumulate_grad_hook(partial(self._count, held, name))
                self._hooks.callback(count.remove)
        return self._held.get(id(optimizer))

    def _count(self, held: WatchedOptimizer, name: str, weight: Tensor) -> None:
        held.count(name, self.count)

    def _after_clipping(self, parameters: Any, limit: float, norm: Tensor) -> None:
        for held in self._held.values():
            held.clip(parameters, limit, norm)

    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        held = self._hold(optimizer)
        if held is None:
            return
        for group in optimizer.param_groups:
            rate = rate_of(group)
            for parameter in group["params"]:
                self.rate_grows |= rate > self.rates.get(id(parameter), rate)
                self.rates[id(parameter)] = max(rate, self.rates.get(id(parameter), 0.0))
        for name, parameter in held.weights.items():
            if parameter.itemsize <= 2 and parameter.grad is not None:
                self._moving[name] = parameter.detach().clone(), parameter.grad != 0
        held.before_step(())

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        held = self._held.get(id(optimizer))
        if held is None:
            return
        for name, (values, moving) in self._moving.items():
            self.moving += int(moving.sum())
            self.lost += int((moving & (values == self.parameters[name].detach())).sum())
        self._moving.clear()
        held.after_step()
        self.count += 1
        self.told.update = self.count
        for name in held.weights:
            self._arrivals.pop(name, None)


def _is_nonzero(gradient: Tensor) -> bool:
    return bool((gradient.coalesce().values() if gradient.is_sparse else gradient).any())


def _same_bits(left: Tensor, right: Tensor) -> bool:
    """Return whether two tensors are equal, NaN being equal to NaN."""
    return torch.equal(left.detach().nan_to_num(), right.nan_to_num())
