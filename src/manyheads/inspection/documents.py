"""The objects that `manyheads inspect` makes: one for each text, and one for a model as a whole.

Their JSON (`to_dict`, `from_dict`) is described in docs/inspecting.md. `VERSION` changes when a field changes its
meaning or goes; new fields may come without.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from manyheads.errors import UsageError
from manyheads.inspection.beam_tree import BeamTree
from manyheads.inspection.charts import Chart
from manyheads.inspection.codec import listed, packed, plain, rebuilt
from manyheads.inspection.model_parts import Block, LearningRate, ModelFacts, Positions, Symbol, TensorRow
from manyheads.inspection.model_views import (
    block_chart,
    learning_rate_chart,
    position_charts,
    symbol_chart,
    tensor_chart,
)
from manyheads.inspection.parts import (
    Alignment,
    Attention,
    ClassProbability,
    Neighbours,
    Occlusion,
    Output,
    Prediction,
    Rival,
    Text,
    Token,
)
from manyheads.inspection.shown import Shown
from manyheads.inspection.views import (
    Look,
    alignment_chart,
    attention_chart,
    class_chart,
    heads_chart,
    hypotheses_chart,
    mask_chart,
    neighbours_chart,
    occlusion_charts,
    predictions_chart,
    rivals_chart,
    token_chart,
    tree_chart,
)

__all__ = [
    "FORMAT",
    "VERSION",
    "ClassificationInspection",
    "Inspection",
    "LanguageModelInspection",
    "ModelInspection",
    "TranslationInspection",
]

FORMAT = "manyheads-inspection"
VERSION = 1


class Inspection(Shown):
    """What all of them have in common.

    Attributes:
        kind: which of them it is, as its JSON says.
    """

    kind: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; arrays are lists of numbers of 6 decimals."""
        return {"format": FORMAT, "version": VERSION, "kind": self.kind, **plain(self, listed)}

    def packed_dict(self) -> dict[str, Any]:
        """The same with arrays as 16-bit numbers in base64, for a page."""
        return {"format": FORMAT, "version": VERSION, "kind": self.kind, **plain(self, packed)}

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """What `to_dict` or `packed_dict` gave; of `Inspection` itself whatever kind it is.

        Raises:
            UsageError: it is none, or of another kind or version.
        """
        if not isinstance(document, Mapping) or document.get("format") != FORMAT:
            raise UsageError(f'this is no inspection: its "format" is not "{FORMAT}".')
        if document.get("version") != VERSION:
            raise UsageError(
                f"this inspection is of version {document.get('version')}; this program reads version {VERSION}."
            )
        kinds = {kind.kind: kind for kind in KINDS if issubclass(kind, cls)}
        if document.get("kind") not in kinds:
            raise UsageError(f'kind = "{document.get("kind")}" is none of {", ".join(kinds)}.')
        found: Self = rebuilt(kinds[document["kind"]], dict(document), "the inspection")
        return found


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


KINDS: tuple[type[Inspection], ...] = (
    TranslationInspection,
    ClassificationInspection,
    LanguageModelInspection,
    ModelInspection,
)
