"""What one text did inside a classifier."""

from __future__ import annotations

from dataclasses import dataclass

from manyheads.inspection.charts import Chart
from manyheads.inspection.documents.base import Inspection
from manyheads.inspection.model_parts import ModelFacts
from manyheads.inspection.parts import Attention, ClassProbability, Neighbours, Occlusion, Text
from manyheads.inspection.views import (
    Look,
    attention_chart,
    class_chart,
    heads_chart,
    mask_chart,
    neighbours_chart,
    occlusion_charts,
    token_chart,
)

__all__ = ["ClassificationInspection"]


@dataclass(frozen=True, eq=False)
class ClassificationInspection(Inspection):
    """What one text did inside a classifier.

    Attributes:
        run, model: as in `TranslationInspection`.
        text: as it was read, with both marks; `<s>` is the token that the pooling "cls" looks at.
        attention: "encoder".
        label: the most probable class.
        classes: the probability of each, in the model's order.
        pooling: what the classifier sees of the text: its first token ("cls"), or the mean of all.
        occlusion: words left out; `drop` is that of the log-probability of `label`.
        neighbours: of each different token.
    """

    kind = "classification"

    run: str
    model: ModelFacts
    text: Text
    attention: tuple[Attention, ...]
    label: str
    classes: tuple[ClassProbability, ...]
    pooling: str
    occlusion: Occlusion | None
    neighbours: tuple[Neighbours, ...]

    @property
    def title(self) -> str:
        """Text and label."""
        return f"{self.text.text} -> {self.label}"

    @property
    def views(self) -> tuple[str, ...]:
        """Those whose parts are there."""
        names = ("classes", "attention", "heads", "occlusion", "masks", "neighbours", "tokens")
        missing = {"occlusion": self.occlusion is None, "neighbours": not self.neighbours}
        return tuple(name for name in names if not missing.get(name))

    def view(self, name: str, look: Look) -> list[Chart]:
        """See `Shown.view`."""
        rows = {"encoder": self.text.pieces, "encoder/": self.text.pieces}
        match name:
            case "classes":
                return [class_chart(self.classes)]
            case "attention":
                return [attention_chart(self.attention, look, rows)]
            case "heads":
                return [heads_chart(self.attention, look)]
            case "occlusion" if self.occlusion is not None:
                return occlusion_charts(self.occlusion, self.text.words, "label")
            case "masks":
                return [mask_chart(self.attention, look, rows)]
            case "neighbours":
                return [neighbours_chart("Nearest tokens", self.neighbours)]
        return [token_chart("Tokens", self.text)]
