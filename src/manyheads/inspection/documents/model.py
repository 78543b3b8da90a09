"""A model as a whole."""

from __future__ import annotations

from dataclasses import dataclass

from manyheads.inspection.charts import Chart
from manyheads.inspection.documents.base import Inspection
from manyheads.inspection.model_parts import Block, LearningRate, ModelFacts, Positions, Symbol, TensorRow
from manyheads.inspection.model_views import (
    block_chart,
    learning_rate_chart,
    position_charts,
    symbol_chart,
    tensor_chart,
)
from manyheads.inspection.views import Look

__all__ = ["ModelInspection"]


@dataclass(frozen=True, eq=False)
class ModelInspection(Inspection):
    """A model as a whole.

    Attributes:
        run: name of the run, or "".
        model: its shape.
        parameters: how many, each tied matrix counted once.
        blocks: parts of the model in order.
        tensors: all of them, tied ones too.
        positions: how positions are told apart.
        learning_rate: as the schedule plans it.
        symbols: what the letters of the paper are here, with their equation and source line.
    """

    kind = "model"

    run: str
    model: ModelFacts
    parameters: int
    blocks: tuple[Block, ...]
    tensors: tuple[TensorRow, ...]
    positions: Positions
    learning_rate: LearningRate
    symbols: tuple[Symbol, ...]

    @property
    def title(self) -> str:
        """The run and its task."""
        return f"{self.run or 'model'}: {self.model.task}, {self.parameters:,} parameters"

    @property
    def views(self) -> tuple[str, ...]:
        """All that there are."""
        return ("blocks", "tensors", "positions", "learning-rate", "symbols")

    def view(self, name: str, look: Look) -> list[Chart]:
        """See `Shown.view`."""
        match name:
            case "blocks":
                return [block_chart(self.blocks)]
            case "tensors":
                return [tensor_chart(self.tensors)]
            case "positions":
                return position_charts(self.positions)
            case "learning-rate":
                return [learning_rate_chart(self.learning_rate)]
        return [symbol_chart(self.symbols)]
