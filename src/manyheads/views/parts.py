"""The parts of an inspection: frozen data, without a model and without pictures.

Shapes: L layers, H heads, S tokens of the source, T tokens of the target, both with their end mark.
Probabilities are 0 to 1, log-probabilities and entropies in nats, ranks count from 1, all other numbers from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from manyheads.config.schema import Config
from manyheads.views.codec import Array


@dataclass(frozen=True)
class ModelFacts:
    """The settings of a model that a reader of its pictures needs."""

    task: str
    d_model: int
    d_ff: int
    num_heads: int
    num_encoder_layers: int
    num_decoder_layers: int
    norm: str
    positions: str

    @classmethod
    def of(cls, config: Config) -> Self:
        """Return the settings of the model of a run; a missing encoder or decoder has 0 layers."""
        model = config.model
        encoder_layers, decoder_layers = config.layers
        return cls(
            task=config.spec.page,
            d_model=model.d_model,
            d_ff=model.d_ff,
            num_heads=model.num_heads,
            num_encoder_layers=encoder_layers,
            num_decoder_layers=decoder_layers,
            norm=model.norm,
            positions=model.positions,
        )


@dataclass(frozen=True)
class Token:
    """A token.

    Attributes:
        id: index in the vocabulary.
        piece: its text; a blank is ▁.
        word: number of its word, None for marks such as `</s>`.
    """

    id: int
    piece: str
    word: int | None


@dataclass(frozen=True)
class Text:
    """A text as the model reads or writes it.

    Attributes:
        text: plain text.
        language: its code, or "".
        tokens: all tokens in order, marks included.
        words: strings between blanks; `Token.word` is an index into them.
    """

    text: str
    language: str
    tokens: tuple[Token, ...]
    words: tuple[str, ...]

    @property
    def pieces(self) -> list[str]:
        """Return the text of each token."""
        return [token.piece for token in self.tokens]


@dataclass(frozen=True, eq=False)
class Attention:
    """The attention weights of one kind of attention.

    Attributes:
        kind: "encoder" (self-attention of the source), "decoder" (self-attention of the target), or "cross".
        weights: (L, H, rows, columns), each row adds up to 1.
        mask: (rows, columns) 1 where a row may attend to a column, else 0.
        entropy: (L, H) mean over the rows of the entropy of their weights, in nats; 0 is one token alone.
    """

    kind: str
    weights: Array
    mask: Array
    entropy: Array

    def of(self, layer: int, head: int | None) -> Array:
        """Return the weights of a head, or the mean of the heads of a layer: (rows, columns)."""
        heads = self.weights[layer]
        return heads.mean(0) if head is None else heads[head]


@dataclass(frozen=True, eq=False)
class HeadSteps:
    """The computation of one head on one text, step by step (Vaswani et al. 2017, section 3.2.1).

    Attributes:
        kind, layer, head: the head; see `Attention`.
        queries: (rows, E) a query for each row, with rotary positions after the rotation.
        keys: (columns, E) a key for each column, with rotary positions after the rotation.
        values: (columns, E) a value for each column.
        scores: (rows, columns) q k / sqrt(E), before the mask.
        mask: (rows, columns) 1 where a row may attend to a column, else 0.
        weights: (rows, columns) softmax of the scores with the mask.
        outputs: (rows, E) sum of the values, weighted.
    """

    kind: str
    layer: int
    head: int
    queries: Array
    keys: Array
    values: Array
    scores: Array
    mask: Array
    weights: Array
    outputs: Array


def entropies(weights: Array) -> Array:
    """Return the mean over the rows of their entropy in nats: (L, H, rows, columns) -> (L, H)."""
    precise = weights.astype(np.float64)
    logs = np.log(np.where(precise > 0, precise, 1.0))
    return (-(precise * logs).sum(-1)).mean(-1).astype(np.float32)


@dataclass(frozen=True)
class Alternative:
    """An alternative token at a position."""

    id: int
    piece: str
    log_probability: float
    probability: float


@dataclass(frozen=True)
class Prediction:
    """The prediction of one token from all tokens before it.

    Attributes:
        id, piece: the token.
        log_probability, probability: its log-probability and probability.
        rank: number of tokens at least as likely, itself counted; 1 is the likeliest.
        entropy: entropy of the whole distribution at this position, in nats.
        alternatives: likeliest other tokens, best first.
        forced: whether it was given instead of chosen.
    """

    id: int
    piece: str
    log_probability: float
    probability: float
    rank: int
    entropy: float
    alternatives: tuple[Alternative, ...]
    forced: bool


@dataclass(frozen=True)
class Output:
    """One output of the search.

    Attributes:
        text: plain text.
        score: value by which outputs are ranked.
        log_probability: sum over its tokens.
        ids, pieces: its tokens, with the end mark if it ended.
        token_scores: log-probability of each token.
        ended: whether it has an end mark; else it was cut at the length limit.
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
    """The word alignment by cross-attention.

    Attributes:
        layer: decoder layer, from 0, whose heads were averaged.
        pharaoh: "0-0 1-2": source word, target word.
        links: the same as pairs.
        weights: (target words, source words) attention from the tokens of one word to the tokens of the other.
    """

    layer: int
    pharaoh: str
    links: tuple[tuple[int, int], ...]
    weights: Array


@dataclass(frozen=True)
class Occluded:
    """The effect of leaving out one word of the text.

    Attributes:
        word: index into `Text.words`.
        drop: decrease of the log-probability of the whole output, in nats; below 0 it becomes likelier.
        drops: decrease for each token of the output; of a classifier, for each class.
        output: translation or label without the word.
    """

    word: int
    drop: float
    drops: tuple[float, ...]
    output: str


@dataclass(frozen=True)
class Occlusion:
    """The effect of leaving out each word, one at a time (Zeiler and Fergus 2014; Li et al. 2016).

    Attributes:
        columns: names of `Occluded.drops`: pieces of the output, or classes.
        words: one entry for each word.
    """

    columns: tuple[str, ...]
    words: tuple[Occluded, ...]


@dataclass(frozen=True)
class Near:
    """A token with a similar embedding; cosine from -1 to 1."""

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
    """The probability of a class."""

    label: str
    probability: float
