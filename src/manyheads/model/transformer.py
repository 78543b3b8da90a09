"""The base class of the three models."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from manyheads.config.schema import ModelConfig
from manyheads.errors import UsageError
from manyheads.model.layers import DecoderLayer, EncoderLayer
from manyheads.model.positions import RotaryPositions


class Transformer(nn.Module):
    """A stack of layers, and the configuration from which it was built.

    Attributes:
        config: the section `[model]` of the configuration.
        pad: the id of the padding token.
        rotary: the rotary positions; None where positions are added to the embeddings.
    """

    def __init__(self, config: ModelConfig, pad: int) -> None:
        """Make the parts that all three models have.

        Raises:
            UsageError: the default dtype of torch is not float32.
        """
        if (dtype := torch.get_default_dtype()) != torch.float32:
            raise UsageError(
                f"the default dtype of torch is {dtype}, and models are made, trained and stored in float32: "
                "torch.set_default_dtype(torch.float32). A model can be converted afterwards: model.to(dtype)."
            )
        super().__init__()
        self.config = config
        self.pad = pad
        rotary = config.positions == "rotary"
        self.rotary = RotaryPositions(config.d_model // config.num_heads) if rotary else None

    def layers(self) -> Iterator[EncoderLayer | DecoderLayer]:
        """Yield all layers in the order in which they are computed."""
        raise NotImplementedError

    def rotary_cos_sin(self, positions: Tensor) -> Tensor | None:
        """Return the cosines and sines for `apply_rotary`, or None without rotary positions.

        Args:
            positions: (B or 1, S).

        Returns:
            (B or 1, 1, S, E / 2, 2) float32.
        """
        return None if self.rotary is None else self.rotary(positions)
