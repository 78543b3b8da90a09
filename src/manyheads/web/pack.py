"""Pack a model for the WebAssembly engine of a page: a header (JSON) and one block of tensors.

The header names the structs of the C code (`inference/native/structs.h`) field by field. A field that points to an
array holds the index of a tensor, or null. Each tensor has a type, a shape, and an offset in the block.

```
format         1
task           views of the page: translation, classification or language-modeling
precision      number format of the matrices: fp32 or int8
panel_width    outputs side by side in a panel of a matrix (linear.h)
bytes          size of the block of tensors
special_ids    ids of unk, pad, bos and eos
model          settings of the model that the engine needs
search         settings of the search
window         tokens that a language model sees at most
encoder        struct Model of a translator or a classifier, with lists of its layers and norms
decoder        struct Model of a translator or a language model
memory_kv      structs Linear of a translator: keys and values of the source for each decoder layer
head           structs Linear of a classifier: pooler and output
positions      for encoder and decoder: tensors of learned positions and of token types, or null
tensors        [{type, shape, offset, scale}]; scale: of an embedding in int8, the tensor of its scales
```

Token embeddings are stored as matrices, in panels, one output a token, so that a tied matrix is stored once; the
engine expands them to rows of float32. Sinusoidal and rotary positions are computed by the engine.

Shapes: I inputs, O outputs of a linear layer, D model width, V vocabulary, L layers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyheads.config.schema import Config, ModelConfig
from manyheads.errors import UsageError
from manyheads.inference.native.structs import Linear, Model
from manyheads.inference.native.weights import FloatArray, PackedWeights, Precision, parse_precision
from manyheads.text.interface import BOS, EOS, PAD, UNK

_FORMAT = 1
_PANEL_WIDTH = 8  # of engine.wasm, which refuses another width
_ALIGNMENT = 16  # bytes: a vector of weights then lies within a cache line
_PRECISIONS = ("fp32", "int8")
_MODEL_SETTINGS = ("d_model", "num_heads", "positions", "max_positions", "token_types", "pooling", "pooler")
_SEARCH_SETTINGS = ("beam_size", "length_penalty", "max_length_ratio", "max_length_offset")


@dataclass(frozen=True, eq=False)
class PackedModel:
    """A model as the engine of a page reads it.

    Attributes:
        header: a JSON value, see this module.
        tensors: the arrays of the block, in the order of the header.
    """

    header: dict[str, Any]
    tensors: list[NDArray[Any]]

    def block(self) -> bytes:
        """Return the block of tensors."""
        block = bytearray(self.header["bytes"])
        for tensor, entry in zip(self.tensors, self.header["tensors"], strict=True):
            block[entry["offset"] : entry["offset"] + tensor.nbytes] = tensor.tobytes()
        return bytes(block)


def pack_model(
    config: Config, tensors: Mapping[str, FloatArray], tied: Mapping[str, str], precision: str = "int8"
) -> PackedModel:
    """Pack a translator, a classifier or a language model.

    Args:
        config: configuration of the run.
        tensors: the float32 weights of its model by their names, with the fixed bias of a language model, if any.
        tied: name of a tied matrix -> the name of the matrix that it shares.
        precision: number format of the matrices, "fp32" or "int8".

    Raises:
        UsageError: a page cannot hold such a model: its task, a setting of its search, or the precision.
        WeightsError: a tensor is missing, or has another shape or type.
    """
    if not config.spec.page:
        raise UsageError(f'a page cannot hold a model of the task "{config.task}". {_TASKS}')
    checked = _check_supported(config, precision)
    weights = _PageWeights(tensors, tied, config.model, checked)
    header = {
        "format": _FORMAT,
        "task": config.spec.page,
        "precision": checked,
        "panel_width": _PANEL_WIDTH,
        "special_ids": {"unk": UNK, "pad": PAD, "bos": BOS, "eos": EOS},
        "model": {name: getattr(config.model, name) for name in _MODEL_SETTINGS},
        "search": {name: getattr(config.search, name) for name in _SEARCH_SETTINGS},
        **_structs_of(weights, config),
    }
    entries, size = weights.table()
    return PackedModel({**header, "bytes": size, "tensors": entries}, weights.arrays)


_TASKS = "Export a run of translation, classification or language-modeling."


def _check_supported(config: Config, precision: str) -> Precision:
    """Return the precision; raise `UsageError` for a setting that a page does not support."""
    checked = parse_precision(precision)
    if checked not in _PRECISIONS:
        raise UsageError(
            f'a page cannot hold weights of precision "{precision}". Use one of {", ".join(_PRECISIONS)}.'
        )
    if not config.model.source_end_mark:
        raise UsageError("model.source_end_mark = false is not supported by a page. Export to ctranslate2.")
    if config.spec.decodes and (value := config.search.no_repeat_ngram):
        raise UsageError(
            f"search.no_repeat_ngram = {value} is not supported by a page. Use search.no_repeat_ngram = 0."
        )
    return checked


class _PageWeights(PackedWeights):
    """The weights of a page: a field of a struct holds the number of a tensor, from 1, instead of an address."""

    def __init__(
        self, tensors: Mapping[str, FloatArray], tied: Mapping[str, str], config: ModelConfig, precision: Precision
    ) -> None:
        """Start without packed weights; for `tied` see `pack_model`."""
        super().__init__(tensors, config, precision, _PANEL_WIDTH)
        self.tied = tied
        self.matrices: dict[tuple[str, int | None, int | None], tuple[int, int | None]] = {}
        self.scales: dict[int, int] = {}  # number of an int8 embedding -> number of its scales

    def rows(self, name: str) -> int:
        """Return the number of rows of a matrix: of tokens or classes."""
        return len(self.tensors[name]) if name in self.tensors or name in self.tied else 0

    def keep(self, array: NDArray[Any]) -> int:
        self.arrays.append(np.ascontiguousarray(array))
        return len(self.arrays)

    def matrix(self, name: str, outputs: int, inputs: int, kept: slice) -> tuple[int, int | None]:
        """Pack a matrix; a tied one is packed once."""
        key = (self.tied.get(name, name), kept.start, kept.stop)
        if key not in self.matrices:
            self.matrices[key] = super().matrix(name, outputs, inputs, kept)
        return self.matrices[key]

    def embedding(self, name: str, vocabulary: int, output: Linear) -> int:
        """Pack a token embedding (V, D) as a matrix, rounded in int8, and return its number."""
        weight, scale = self.matrix(f"{name}.tokens.weight", vocabulary, self.config.d_model, slice(None))
        if scale is not None:
            self.scales[weight] = scale
        return weight

    def position_tensors(self, embedding: str) -> dict[str, int | None]:
        """Return the indices of the tensors of learned positions and of token types, (N, D) each, or None."""
        config, indices = self.config, dict[str, int | None](learned=None, types=None)
        if config.positions == "learned":
            table = self.take(f"{embedding}.positions.table.weight", config.max_positions, config.d_model)
            indices["learned"] = self.keep(table) - 1
        if config.token_types:
            indices["types"] = (
                self.keep(self.take(f"{embedding}.types.weight", config.token_types, config.d_model)) - 1
            )
        return indices

    def table(self) -> tuple[list[dict[str, Any]], int]:
        """Return the entry of each tensor in the header, and the size of the block in bytes."""
        entries, offset = [], 0
        for number, array in enumerate(self.arrays, start=1):
            entry: dict[str, Any] = {"type": array.dtype.name, "shape": list(array.shape), "offset": offset}
            if number in self.scales:
                entry["scale"] = self.scales[number] - 1
            entries.append(entry)
            offset += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        return entries, offset


def _structs_of(weights: _PageWeights, config: Config) -> dict[str, Any]:
    """Pack the structs of a model; return their part of the header."""
    if config.spec.decodes:
        return {
            "encoder": _model_json(weights.encoder(weights.rows("source_embedding.tokens.weight"))),
            "decoder": _model_json(weights.decoder(weights.rows("output.weight"))),
            "memory_kv": [_struct_json(linear) for linear in weights.memory_keys_values()],
            "positions": {
                "encoder": weights.position_tensors("source_embedding"),
                "decoder": weights.position_tensors("target_embedding"),
            },
        }
    if config.spec.architecture == "decoder":
        return {
            "decoder": _model_json(weights.language_model(weights.rows("output.weight"))),
            "positions": {"decoder": weights.position_tensors("embedding")},
            "window": config.data.max_length,
        }
    return {
        "encoder": _model_json(weights.encoder(weights.rows("embedding.tokens.weight"), "embedding")),
        "head": {
            "pooler": _struct_json(weights.linear("pooler", config.model.d_model, bias=True)),
            "output": _struct_json(weights.linear("output", weights.rows("output.weight"), bias=True)),
        },
        "positions": {"encoder": weights.position_tensors("embedding")},
    }


def _model_json(model: Model) -> dict[str, Any]:
    """Return a struct `Model` with the lists of its layers and norms."""
    count = model.num_layers
    cross = any(model.layers[number].cross_query.weight for number in range(count))
    norms = (3 if cross else 2) * count + 1
    fields = {name: getattr(model, name) for name, *_ in Model._fields_ if name not in ("layers", "norms")}
    return {
        **{name: _value_json(name, value) for name, value in fields.items()},
        "layers": [_struct_json(model.layers[number]) for number in range(count)],
        "norms": [_struct_json(model.norms[number]) for number in range(norms)],
        "embedding": model.embedding - 1,
    }


def _struct_json(struct: ctypes.Structure) -> dict[str, Any]:
    """Return the fields of a struct; a field that points to an array holds the index of a tensor, or null."""
    return {name: _value_json(name, getattr(struct, name)) for name, *_ in struct._fields_}


def _value_json(name: str, value: Any) -> Any:
    if isinstance(value, ctypes.Structure):
        return None if isinstance(value, Linear) and not value.weight else _struct_json(value)
    return value - 1 if name in ("weight", "scale", "bias") and value is not None else value
