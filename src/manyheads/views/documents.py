"""The inspections of a translation, a classification and a text of a language model, with their views.

Their JSON (`to_dict`, `from_dict`) is described in docs/inspecting.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from manyheads.views.base import Inspection, ViewFunction
from manyheads.views.beam_tree import BeamTree
from manyheads.views.charts import Axis
from manyheads.views.model import ModelInspection
from manyheads.views.parts import (
    Alignment,
    Alternative,
    Attention,
    ClassProbability,
    Neighbours,
    Occlusion,
    Output,
    Prediction,
    Text,
    Token,
)
from manyheads.views.picture import (
    Axes,
    alignment_chart,
    alternatives_chart,
    attention_chart,
    class_chart,
    heads_chart,
    hypotheses_chart,
    mask_chart,
    neighbours_chart,
    occlusion_charts,
    predictions_chart,
    side_title,
    token_chart,
    tree_chart,
)
from manyheads.views.words import localize

__all__ = [
    "ClassificationInspection",
    "Inspection",
    "LanguageModelInspection",
    "ModelInspection",
    "TranslationInspection",
]


def _attention_views(attentions: tuple[Attention, ...], axes: Axes) -> dict[str, ViewFunction]:
    return {
        "attention": lambda picture: [attention_chart(attentions, picture, axes)],
        "heads": lambda picture: [heads_chart(attentions, picture, axes)],
        "masks": lambda picture: [mask_chart(attentions, picture, axes)],
    }


def _query_axis(name: str, tokens: list[str]) -> Axis:
    return Axis(localize("{side}, query", side=name), tokens)


def _self_axes(kind: str, name: str, tokens: list[str]) -> Axes:
    return {kind: (_query_axis(name, tokens), Axis(localize("{side}, key", side=name), tokens))}


@dataclass(frozen=True, eq=False)
class TranslationInspection(Inspection):
    """Inspection of a translator on one sentence.

    Attributes:
        source: the sentence as the model reads it; with `padding` > 0, that many `<pad>` follow its end mark.
        target: the output; its last token is the end mark, unless it was cut at the length limit.
        inputs: input token of the decoder for each token of `target`: `<s>`, then all but the last. Row t of
            "decoder" and "cross" attention is that position; columns of "decoder" are the inputs, columns of
            "cross" the tokens of the source.
        attention: the kinds "encoder", "decoder" and "cross", in this order.
        predictions: one for each token of `target`.
        score, log_probability: score and log-probability of the output.
        ended: whether the output has an end mark.
        forced: whether the whole output was given.
        prefix: number of given tokens.
        hypotheses: results of the search, best first; none for a given output.
        beam: the search; None for a given output.
        alignment: word alignment; None if a side has no words.
        occlusion: effect of leaving out each source word; None unless requested.
        source_neighbours, target_neighbours: nearest tokens of each different token.
    """

    kind = "translation"

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

    def view_functions(self) -> dict[str, ViewFunction]:
        """Return the available views, with the functions that make their charts."""
        source_title, target_title = side_title("source", self.source), side_title("target", self.target)
        rows = _query_axis(target_title, self.target.pieces)
        so_far = localize("{side} so far, key", side=target_title)
        inputs = Axis(so_far, [token.piece for token in self.inputs])
        axes = _self_axes("encoder", source_title, self.source.pieces)
        axes |= {"decoder": (rows, inputs), "cross": (rows, axes["encoder"][1])}
        attention = _attention_views(self.attention, axes)
        beam, alignment, occlusion = self.beam, self.alignment, self.occlusion
        views: dict[str, ViewFunction] = {"probabilities": lambda _: [predictions_chart(self.predictions)]}
        if alignment is not None:
            views["alignment"] = lambda _: [alignment_chart(alignment, self.source, self.target)]
        views |= {"attention": attention["attention"], "heads": attention["heads"]}
        if beam is not None:
            views["beam"] = lambda _: [tree_chart(beam)]
        if self.hypotheses:
            views["outputs"] = lambda _: [hypotheses_chart(self.hypotheses)]
        if occlusion is not None:
            views["occlusion"] = lambda _: occlusion_charts(occlusion, self.source, "translation", target_title)
        views["masks"] = attention["masks"]
        if self.source_neighbours:
            views["neighbours"] = lambda _: [
                neighbours_chart(localize("Nearest tokens of the source"), self.source_neighbours),
                neighbours_chart(localize("Nearest tokens of the target"), self.target_neighbours),
            ]
        views["tokens"] = lambda _: [
            token_chart(localize("Tokens of the source"), self.source),
            token_chart(localize("Tokens of the target"), self.target),
        ]
        return views


@dataclass(frozen=True, eq=False)
class ClassificationInspection(Inspection):
    """Inspection of a classifier on one text.

    Attributes:
        text: the text as the model reads it, with both marks; the pooling "cls" uses the token `<s>`.
        attention: the kind "encoder".
        label: most probable class.
        classes: probability of each class, in the model's order.
        pooling: "cls", the first token, or "mean", the mean of all tokens.
        occlusion: effect of leaving out each word; `drop` is the decrease of the log-probability of `label`.
        neighbours: nearest tokens of each different token.
    """

    kind = "classification"

    text: Text
    attention: tuple[Attention, ...]
    label: str
    classes: tuple[ClassProbability, ...]
    pooling: str
    occlusion: Occlusion | None
    neighbours: tuple[Neighbours, ...]

    def view_functions(self) -> dict[str, ViewFunction]:
        """Return the available views, with the functions that make their charts."""
        attention = _attention_views(self.attention, _self_axes("encoder", localize("text"), self.text.pieces))
        occlusion = self.occlusion
        views: dict[str, ViewFunction] = {"classes": lambda _: [class_chart(self.classes)]}
        views |= {"attention": attention["attention"], "heads": attention["heads"]}
        if occlusion is not None:
            views["occlusion"] = lambda _: occlusion_charts(occlusion, self.text, "label", localize("class"))
        views["masks"] = attention["masks"]
        if self.neighbours:
            views["neighbours"] = lambda _: [neighbours_chart(localize("Nearest tokens"), self.neighbours)]
        views["tokens"] = lambda _: [token_chart(localize("Tokens"), self.text)]
        return views


@dataclass(frozen=True, eq=False)
class LanguageModelInspection(Inspection):
    """Inspection of a language model on one text.

    Attributes:
        text: the given tokens and the generated tokens.
        inputs: input token of the model for each token of `text`; the first one precedes the text.
        attention: the kind "decoder", over `inputs` and the last token of the text; row t attends to 0 to t.
        predictions: one for each token of `text`.
        next: likeliest tokens after the text, best first.
        log_probability: log-probability of the text.
        prefix: number of given tokens; the model generated the others.
        neighbours: nearest tokens of each different token.
    """

    kind = "language-modeling"

    text: Text
    inputs: tuple[Token, ...]
    attention: tuple[Attention, ...]
    predictions: tuple[Prediction, ...]
    next: tuple[Alternative, ...]
    log_probability: float
    prefix: int
    neighbours: tuple[Neighbours, ...]

    def view_functions(self) -> dict[str, ViewFunction]:
        """Return the available views, with the functions that make their charts."""
        pieces = [*(token.piece for token in self.inputs), *self.text.pieces[-1:]]
        views: dict[str, ViewFunction] = {"probabilities": lambda _: [predictions_chart(self.predictions)]}
        if self.next:
            note = localize("After the last token of the text.")
            views["next"] = lambda _: [alternatives_chart(localize("Most probable next tokens"), note, self.next)]
        views |= _attention_views(self.attention, _self_axes("decoder", localize("text"), pieces))
        if self.neighbours:
            views["neighbours"] = lambda _: [neighbours_chart(localize("Nearest tokens"), self.neighbours)]
        views["tokens"] = lambda _: [token_chart(localize("Tokens"), self.text)]
        return views
