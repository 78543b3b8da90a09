"""What there is to see of one text: plain frozen data, without a model and without pictures.

Shapes: L layers, H heads, S tokens of the source, T tokens of the target, both with their end mark.
Probabilities are 0 to 1, log-probabilities and entropies in nats, ranks count from 1, all other numbers from 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyheads.inspection.codec import Array

__all__ = [
    "Alignment",
    "Attention",
    "ClassProbability",
    "Near",
    "Neighbours",
    "Occluded",
    "Occlusion",
    "Output",
    "Prediction",
    "Rival",
    "Text",
    "Token",
    "entropies",
]


@dataclass(frozen=True)
class Token:
    """A token.

    Attributes:
        id: in the vocabulary.
        piece: as it is shown; a blank is ▁.
        word: the number of the word that it belongs to, None for marks such as `</s>`.
    """

    id: int
    piece: str
    word: int | None


@dataclass(frozen=True)
class Text:
    """A text as the model reads or writes it.

    Attributes:
        text: what a person sees.
        language: its code, or "".
        tokens: its tokens in order, marks included.
        words: what stands between blanks; `Token.word` counts them.
    """

    text: str
    language: str
    tokens: tuple[Token, ...]
    words: tuple[str, ...]

    @property
    def pieces(self) -> list[str]:
        """How the tokens are shown."""
        return [token.piece for token in self.tokens]


@dataclass(frozen=True, eq=False)
class Attention:
    """Where the heads of one kind of attention looked.

    Attributes:
        kind: "encoder" (self-attention of the source), "decoder" (self-attention of what is written), or "cross".
        weights: (L, H, rows, columns), each row adds up to 1.
        mask: (rows, columns) 1 where a row may look at a column, 0 where it may not.
        entropy: (L, H) mean over the rows of the entropy of their weights, in nats; 0 is one token alone.
    """

    kind: str
    weights: Array
    mask: Array
    entropy: Array

    def of(self, layer: int, head: int | None) -> Array:
        """The weights of a head, or the mean of the heads of a layer: (rows, columns)."""
        heads = self.weights[layer]
        return heads.mean(0) if head is None else heads[head]


def entropies(weights: Array) -> Array:
    """Mean over the rows of their entropy in nats: (L, H, rows, columns) -> (L, H)."""
    wide = weights.astype(np.float64)
    logs = np.log(np.where(wide > 0, wide, 1.0))
    return (-(wide * logs).sum(-1)).mean(-1).astype(np.float32)


@dataclass(frozen=True)
class Rival:
    """A token that could have stood in a place."""

    id: int
    piece: str
    log_probability: float
    probability: float


@dataclass(frozen=True)
class Prediction:
    """What the model thought of a token before it stood there.

    Attributes:
        id, piece: the token.
        log_probability, probability: of it, given all before it.
        rank: how many tokens were at least as likely, itself counted; 1 is the likeliest.
        entropy: of the whole distribution at this place, in nats.
        rivals: the likeliest other tokens, best first.
        forced: whether it was given, not chosen.
    """

    id: int
    piece: str
    log_probability: float
    probability: float
    rank: int
    entropy: float
    rivals: tuple[Rival, ...]
    forced: bool


@dataclass(frozen=True)
class Output:
    """One output of the search.

    Attributes:
        text: as a person reads it.
        score: what outputs are ranked by.
        log_probability: of all its tokens together.
        ids, pieces: its tokens, the end mark last when it ended.
        token_scores: log-probability of each.
        ended: whether it came to the end mark; else it was cut at the length limit.
    """

    text: str
    score: float
    log_probability: float
    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    token_scores: tuple[float, ...]
    ended: bool


@dataclass(frozen=True, eq=False)
class Alignment:
    """Which word of the target comes from which of the source, by cross-attention.

    Attributes:
        layer: of the decoder, from 0, whose heads' mean was taken.
        pharaoh: "0-0 1-2": source word, target word.
        links: the same as pairs.
        weights: (target words, source words) how much the tokens of a word looked at those of the other.
    """

    layer: int
    pharaoh: str
    links: tuple[tuple[int, int], ...]
    weights: Array


@dataclass(frozen=True)
class Occluded:
    """What happens when one word of the text is left out.

    Attributes:
        word: its number in `Text.words`.
        drop: how much less likely the whole output becomes, in nats; below 0 it becomes likelier.
        drops: the same for each token of the output; of a classifier, for each class.
        output: what comes out without the word: a translation, or a label.
    """

    word: int
    drop: float
    drops: tuple[float, ...]
    output: str


@dataclass(frozen=True)
class Occlusion:
    """Every word left out, one at a time (Zeiler and Fergus 2014; Li et al. 2016).

    Attributes:
        columns: what `Occluded.drops` stand for: pieces of the output, or classes.
        words: one entry for each word.
    """

    columns: tuple[str, ...]
    words: tuple[Occluded, ...]


@dataclass(frozen=True)
class Near:
    """A token whose embedding points in a like direction; cosine from -1 to 1."""

    id: int
    piece: str
    cosine: float


@dataclass(frozen=True)
class Neighbours:
    """The tokens that are nearest to a token in the embedding, nearest first."""

    id: int
    piece: str
    near: tuple[Near, ...]


@dataclass(frozen=True)
class ClassProbability:
    """How likely a class is."""

    label: str
    probability: float
