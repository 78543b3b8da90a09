"""What all models of this package have in common."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from manyheads.config.schema import ModelConfig
from manyheads.model.layers import DecoderLayer, EncoderLayer

__all__ = ["Transformer"]


class Transformer(nn.Module):
    """Layers, one after the other, and the configuration they were made from.

    Attributes:
        config: the configuration.
        pad: the id of padding.
    """

    def __init__(self, config: ModelConfig, pad: int) -> None:
        super().__init__()
        self.config = config
        self.pad = pad

    def layers(self) -> Iterator[EncoderLayer | DecoderLayer]:
        """All layers, in the order in which they are computed."""
        raise NotImplementedError
