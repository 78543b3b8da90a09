"""Charts of what one text did inside a model, from the parts of an inspection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manyheads.errors import UsageError
from manyheads.inspection.beam_tree import STOPS, BeamTree, reason
from manyheads.inspection.charts import Bars, Chart, HeatMap, Links, Table, Thumbnails, Tree, heat_map_chart
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
)

__all__ = [
    "KIND_TITLES",
    "Look",
    "alignment_chart",
    "attention_chart",
    "class_chart",
    "heads_chart",
    "hypotheses_chart",
    "mask_chart",
    "neighbours_chart",
    "occlusion_charts",
    "predictions_chart",
    "rivals_chart",
    "token_chart",
    "tree_chart",
]

DOUBTFUL = 0.5  # probability below which a token is marked

KIND_TITLES = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention",
}


@dataclass(frozen=True)
class Look:
    """Which attention is shown.

    Attributes:
        kind: "encoder", "decoder" or "cross"; None is the last that the model has.
        layer: from 0, the lowest; -1 is the highest.
        head: from 0; None is the mean of all.
    """

    kind: str | None = None
    layer: int = -1
    head: int | None = None

    def of(self, found: Sequence[Attention]) -> tuple[Attention, int]:
        """The attention that is meant, and the number of its layer.

        Raises:
            UsageError: there is no such kind, layer or head.
        """
        kinds = [one.kind for one in found]
        if self.kind is not None and self.kind not in kinds:
            raise UsageError(f'there is no attention of kind "{self.kind}" here. Use {" or ".join(kinds)}.')
        one = found[-1] if self.kind is None else found[kinds.index(self.kind)]
        layers, heads = one.weights.shape[:2]
        if not -layers <= self.layer < layers:
            raise UsageError(f"there is no layer {self.layer}: layers are 0 to {layers - 1}, or -1 for the last.")
        if self.head is not None and not 0 <= self.head < heads:
            raise UsageError(f'there is no head {self.head}: heads are 0 to {heads - 1}, or "mean".')
        return one, self.layer % layers


def attention_chart(found: Sequence[Attention], look: Look, rows: dict[str, list[str]]) -> HeatMap:
    """Where a head looked; `rows` names the places of each kind, and with a "/" behind it what they look at."""
    one, layer = look.of(found)
    head = "mean of the heads" if look.head is None else f"head {look.head}"
    return heat_map_chart(
        f"{KIND_TITLES[one.kind]}, layer {layer}, {head}".capitalize(),
        "Each row adds up to 1: how much the token at the left looked at each token below.",
        rows[one.kind],
        rows[f"{one.kind}/"],
        one.of(layer, look.head),
        row_title="looks",
        column_title="is looked at",
        hidden=one.mask == 0,
    )


def heads_chart(found: Sequence[Attention], look: Look) -> Thumbnails:
    """All heads of a kind, small."""
    one, _ = look.of(found)
    heads = range(one.weights.shape[1])
    title = f"All heads of the {KIND_TITLES[one.kind]}"
    note = "The number is the mean entropy of the rows in nats: 0 looks at one token, the more the wider."
    rows = tuple((layer, *map(float, line)) for layer, line in enumerate(one.entropy))
    data = Table(title, note, ("layer", *(f"head {head}" for head in heads)), rows)
    return Thumbnails(title, note, one.weights, one.entropy, data)


def mask_chart(found: Sequence[Attention], look: Look, rows: dict[str, list[str]]) -> HeatMap:
    """Who may look at whom."""
    one, _ = look.of(found)
    note = {
        "decoder": "Causal mask: a place sees itself and what stands before it (section 3.2.3).",
        "cross": "Padding mask: every place sees all of the source but its padding.",
        "encoder": "Padding mask: every token sees all others but padding.",
    }[one.kind]
    return heat_map_chart(
        f"Mask of the {KIND_TITLES[one.kind]}",
        f"1 = may look. {note}",
        rows[one.kind],
        rows[f"{one.kind}/"],
        one.mask,
        row_title="looks",
        column_title="may be looked at",
        hidden=one.mask == 0,
    )


def predictions_chart(found: Sequence[Prediction]) -> Bars:
    """The probability of each token, and what could have stood in its place."""
    rivals = [", ".join(f"{one.piece} {one.probability:.3f}" for one in place.rivals) for place in found]
    title, note = "Probability of each token", "Given all tokens before it; then the likeliest others."
    columns = ("token", "probability", "log-probability", "rank", "entropy", "given", "others")
    data = Table(
        title,
        note,
        columns,
        tuple(
            (
                one.piece,
                round(one.probability, 6),
                round(one.log_probability, 6),
                one.rank,
                round(one.entropy, 6),
                "yes" if one.forced else "no",
                others,
            )
            for one, others in zip(found, rivals, strict=True)
        ),
    )
    return Bars(
        title,
        note,
        tuple(one.piece for one in found),
        tuple(one.probability for one in found),
        0.0,
        1.0,
        tuple(
            f"rank {one.rank}  entropy {one.entropy:.2f}{'  given' if one.forced else ''}  {others}"
            for one, others in zip(found, rivals, strict=True)
        ),
        tuple(one.probability < DOUBTFUL for one in found),
        "probability",
        data,
    )


def rivals_chart(title: str, note: str, found: Sequence[Rival]) -> Bars:
    """The likeliest tokens of one place."""
    data = Table(
        title,
        note,
        ("token", "probability", "log-probability"),
        tuple((one.piece, round(one.probability, 6), round(one.log_probability, 6)) for one in found),
    )
    values = tuple(one.probability for one in found)
    labels = tuple(one.piece for one in found)
    return Bars(
        title, note, labels, values, 0.0, 1.0, ("",) * len(found), (False,) * len(found), "probability", data
    )


def class_chart(found: Sequence[ClassProbability]) -> Bars:
    """The probability of each class."""
    title, note = "Probability of each class", "They add up to 1."
    data = Table(
        title, note, ("class", "probability"), tuple((one.label, round(one.probability, 6)) for one in found)
    )
    values = tuple(one.probability for one in found)
    labels = tuple(one.label for one in found)
    return Bars(
        title, note, labels, values, 0.0, 1.0, ("",) * len(found), (False,) * len(found), "probability", data
    )


def tree_chart(tree: BeamTree) -> Tree:
    """The beam search."""
    title = f"Beam search, beam size {tree.beam_size}"
    note = f"Stopped after {tree.steps} steps: {STOPS[tree.stop]}."
    columns = ("node", "parent", "step", "token", "log-probability", "total", "score", "rank", "state", "why")
    data = Table(
        title,
        note,
        columns,
        tuple(
            (
                node.number,
                node.parent,
                node.step,
                node.piece,
                round(node.log_probability, 6),
                round(node.total, 6),
                round(node.score, 6),
                node.rank,
                node.state,
                reason(node, tree),
            )
            for node in tree.nodes
        ),
    )
    return Tree(title, note, tree, data)


def hypotheses_chart(found: Sequence[Output]) -> Table:
    """The outputs of the search, best first."""
    return Table(
        "Outputs of the search",
        "score = log-probability / length ** length_penalty",
        ("rank", "text", "score", "log-probability", "tokens"),
        tuple(
            (rank, one.text, round(one.score, 6), round(one.log_probability, 6), len(one.ids))
            for rank, one in enumerate(found, start=1)
        ),
    )


def alignment_chart(found: Alignment, source: Text, target: Text) -> Links:
    """Which word comes from which."""
    title = "Word alignment"
    note = f"From cross-attention, layer {found.layer}, mean of the heads. Pharaoh: {found.pharaoh}"
    links = tuple((above, below, float(found.weights[below, above])) for above, below in found.links)
    data = Table(
        title,
        note,
        ("source word", "target word", "source", "target", "weight"),
        tuple(
            (above, below, source.words[above], target.words[below], round(weight, 6))
            for above, below, weight in links
        ),
    )
    return Links(title, note, source.words, target.words, links, "source", "target", data)


def occlusion_charts(found: Occlusion, words: Sequence[str], output: str) -> list[Chart]:
    """What each word was worth, and for which part of the output."""
    title = "Each word left out"
    note = f"How much less likely the {output} becomes without the word, in nats, and what comes out instead."
    data = Table(
        title,
        note,
        ("word", "drop", f"{output} without it"),
        tuple((words[one.word], round(one.drop, 6), one.output) for one in found.words),
    )
    values = tuple(one.drop for one in found.words)
    labels = tuple(words[one.word] for one in found.words)
    bars = Bars(
        title,
        note,
        labels,
        values,
        min(0.0, *values) if values else 0.0,
        max(1e-6, *values) if values else 1.0,
        tuple(one.output for one in found.words),
        (False,) * len(values),
        "drop of the log-probability",
        data,
    )
    drops = np.array([one.drops for one in found.words], np.float32).reshape(len(values), len(found.columns))
    each = heat_map_chart(
        f"Each word left out, for each part of the {output}",
        "Drop of the log-probability in nats; what is below 0 counts as 0 in the shade.",
        list(labels),
        list(found.columns),
        drops,
        row_title="left out",
        column_title="becomes less likely",
        high=float(max(1e-6, drops.max(initial=0.0))),
    )
    return [bars, each]


def neighbours_chart(title: str, found: Sequence[Neighbours]) -> Table:
    """The nearest tokens of each."""
    most = max((len(one.near) for one in found), default=0)
    return Table(
        title,
        "Nearest tokens in the embedding, with the cosine.",
        ("token", *(str(rank + 1) for rank in range(most))),
        tuple((one.piece, *(f"{near.piece} {near.cosine:.2f}" for near in one.near)) for one in found),
    )


def token_chart(title: str, found: Text) -> Table:
    """The tokens of a text."""
    return Table(
        title,
        found.text,
        ("place", "token", "id", "word"),
        tuple(
            (place, one.piece, one.id, None if one.word is None else found.words[one.word])
            for place, one in enumerate(found.tokens)
        ),
    )
