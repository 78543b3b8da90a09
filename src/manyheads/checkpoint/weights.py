"""Weights by name: into a model, and several to their mean."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from manyheads.errors import RunError
from manyheads.model.sharded import distribute_like

__all__ = ["average_tensors", "load_weights"]


def load_weights(model: torch.nn.Module, tensors: Mapping[str, Tensor], origin: str) -> None:
    """Copy tensors into a model whose names and shapes they must fit exactly.

    Raises:
        RunError: names or shapes differ; the differences are listed.
    """
    own = dict(model.named_parameters())
    problems = [f"{name} is missing" for name in own.keys() - tensors.keys()]
    problems += [f"{name} is unknown" for name in tensors.keys() - own.keys()]
    problems += [
        f"{name} is {tuple(tensors[name].shape)}, not {tuple(parameter.shape)}"
        for name, parameter in own.items()
        if name in tensors and tensors[name].shape != parameter.shape
    ]
    if problems:
        shown = "; ".join(sorted(problems)[:5]) + ("; ..." if len(problems) > 5 else "")
        raise RunError(f"{origin} does not fit the configuration and the tokenizers beside it: {shown}.")
    broken = sorted(name for name in own if not tensors[name].isfinite().all())
    if broken:
        raise RunError(f"{origin} is damaged: {broken[0]} holds values that are not finite. Use another.")
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(distribute_like(tensors[name], parameter))


def average_tensors(models: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of the weights of several models, taken in float64."""
    return {
        name: torch.stack([model[name].double() for model in models]).mean(0).to(tensor.dtype)
        for name, tensor in models[0].items()
    }
