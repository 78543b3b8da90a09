"""What one text did inside a language model."""

from __future__ import annotations

from dataclasses import dataclass

from manyheads.inspection.charts import Chart
from manyheads.inspection.documents.base import Inspection
from manyheads.inspection.model_parts import ModelFacts
from manyheads.inspection.parts import Attention, Neighbours, Prediction, Rival, Text, Token
from manyheads.inspection.views import (
    Look,
    attention_chart,
    heads_chart,
    mask_chart,
    neighbours_chart,
    predictions_chart,
    rivals_chart,
    token_chart,
)

__all__ = ["LanguageModelInspection"]


@dataclass(frozen=True, eq=False)
class LanguageModelInspection(Inspection):
    """What one text did inside a language model.

    Attributes:
        run, model: as in `TranslationInspection`.
        text: what the model was asked about.
        inputs: what it had read before each token of `text`; the first stands before the text.
        attention: "decoder", of `inputs` and the last token of the text: row t looks at columns 0 to t.
        predictions: one for each token of `text`.
        next: the likeliest tokens after the text, best first.
        log_probability: of the text.
        prefix: how many tokens of it were given; the model wrote the others.
        neighbours: of each different token.
    """

    kind = "language-modeling"

    run: str
    model: ModelFacts
    text: Text
    inputs: tuple[Token, ...]
    attention: tuple[Attention, ...]
    predictions: tuple[Prediction, ...]
    next: tuple[Rival, ...]
    log_probability: float
    prefix: int
    neighbours: tuple[Neighbours, ...]

    @property
    def title(self) -> str:
        """The text."""
        return self.text.text

    @property
    def views(self) -> tuple[str, ...]:
        """Those whose parts are there."""
        names = ("probabilities", "next", "attention", "heads", "masks", "neighbours", "tokens")
        missing = {"next": not self.next, "neighbours": not self.neighbours}
        return tuple(name for name in names if not missing.get(name))

    def view(self, name: str, look: Look) -> list[Chart]:
        """See `Shown.view`."""
        read = [*(one.piece for one in self.inputs), *self.text.pieces[-1:]]
        rows = {"decoder": read, "decoder/": read}
        match name:
            case "probabilities":
                return [predictions_chart(self.predictions)]
            case "next":
                return [rivals_chart("What may come next", "After the last token of the text.", self.next)]
            case "attention":
                return [attention_chart(self.attention, look, rows)]
            case "heads":
                return [heads_chart(self.attention, look)]
            case "masks":
                return [mask_chart(self.attention, look, rows)]
            case "neighbours":
                return [neighbours_chart("Nearest tokens", self.neighbours)]
        return [token_chart("Tokens", self.text)]
