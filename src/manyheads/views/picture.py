"""Charts of the parts of an inspection of one text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bitext.languages import language_name
from manyheads.errors import UsageError
from manyheads.views.beam_tree import STOPS, BeamTree, reason
from manyheads.views.charts import Axis, Bar, Bars, Chart, HeatMap, Links, Table, Thumbnails, Tree, round_cells
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
)
from manyheads.views.words import localize, names_of

_DOUBTFUL = 0.5  # tokens of lower probability are marked
KIND_TITLES = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention",
}
_MASK_NOTES = {
    "decoder": "Causal mask: each position attends to itself and to earlier positions (section 3.2.3).",
    "cross": "Padding mask: each position attends to all source tokens except padding.",
    "encoder": "Padding mask: each token attends to all tokens except padding.",
}


_ATTENTION_LEGEND = "attention weight (share of its row)"


Axes = dict[str, tuple[Axis, Axis]]  # kind of attention: its queries (rows) and keys (columns)


def side_title(side: str, text: Text) -> str:
    """Return the name of a side with its language if it is known: source (German)."""
    language, name = localize(language_name(text.language)), localize(side)
    return localize("{side} ({language})", side=name, language=language) if language else name


@dataclass(frozen=True)
class Picture:
    """A view of an inspection or of curves, and how to draw it.

    Attributes:
        view: name of the view; None is the first.
        kind: attention to show: "encoder", "decoder" or "cross"; None is the last kind that the model has.
        layer: number of the layer, from 0, the lowest; -1 is the highest.
        head: number of the head, from 0; None is the mean of all heads.
        width: width of an SVG or PNG in millimetres for print; None is as wide as the view needs.
        language: language of titles, axes and legends, one of `words._LANGUAGES`.
    """

    view: str | None = None
    kind: str | None = None
    layer: int = -1
    head: int | None = None
    width: float | None = None
    language: str = "en"

    def select(self, attentions: Sequence[Attention]) -> tuple[Attention, int]:
        """Return the selected attention and the number of its layer.

        Raises:
            UsageError: there is no such kind, layer or head.
        """
        kinds = [attention.kind for attention in attentions]
        if self.kind is not None and self.kind not in kinds:
            raise UsageError(f'there is no attention of kind "{self.kind}" here. Use {" or ".join(kinds)}.')
        attention = attentions[-1] if self.kind is None else attentions[kinds.index(self.kind)]
        layers, heads = attention.weights.shape[:2]
        if not -layers <= self.layer < layers:
            raise UsageError(f"there is no layer {self.layer}: layers are 0 to {layers - 1}, or -1 for the last.")
        if self.head is not None and not 0 <= self.head < heads:
            raise UsageError(f'there is no head {self.head}: heads are 0 to {heads - 1}, or "mean".')
        return attention, self.layer % layers


def attention_chart(attentions: Sequence[Attention], picture: Picture, axes: Axes) -> HeatMap:
    """Chart the weights of a head."""
    attention, layer = picture.select(attentions)
    head = localize("mean of the heads")
    if picture.head is not None:
        head = localize("head {head}", head=picture.head)
    kind = localize(KIND_TITLES[attention.kind])
    rows, columns = axes[attention.kind]
    return HeatMap(
        localize("{kind}, layer {layer}, {head}", kind=kind, layer=layer, head=head).capitalize(),
        localize("Each row adds up to 1: the attention of the token at the left to each token above."),
        rows,
        columns,
        attention.of(layer, picture.head),
        legend=localize(_ATTENTION_LEGEND),
        hidden=attention.mask == 0,
    )


def heads_chart(attentions: Sequence[Attention], picture: Picture, axes: Axes) -> Thumbnails:
    """Chart all heads of a kind of attention as small heat maps."""
    attention, _ = picture.select(attentions)
    data = Table(
        localize("All heads of the {kind}", kind=localize(KIND_TITLES[attention.kind])),
        localize(
            "The number is the mean entropy of the rows in nats: 0 is attention to one token alone, more is wider."
        ),
        (localize("layer"), *(localize("head {head}", head=head) for head in range(attention.weights.shape[1]))),
        tuple((layer, *map(float, row)) for layer, row in enumerate(attention.entropy)),
    )
    rows, columns = axes[attention.kind]
    return Thumbnails(
        data,
        attention.weights,
        attention.entropy,
        rows,
        columns,
        legend=localize(_ATTENTION_LEGEND),
    )


def mask_chart(attentions: Sequence[Attention], picture: Picture, axes: Axes) -> HeatMap:
    """Chart the mask of a kind of attention."""
    attention, _ = picture.select(attentions)
    rows, columns = axes[attention.kind]
    return HeatMap(
        localize("Mask of the {kind}", kind=localize(KIND_TITLES[attention.kind])),
        localize("1 = may attend. {note}", note=localize(_MASK_NOTES[attention.kind])),
        rows,
        columns,
        attention.mask,
        legend=localize("1 = may attend"),
        hidden=attention.mask == 0,
    )


def predictions_chart(predictions: Sequence[Prediction]) -> Bars:
    """Chart the probability of each token, with the likeliest others."""
    rows, bars = [], []
    for token in predictions:
        others = ", ".join(
            f"{alternative.piece} {alternative.probability:.3f}" for alternative in token.alternatives
        )
        forced = localize("yes" if token.forced else "no")
        numbers = (token.probability, token.log_probability, token.rank, token.entropy)
        rows.append(round_cells(token.piece, *numbers, forced, others))
        detail = localize("rank {rank}  entropy {entropy:.2f}", rank=token.rank, entropy=token.entropy)
        detail += f"  {localize('given')}" * token.forced
        bars.append(Bar(token.piece, token.probability, f"{detail}  {others}", token.probability < _DOUBTFUL))
    columns = ("token", "probability", "log-probability", "rank", "entropy", "given", "others")
    note = localize("The probability after all tokens before it, and the likeliest alternatives.")
    data = Table(localize("Probability of each token"), note, names_of(*columns), tuple(rows))
    return Bars(data, tuple(bars), doubt=localize("probability below {limit}", limit=_DOUBTFUL))


def alternatives_chart(title: str, note: str, alternatives: Sequence[Alternative]) -> Bars:
    """Chart the likeliest tokens of one position."""
    rows = [
        round_cells(alternative.piece, alternative.probability, alternative.log_probability)
        for alternative in alternatives
    ]
    data = Table(title, note, names_of("token", "probability", "log-probability"), tuple(rows))
    return Bars(data, tuple(Bar(alternative.piece, alternative.probability) for alternative in alternatives))


def class_chart(classes: Sequence[ClassProbability]) -> Bars:
    """Chart the probability of each class."""
    rows = tuple(round_cells(entry.label, entry.probability) for entry in classes)
    title, note = localize("Probability of each class"), localize("The probabilities add up to 1.")
    data = Table(title, note, names_of("class", "probability"), rows)
    return Bars(data, tuple(Bar(entry.label, entry.probability) for entry in classes))


def tree_chart(tree: BeamTree) -> Tree:
    """Chart the beam search."""
    rows = []
    for node in tree.nodes:
        token = (node.number, node.parent, node.step, node.piece)
        numbers = (node.log_probability, node.total, node.score, node.rank)
        rows.append(round_cells(*token, *numbers, localize(node.state), reason(node, tree)))
    data = Table(
        localize("Beam search, beam size {beam}", beam=tree.beam_size),
        localize("Stopped after {steps} steps: {stop}.", steps=tree.steps, stop=localize(STOPS[tree.stop])),
        names_of("node", "parent", "step", "token", "log-probability", "total", "score", "rank", "state", "reason"),
        tuple(rows),
    )
    return Tree(data, tree)


def hypotheses_chart(outputs: Sequence[Output]) -> Table:
    """Chart the outputs of the search, best first."""
    return Table(
        localize("Outputs of the search"),
        localize("score = log-probability / length ** length_penalty"),
        names_of("rank", "text", "score", "log-probability", "tokens"),
        tuple(
            round_cells(rank, output.text, output.score, output.log_probability, len(output.ids))
            for rank, output in enumerate(outputs, start=1)
        ),
    )


def alignment_chart(alignment: Alignment, source: Text, target: Text) -> Links:
    """Chart the word alignment."""
    weights = [float(alignment.weights[below, above]) for above, below in alignment.links]
    data = Table(
        localize("Word alignment"),
        localize(
            "From cross-attention, layer {layer}, mean of the heads. Pharaoh: {links}",
            layer=alignment.layer,
            links=alignment.pharaoh,
        ),
        names_of("source word", "target word", "source", "target", "weight"),
        tuple(
            round_cells(above, below, source.words[above], target.words[below], weight)
            for (above, below), weight in zip(alignment.links, weights, strict=True)
        ),
    )
    links = tuple((*pair, weight) for pair, weight in zip(alignment.links, weights, strict=True))
    titles = (side_title("source", source), side_title("target", target))
    return Links(data, source.words, target.words, links, *titles)


def occlusion_charts(occlusion: Occlusion, text: Text, output: str, column_title: str) -> list[Chart]:
    """Chart the drop of each word of a text, for the whole output and for each part of it.

    `output` names the output ("translation"), `column_title` its parts.
    """
    words = text.words
    part = localize("class" if output == "label" else f"token of the {output}")
    data = Table(
        localize("Each word left out"),
        localize(
            f"How much less likely the {output} becomes without the word, in nats, and the {output} without it."
        ),
        names_of("word", "drop", f"{output} without it"),
        tuple(round_cells(words[occluded.word], occluded.drop, occluded.output) for occluded in occlusion.words),
    )
    values = [occluded.drop for occluded in occlusion.words]
    bars = Bars(
        data,
        tuple(Bar(words[occluded.word], occluded.drop, occluded.output) for occluded in occlusion.words),
        low=min(0.0, *values) if values else 0.0,
        high=max(1e-6, *values) if values else 1.0,
        value_title=localize("drop of the log-probability (nats); below 0: more likely without the word"),
    )
    row_title = localize("word left out")
    if output != "label":
        row_title += f", {side_title('source', text)}"
    drops = np.array([occluded.drops for occluded in occlusion.words], np.float32)
    drops = drops.reshape(len(values), len(occlusion.columns))
    heat_map = HeatMap(
        localize("Each word left out, for each {part}", part=part),
        localize("Above 0, it becomes less likely without the word; below 0, more likely."),
        Axis(row_title, [bar.label for bar in bars.bars]),
        Axis(column_title, occlusion.columns),
        drops,
        legend=localize("drop of the log-probability (nats)"),
        high=float(max(1e-6, np.abs(drops).max(initial=0.0))),
        signed=True,
    )
    return [bars, heat_map]


def neighbours_chart(title: str, neighbours: Sequence[Neighbours]) -> Table:
    """Chart the nearest tokens of each token."""
    most = max((len(token.near) for token in neighbours), default=0)
    return Table(
        title,
        localize("Nearest tokens in the embedding, with the cosine."),
        (localize("token"), *(str(rank + 1) for rank in range(most))),
        tuple((token.piece, *(f"{near.piece} {near.cosine:.2f}" for near in token.near)) for token in neighbours),
    )


def token_chart(title: str, text: Text) -> Table:
    """Chart the tokens of a text."""
    rows = [
        (position, token.piece, token.id, None if token.word is None else text.words[token.word])
        for position, token in enumerate(text.tokens)
    ]
    return Table(title, text.text, names_of("position", "token", "id", "word"), tuple(rows))
