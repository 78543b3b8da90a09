"""An exponential moving average (EMA) of the weights, less noisy than the weights (Polyak and Juditsky 1992)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from manyheads.tensors.sharded import distribute_like


class ExponentialMovingAverage:
    """An exponential moving average of a model's parameters.

    Update t keeps the share min(decay, (1 + t) / (10 + t)) of the average, so that the influence of the first,
    untrained weights ends soon.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """Update the average with the weights after update `step`, the first being 1."""
        share = 1 - min(self.decay, (1 + step) / (10 + step))
        for name, parameter in model.named_parameters():
            self.weights[name].lerp_(parameter, share)

    @contextmanager
    def instead(self, model: nn.Module) -> Iterator[None]:
        """Give the model the averaged weights while the context is open; then restore its weights, bit for bit."""
        trained = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
        _copy_into(model, self.weights)
        try:
            yield
        finally:
            _copy_into(model, trained)

    def restore(self, weights: Mapping[str, Tensor]) -> None:
        """Set the averages, when training resumes."""
        for name, tensor in weights.items():
            self.weights[name].copy_(distribute_like(tensor.detach(), self.weights[name]))


@torch.no_grad()
def _copy_into(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    for name, parameter in model.named_parameters():
        parameter.copy_(weights[name])
