"""The names of weights in manyheads and in CTranslate2: one table for export and import."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from manyheads.config.schema import ModelConfig

_LAYERS: dict[str, dict[str, list[str]]] = tomllib.loads(
    (Path(__file__).parent / "layers.toml").read_text(encoding="utf-8")
)
_READERS = ("project_in", "expand")  # layers whose input has the model width; in all others the output has it
_NORM = {"weight": "gamma", "bias": "beta"}
OUTPUT_BIAS = "output.bias"


@dataclass(frozen=True)
class Entry:
    """One weight of a manyheads model.

    Attributes:
        name: its name in manyheads.
        variables: its name in CTranslate2, or the names of the two variables that manyheads concatenates.
        first_rows: rows of the first of two variables.
        axis: axis of the model width; None if it has none.
    """

    name: str
    variables: tuple[str, ...]
    first_rows: int
    axis: int | None

    def split_sizes(self, rows: int) -> list[int]:
        """Return the rows of each variable."""
        return [rows] if len(self.variables) == 1 else [self.first_rows, rows - self.first_rows]


def entries(config: ModelConfig) -> Iterator[Entry]:
    """Yield all weights, tied matrices under each of their names."""
    width = config.d_model
    yield Entry("source_embedding.tokens.weight", ("encoder/embeddings_0/weight",), width, 1)
    yield Entry("target_embedding.tokens.weight", ("decoder/embeddings/weight",), width, 1)
    yield Entry("output.weight", ("decoder/projection/weight",), width, 1)
    if config.bias:
        yield Entry(OUTPUT_BIAS, ("decoder/projection/bias",), width, None)
    if config.positions == "learned":
        yield Entry("source_embedding.positions.table.weight", ("encoder/position_encodings/encodings",), width, 1)
        yield Entry("target_embedding.positions.table.weight", ("decoder/position_encodings/encodings",), width, 1)
    for ours, theirs in _LAYERS["model"].items():
        if config.embedding_norm if ours.endswith("embedding.norm") else config.norm == "pre":
            yield from _entries_of(config, ours, theirs)
    for side, count in (("encoder", config.num_encoder_layers), ("decoder", config.num_decoder_layers)):
        for number in range(count):
            for ours, theirs in _LAYERS[side].items():
                scopes = [f"{side}/layer_{number}/{scope}" for scope in theirs]
                if config.activation == "swiglu" and ours == "feed_forward.expand":
                    scopes.append(f"{scopes[0]}_noact")
                yield from _entries_of(config, f"{side}_layers.{number}.{ours}", scopes)


def _entries_of(config: ModelConfig, ours: str, scopes: list[str]) -> Iterator[Entry]:
    """Yield the weight and the bias of a linear layer or a norm."""
    norm = ours.endswith("norm")
    first_rows = config.d_ff if ours.endswith("expand") else config.d_model
    for kind in ("weight", "bias") if norm or config.bias else ("weight",):
        variables = tuple(f"{scope}/{_NORM[kind] if norm else kind}" for scope in scopes)
        axis = 0 if not ours.endswith(_READERS) else 1 if kind == "weight" else None
        yield Entry(f"{ours}.{kind}", variables, first_rows, axis)
