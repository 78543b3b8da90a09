"""What one sentence did inside a translator."""

from __future__ import annotations

from dataclasses import dataclass

from manyheads.inspection.beam_tree import BeamTree
from manyheads.inspection.charts import Chart
from manyheads.inspection.documents.base import Inspection
from manyheads.inspection.model_parts import ModelFacts
from manyheads.inspection.parts import Alignment, Attention, Neighbours, Occlusion, Output, Prediction, Text, Token
from manyheads.inspection.views import (
    Look,
    alignment_chart,
    attention_chart,
    heads_chart,
    hypotheses_chart,
    mask_chart,
    neighbours_chart,
    occlusion_charts,
    predictions_chart,
    token_chart,
    tree_chart,
)

__all__ = ["TranslationInspection"]


@dataclass(frozen=True, eq=False)
class TranslationInspection(Inspection):
    """What one sentence did inside a translator.

    Attributes:
        run: name of the run, or "".
        model: its shape.
        source: the sentence as it was read; with `padding` > 0 that many `<pad>` follow its end mark.
        target: the output, the end mark last when it ended.
        inputs: what the decoder had read when it wrote each token of `target`: `<s>`, then all but the last.
            Row t of "decoder" and "cross" attention is that place; columns of "decoder" are these, of "cross" those
            of the source.
        attention: "encoder", "decoder" and "cross", in this order.
        predictions: one for each token of `target`.
        score, log_probability: of the output.
        ended: whether it came to the end mark.
        forced: whether the whole output was given.
        prefix: how many tokens of it were given.
        hypotheses: what the search found, best first; none for a given output.
        beam: the search; None for a given output.
        alignment: of words; None where a side has none.
        occlusion: source words left out; None where that was not asked for.
        source_neighbours, target_neighbours: of each different token.
    """

    kind = "translation"

    run: str
    model: ModelFacts
    source: Text
    target: Text
    inputs: tuple[Token, ...]
    attention: tuple[Attention, ...]
    predictions: tuple[Prediction, ...]
    score: float
    log_probability: float
    ended: bool
    forced: bool
    prefix: int
    hypotheses: tuple[Output, ...]
    beam: BeamTree | None
    alignment: Alignment | None
    occlusion: Occlusion | None
    source_neighbours: tuple[Neighbours, ...]
    target_neighbours: tuple[Neighbours, ...]

    @property
    def title(self) -> str:
        """Both texts."""
        return f"{self.source.text} -> {self.target.text}"

    @property
    def views(self) -> tuple[str, ...]:
        """Those whose parts are there."""
        parts = {
            "probabilities": True,
            "alignment": self.alignment is not None,
            "attention": True,
            "heads": True,
            "beam": self.beam is not None,
            "outputs": bool(self.hypotheses),
            "occlusion": self.occlusion is not None,
            "masks": True,
            "neighbours": bool(self.source_neighbours),
            "tokens": True,
        }
        return tuple(name for name, there in parts.items() if there)

    def view(self, name: str, look: Look) -> list[Chart]:
        """See `Shown.view`."""
        source, target, inputs = self.source.pieces, self.target.pieces, [one.piece for one in self.inputs]
        rows = {
            "encoder": source, "encoder/": source, "decoder": target, "decoder/": inputs, "cross": target,
            "cross/": source,
        }  # fmt: skip
        match name:
            case "probabilities":
                return [predictions_chart(self.predictions)]
            case "alignment" if self.alignment is not None:
                return [alignment_chart(self.alignment, self.source, self.target)]
            case "attention":
                return [attention_chart(self.attention, look, rows)]
            case "heads":
                return [heads_chart(self.attention, look)]
            case "beam" if self.beam is not None:
                return [tree_chart(self.beam)]
            case "outputs":
                return [hypotheses_chart(self.hypotheses)]
            case "occlusion" if self.occlusion is not None:
                return occlusion_charts(self.occlusion, self.source.words, "translation")
            case "masks":
                return [mask_chart(self.attention, look, rows)]
            case "neighbours":
                return [
                    neighbours_chart("Nearest tokens of the source", self.source_neighbours),
                    neighbours_chart("Nearest tokens of the target", self.target_neighbours),
                ]
        return [token_chart("Tokens of the source", self.source), token_chart("Tokens of the target", self.target)]
