"""What there is to see of a model as a whole: plain frozen data.

Shapes: P positions, D model width (of rotary positions the head width).
"""

from __future__ import annotations

from dataclasses import dataclass

from manyheads.inspection.codec import Array

__all__ = ["Block", "LearningRate", "ModelFacts", "Positions", "Symbol", "TensorRow"]


@dataclass(frozen=True)
class ModelFacts:
    """The shape of a model: the settings that a reader of its pictures needs."""

    task: str
    d_model: int
    d_ff: int
    num_heads: int
    num_encoder_layers: int
    num_decoder_layers: int
    norm: str
    positions: str


@dataclass(frozen=True)
class Block:
    """A part of the model.

    Attributes:
        name: such as "encoder_layers.0".
        parameters: how many of its own; a matrix that it shares counts where it stands first.
    """

    name: str
    parameters: int


@dataclass(frozen=True)
class TensorRow:
    """A tensor of the model.

    Attributes:
        name: as in model.safetensors.
        shape: of its axes.
        parameters: their product.
        block: name of the block it is in.
        tied_to: the tensor that it is the same as, or None.
        deviation: standard deviation of its values.
    """

    name: str
    shape: tuple[int, ...]
    parameters: int
    block: str
    tied_to: str | None
    deviation: float


@dataclass(frozen=True, eq=False)
class Positions:
    """How a model tells positions apart.

    Attributes:
        kind: "sinusoidal", "learned" or "rotary".
        signal: (P, D) what is added to the token at each position (section 3.5); of rotary positions the cosine and
            the sine, in turn, of the angle by which each pair of a head is turned.
        products: (P, P) how alike two positions are: dot products of their signals; of rotary positions the mean
            cosine between a vector turned to the one and to the other.
    """

    kind: str
    signal: Array
    products: Array


@dataclass(frozen=True)
class LearningRate:
    """The learning rate that is planned.

    Attributes:
        schedule: its name.
        warmup_steps, total_steps: of the run.
        steps: some updates from 1 to the last.
        rates: the learning rate of each.
    """

    schedule: str
    warmup_steps: int
    total_steps: int
    steps: tuple[int, ...]
    rates: tuple[float, ...]


@dataclass(frozen=True)
class Symbol:
    """What a letter of the paper is in this package.

    Attributes:
        symbol: the letter, or letters.
        meaning: in words.
        equation: as plain text.
        section: of Vaswani et al. (2017), or of the paper named.
        source: file and line, as "model/attention.py:31", below src/manyheads.
        shape: of the thing itself in this model, or "".
    """

    symbol: str
    meaning: str
    equation: str
    section: str
    source: str
    shape: str
