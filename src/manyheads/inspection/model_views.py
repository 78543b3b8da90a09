"""Charts of a model as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from manyheads.inspection.charts import Bars, Chart, Line, Lines, Table, heat_map_chart
from manyheads.inspection.model_parts import Block, LearningRate, Positions, Symbol, TensorRow

__all__ = ["block_chart", "learning_rate_chart", "position_charts", "symbol_chart", "tensor_chart"]

POSITION_NOTES = {
    "sinusoidal": "Section 3.5: added to the token at each position.",
    "learned": "A trained vector for each position, added to the token.",
    "rotary": "Su et al. (2021): cosine and sine of the angle that each pair of a query or key is turned by.",
}
CURVES = (0, 1, 2, 3)  # which quarter of the width a single dimension is taken from


def position_charts(found: Positions) -> list[Chart]:
    """The signal, some of its dimensions as curves, and how alike positions are."""
    count, width = found.signal.shape
    places = [str(place) for place in range(count)]
    signal = heat_map_chart(
        f"Positions ({found.kind})",
        POSITION_NOTES[found.kind],
        places,
        [],
        found.signal,
        row_title="position",
        column_title="dimension",
        low=float(found.signal.min()),
        high=float(found.signal.max()),
    )
    chosen = sorted({min(width - 1, width * quarter // 4) for quarter in CURVES})
    x = tuple(float(place) for place in range(count))
    columns = tuple(tuple(map(float, found.signal[:, place])) for place in chosen)
    title, note = "Single dimensions of the positions", "The further back, the slower they change."
    table = Table(
        title,
        note,
        ("position", *(f"dimension {place}" for place in chosen)),
        tuple((place, *(column[place] for column in columns)) for place in range(count)),
    )
    names = [f"dimension {place}" for place in chosen]
    lines = tuple(Line(name, x, column) for name, column in zip(names, columns, strict=True))
    products = heat_map_chart(
        "How alike two positions are",
        "Dot products of their signals." if found.kind != "rotary" else "Mean cosine between the two turns.",
        places,
        places,
        found.products,
        row_title="position",
        column_title="position",
        low=float(found.products.min()),
        high=float(found.products.max()),
    )
    return [signal, Lines(title, note, lines, "position", "value", table), products]


def block_chart(found: Sequence[Block]) -> Bars:
    """How many parameters each part has."""
    total = max(1, sum(one.parameters for one in found))
    title, note = "Parameters of each block", f"{total:,} in all; a matrix that blocks share counts once."
    data = Table(title, note, ("block", "parameters"), tuple((one.name, one.parameters) for one in found))
    return Bars(
        title,
        note,
        tuple(one.name for one in found),
        tuple(float(one.parameters) for one in found),
        0.0,
        float(max(one.parameters for one in found)),
        tuple(f"{one.parameters / total:.1%}" for one in found),
        (False,) * len(found),
        "parameters",
        data,
    )


def tensor_chart(found: Sequence[TensorRow]) -> Table:
    """Every tensor."""
    return Table(
        "Tensors",
        "As they stand in model.safetensors.",
        ("name", "shape", "parameters", "deviation", "same as"),
        tuple(
            (one.name, " x ".join(map(str, one.shape)), one.parameters, round(one.deviation, 6), one.tied_to)
            for one in found
        ),
    )


def learning_rate_chart(found: LearningRate) -> Lines:
    """The planned learning rate."""
    title = f"Learning rate ({found.schedule})"
    note = f"{found.total_steps:,} updates, {found.warmup_steps:,} of them warm-up."
    data = Table(title, note, ("step", "rate"), tuple(zip(found.steps, found.rates, strict=True)))
    line = Line(found.schedule, tuple(map(float, found.steps)), found.rates)
    return Lines(title, note, (line,), "step", "learning rate", data)


def symbol_chart(found: Sequence[Symbol]) -> Table:
    """The letters of the paper."""
    return Table(
        "Symbols of the paper",
        "Sections of Vaswani et al. (2017); lines below src/manyheads.",
        ("symbol", "what", "equation", "section", "source", "here"),
        tuple((one.symbol, one.meaning, one.equation, one.section, one.source, one.shape) for one in found),
    )
