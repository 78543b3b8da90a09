"""The inspection of a complete model: its blocks, tensors, positions, schedule and symbols, and their charts.

Shapes: P positions, D model width (the head width for rotary positions).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyheads.views.base import Inspection, ViewFunction
from manyheads.views.charts import Axis, Bar, Bars, Chart, HeatMap, Line, Lines, Table, round_cells
from manyheads.views.codec import Array
from manyheads.views.words import localize, names_of

_POSITION_NOTES = {
    "sinusoidal": "Section 3.5: added to the token at each position.",
    "learned": "A trained vector for each position, added to the token.",
    "rotary": "Su et al. (2021): cosine and sine of the angle by which each pair of a query or key is rotated.",
}
_QUARTERS = (0, 1, 2, 3)  # quarters of the width whose first dimension is drawn as a curve


@dataclass(frozen=True)
class Block:
    """A block of the model, such as "encoder_layers.0"; a matrix of several blocks counts in the first one."""

    name: str
    parameters: int


@dataclass(frozen=True)
class TensorRow:
    """A tensor of the model.

    Attributes:
        name: name in model.safetensors.
        shape: sizes of its axes.
        parameters: product of the shape.
        block: name of its block.
        tied_to: name of the tensor that it shares its memory with, or None.
        deviation: standard deviation of its values.
    """

    name: str
    shape: tuple[int, ...]
    parameters: int
    block: str
    tied_to: str | None
    deviation: float


@dataclass(frozen=True, eq=False)
class Positions:
    """The position encoding of a model.

    Attributes:
        kind: "sinusoidal", "learned" or "rotary".
        signal: (P, D) vector that is added to the token at each position (section 3.5); for rotary positions,
            cosine and sine in turn of the angle by which each pair of a head is rotated.
        products: (P, P) similarity of two positions: dot products of their signals; for rotary positions the mean
            cosine between a vector rotated to one position and to the other.
    """

    kind: str
    signal: Array
    products: Array


@dataclass(frozen=True)
class LearningRate:
    """The planned learning rate.

    Attributes:
        schedule: name of the schedule.
        warmup_steps, total_steps: numbers of updates.
        steps: some updates from 1 to the last.
        rates: learning rate at each of these updates.
    """

    schedule: str
    warmup_steps: int
    total_steps: int
    steps: tuple[int, ...]
    rates: tuple[float, ...]


@dataclass(frozen=True)
class Symbol:
    """A symbol of the paper and its implementation in this package.

    Attributes:
        symbol: the symbol, or several.
        meaning: its meaning in words.
        equation: its definition as plain text.
        section: section of Vaswani et al. (2017), or of the paper named.
        source: file and line, as "model/attention.py:31", below src/manyheads.
        shape: its size in this model, or "".
    """

    symbol: str
    meaning: str
    equation: str
    section: str
    source: str
    shape: str


@dataclass(frozen=True, eq=False)
class ModelInspection(Inspection):
    """Inspection of a complete model.

    Attributes:
        parameters: number of parameters, each tied matrix counted once.
        blocks: all blocks, in the order of the model.
        tensors: all tensors, tied ones included.
        positions: the position encoding.
        learning_rate: the planned schedule.
        symbols: symbols of the paper with their equation and source line.
    """

    kind = "model"

    parameters: int
    blocks: tuple[Block, ...]
    tensors: tuple[TensorRow, ...]
    positions: Positions
    learning_rate: LearningRate
    symbols: tuple[Symbol, ...]

    def view_functions(self) -> dict[str, ViewFunction]:
        """Return the views of the weights, with the functions that make their charts."""
        return {
            "blocks": lambda _: [_block_chart(self.blocks)],
            "tensors": lambda _: [_tensor_chart(self.tensors)],
            "positions": lambda _: _position_charts(self.positions),
            "learning-rate": lambda _: [_learning_rate_chart(self.learning_rate)],
            "symbols": lambda _: [_symbol_chart(self.symbols)],
        }


def _position_charts(positions: Positions) -> list[Chart]:
    """Chart the signal, some of its dimensions as curves, and the similarity of positions."""
    kind, signal, products = positions.kind, positions.signal, positions.products
    count, width = signal.shape
    signal_chart = HeatMap(
        localize("Positions ({kind})", kind=kind),
        localize(_POSITION_NOTES[kind]),
        Axis(localize("position")),
        Axis(localize("dimension")),
        signal,
        legend=localize("value of the position encoding"),
        high=_largest(signal),
        signed=True,
    )
    product_chart = HeatMap(
        localize("Similarity of two positions"),
        localize(
            "Dot products of their signals."
            if kind != "rotary"
            else "Mean cosine between a vector rotated to the one position and to the other."
        ),
        Axis(localize("position")),
        Axis(localize("position")),
        products,
        legend=localize("cosine" if kind == "rotary" else "dot product"),
        high=_largest(products),
        signed=True,
    )
    x = tuple(map(float, range(count)))
    curves = [
        Line(localize("dimension {number}", number=dimension), x, tuple(map(float, signal[:, dimension])))
        for dimension in sorted({min(width - 1, width * quarter // 4) for quarter in _QUARTERS})
    ]
    table = Table(
        localize("Single dimensions of the positions"),
        localize("Later dimensions change more slowly."),
        (localize("position"), *(curve.name for curve in curves)),
        tuple((position, *(curve.y[position] for curve in curves)) for position in range(count)),
    )
    return [signal_chart, Lines(table, tuple(curves), *names_of("position", "value")), product_chart]


def _largest(values: Array) -> float:
    """Return the largest absolute value, at least 1e-6."""
    return float(max(1e-6, np.abs(values).max(initial=0.0)))


def _block_chart(blocks: Sequence[Block]) -> Bars:
    total = max(1, sum(block.parameters for block in blocks))
    note = localize("{total:,} in all; a matrix that blocks share counts once.", total=total)
    rows = tuple((block.name, block.parameters) for block in blocks)
    data = Table(localize("Parameters of each block"), note, names_of("block", "parameters"), rows)
    bars = [Bar(block.name, float(block.parameters), f"{block.parameters / total:.1%}") for block in blocks]
    return Bars(data, tuple(bars), high=max(bar.value for bar in bars), value_title=localize("parameters"))


def _tensor_chart(tensors: Sequence[TensorRow]) -> Table:
    return Table(
        localize("Tensors"),
        localize("All tensors of model.safetensors."),
        names_of("name", "shape", "parameters", "deviation", "same as"),
        tuple(
            round_cells(row.name, " x ".join(map(str, row.shape)), row.parameters, row.deviation, row.tied_to)
            for row in tensors
        ),
    )


def _learning_rate_chart(planned: LearningRate) -> Lines:
    data = Table(
        localize("Learning rate ({schedule})", schedule=planned.schedule),
        localize(
            "{total:,} updates, {warmup:,} of them warm-up.", total=planned.total_steps, warmup=planned.warmup_steps
        ),
        names_of("step", "rate"),
        tuple(zip(planned.steps, planned.rates, strict=True)),
    )
    name = localize("{schedule} schedule", schedule=planned.schedule)
    line = Line(name, tuple(map(float, planned.steps)), planned.rates)
    return Lines(data, (line,), *names_of("training step", "learning rate"))


def _symbol_chart(symbols: Sequence[Symbol]) -> Table:
    return Table(
        localize("Symbols of the paper"),
        localize("Sections of Vaswani et al. (2017); lines below src/manyheads."),
        names_of("symbol", "meaning", "equation", "section", "source line", "shape"),
        tuple(
            (symbol.symbol, localize(symbol.meaning), symbol.equation, symbol.section, symbol.source, symbol.shape)
            for symbol in symbols
        ),
    )
