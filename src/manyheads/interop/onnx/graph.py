"""Build a graph of ONNX operators, one call at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from manyheads.errors import require

__all__ = ["Graph", "Port"]

OPSET = 17  # the first with LayerNormalization
FORMAT = 8  # of the file; runtimes from 2022 on read it
Port = tuple[str, type[Any], Sequence[str | int]]  # name, number type, axes: sizes, or names of dynamic axes


class Graph:
    """Operators and constants; values are referred to by name."""

    def __init__(self, name: str) -> None:
        """Start an empty graph; raises `MissingExtraError`."""
        self.onnx = require("onnx", extra="onnx", purpose="the ONNX format")
        self.name = name
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.known: dict[tuple[Any, ...], str] = {}
        self.tensors: list[torch.Tensor] = []  # kept, so that no other tensor gets the memory of one in `known`

    def constant(self, value: torch.Tensor | NDArray[Any] | Sequence[int] | float | int) -> str:
        """Return the name of a constant; the same tensor is stored once."""
        if isinstance(value, torch.Tensor):
            key: tuple[Any, ...] = (value.data_ptr(), value.shape, value.stride())
            self.tensors.append(value)
            value = value.detach().contiguous().numpy()
        else:
            value = np.asarray(value, dtype=np.float32 if isinstance(value, float) else None)
            key = (str(value.dtype), value.shape, value.tobytes())
        if key not in self.known:
            self.known[key] = f"constant_{len(self.known)}"
            self.constants.append(self.onnx.numpy_helper.from_array(value, self.known[key]))
        return self.known[key]

    def call(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add an operator with one output, and return the name of the output."""
        name = output or f"value_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def save(self, path: Path, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        """Check the graph by the rules of ONNX, and write it."""
        helper = self.onnx.helper

        def described(port: Port) -> Any:
            name, kind, axes = port
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), list(axes))

        graph = helper.make_graph(
            self.nodes,
            self.name,
            [described(port) for port in inputs],
            [described(port) for port in outputs],
            self.constants,
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=FORMAT, producer_name="manyheads"
        )
        self.onnx.checker.check_model(model, full_check=True)
        self.onnx.save_model(model, str(path))
