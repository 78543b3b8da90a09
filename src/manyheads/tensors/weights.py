"""Load weights into a model by name, and average the weights of several models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from manyheads.checkpoint.files import StoredTensor, check_largest
from manyheads.config.schema import ModelConfig
from manyheads.errors import RunError
from manyheads.tensors.sharded import distribute_like


class SkipInitialization(TorchFunctionMode):
    """Skip the random initialisation of tensors in this context: for models whose weights are loaded afterwards.

    It saves time and memory; on the meta device, drawing random numbers would make torch import 70 MiB of its
    compiler.
    """

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Iterable[type],
        arguments: tuple[Any, ...] = (),
        options: Mapping[str, Any] | None = None,
    ) -> Any:
        if getattr(function, "__name__", "") in ("normal_", "uniform_", "xavier_uniform_", "kaiming_uniform_"):
            return arguments[0] if arguments else (options or {})["tensor"]
        return function(*arguments, **(options or {}))


def check_header(
    config: ModelConfig, build: Callable[[], torch.nn.Module], header: Mapping[str, StoredTensor], origin: str
) -> None:
    """Compare the tensors of a file with the model that `build` makes of a configuration, without its memory.

    Raises:
        RunError: names or shapes differ; the message lists them.
    """
    layers = config.num_encoder_layers + config.num_decoder_layers
    if layers > len(header):
        raise RunError(f"{origin} does not fit: its {len(header)} tensors cannot be those of {layers} layers.")
    with torch.device("meta"), SkipInitialization():
        expected = dict(build().named_parameters())
    actual = {name: tensor.shape for name, tensor in header.items()}
    _compare({name: tuple(parameter.shape) for name, parameter in expected.items()}, actual, origin)


def _compare(expected: Mapping[str, tuple[int, ...]], actual: Mapping[str, tuple[int, ...]], origin: str) -> None:
    """Raise `RunError` if names or shapes differ; the message lists the differences."""
    problems = [f"{name} is missing" for name in expected.keys() - actual.keys()]
    problems += [f"{name} is unknown" for name in actual.keys() - expected.keys()]
    problems += [
        f"{name} is {actual[name]}, not {shape}"
        for name, shape in expected.items()
        if actual.get(name, shape) != shape
    ]
    if problems:
        shown = "; ".join(sorted(problems)[:5]) + ("; ..." if len(problems) > 5 else "")
        raise RunError(f"{origin} does not fit the configuration and the tokenizers beside it: {shown}.")


def load_weights(model: torch.nn.Module, tensors: Mapping[str, Tensor], origin: str) -> None:
    """Copy tensors into a model; names, shapes and types must match exactly.

    Raises:
        RunError: names, shapes or types differ; the message lists them.
    """
    parameters = dict(model.named_parameters())
    actual = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    _compare({name: tuple(parameter.shape) for name, parameter in parameters.items()}, actual, origin)
    mistyped = [
        f"{name} is {tensors[name].dtype}, not {parameter.dtype}"
        for name, parameter in sorted(parameters.items())
        if tensors[name].dtype != parameter.dtype
    ]
    if mistyped:
        raise RunError(f"{origin} holds numbers of another type: {'; '.join(mistyped[:5])}.")
    check_values(tensors, origin)
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(distribute_like(tensors[name], parameter))


def check_values(tensors: Mapping[str, Tensor], origin: str) -> None:
    """Raise `RunError` if a tensor holds values that are not finite, or larger than any trained weight."""
    for name, tensor in sorted(tensors.items()):
        if tensor.numel():
            lowest, highest = tensor.detach().float().aminmax()
            check_largest(max(float(highest), -float(lowest)), name, origin)


def average_tensors(models: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of the weights of several models, computed in float64."""
    return {
        name: torch.stack([model[name].double() for model in models]).mean(0).to(tensor.dtype)
        for name, tensor in models[0].items()
    }
