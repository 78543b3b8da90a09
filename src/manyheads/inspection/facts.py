"""The settings of a model beside its pictures."""

from __future__ import annotations

from dataclasses import dataclass


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
