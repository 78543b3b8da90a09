"""Find the scores in whatever a model returns: a tensor, a tuple with a loss, a mapping, an output dataclass.

Shapes: B batch, T length, V vocabulary.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from transformer_doctor.errors import UsageError

_SCORES = ("logits", "prediction_logits", "scores", "last_hidden_state")  # usual names, the likeliest first


def tensor_of(output: Any, width: int | None = None) -> Tensor:
    """Return the scores in the output of a model.

    Losses (tensors of fewer than two axes) and ids are skipped, so that (logits, loss) and (loss, logits) give
    the logits. Of several tensors, those whose last axis has `width` entries are preferred, then one of a usual
    name, then the first.

    Raises:
        UsageError: the output holds no such tensor.
    """
    if isinstance(output, Tensor) and (output.is_floating_point() or output.dim() == 0):
        return output
    named = [*_named_tensors(output)]
    tensors = [(name, tensor) for name, tensor in named if tensor.is_floating_point() and tensor.dim() >= 2]
    if not tensors:
        shapes = [f"{str(tensor.dtype).partition('.')[2]} {tuple(tensor.shape)}" for _, tensor in named]
        returned = type(output).__name__ + (f" ({', '.join(shapes)})" if shapes else "")
        raise UsageError(
            f"the model returned {returned}, in which no scores were found: neither a tensor, nor "
            "a tuple, a mapping or an object that holds one. Examine a function that returns the logits."
        )
    if width is not None and any(tensor.size(-1) == width for _, tensor in tensors):
        tensors = [(name, tensor) for name, tensor in tensors if tensor.size(-1) == width]
    by_name = dict(reversed(tensors))
    return next((by_name[name] for name in _SCORES if name in by_name), tensors[0][1])


def _named_tensors(output: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors in an output with the name of the field that holds each, "" where there is none."""
    if isinstance(output, Tensor):
        yield name, output
    elif isinstance(output, Mapping):
        for key, value in output.items():
            yield from _named_tensors(value, str(key))
    elif dataclasses.is_dataclass(output):
        for field in dataclasses.fields(output):
            yield from _named_tensors(getattr(output, field.name), field.name)
    elif isinstance(output, tuple) and hasattr(output, "_fields"):
        for field_name, value in zip(output._fields, output, strict=True):
            yield from _named_tensors(value, field_name)
    elif isinstance(output, (tuple, list)):
        for value in output:
            yield from _named_tensors(value, name)
    elif hasattr(output, "__dict__") and not callable(output):
        for key, value in vars(output).items():
            if isinstance(value, Tensor):
                yield key, value
