"""Weights as compiled code reads them (`native/product.h`): in panels, rounded as a precision says.

Shapes: I inputs, O outputs of a linear layer.
"""

from __future__ import annotations

from typing import get_args

import torch
from torch import Tensor, nn

from manyheads.config.schema import ModelConfig
from manyheads.model.descriptions import Layer, Linear, Model, Norm
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.layers import DecoderLayer, EncoderLayer
from manyheads.model.products import Precision, rounded

__all__ = ["Panels"]

FORMATS: tuple[Precision, ...] = get_args(Precision)  # numbers as in product.h
ACTIVATIONS = ("none", "relu", "gelu", "gelu-tanh", "swish", "swiglu")  # as in vectors.h


class Panels:
    """Descriptions of the parts of a model, and the memory that they point to."""

    def __init__(self, config: ModelConfig, held: Precision, width: int) -> None:
        """Start without weights.

        Args:
            config: the model's.
            held: number format of the weights.
            width: outputs side by side in a panel, as the library was compiled.
        """
        self.config = config
        self.held = held
        self.width = width
        self.kept: list[Tensor] = []  # whose addresses are in the descriptions

    def described(
        self,
        embedding: TokenEmbedding,
        layers: list[Layer],
        norms: list[nn.Module],
        last: nn.Module,
        output: Linear,
    ) -> Model:
        """An encoder or decoder.

        Args:
            embedding: of its tokens.
            layers: its products.
            norms: one of each sublayer.
            last: what stands after the last layer.
            output: the product with the vocabulary, of a decoder.
        """
        pre = self.config.norm == "pre"
        ordered = [*norms, last] if pre else [nn.Identity(), *norms]
        return Model(
            (Layer * len(layers))(*layers),
            (Norm * len(ordered))(*map(self.norm, ordered)),
            self.address(embedding.tokens.weight),
            self.norm(embedding.norm),
            output,
            len(layers),
            self.config.d_model,
            self.config.num_heads,
            self.config.d_ff,
            FORMATS.index(self.held),
            ACTIVATIONS.index(self.config.activation),
            pre,
            embedding.scale,
            self.config.norm_epsilon,
        )

    def address(self, tensor: Tensor | None) -> int | None:
        """Where a tensor lies, which is kept from now on."""
        if tensor is None:
            return None
        self.kept.append(tensor.detach().contiguous())
        return self.kept[-1].data_ptr()

    def linear(self, layer: nn.Linear, first: int = 0, last: int | None = None) -> Linear:
        """A linear layer, or its outputs first..last."""
        weight, scale = layer.weight.detach()[first:last], None
        if self.held == "int8":
            weight, scale = rounded(weight)
        elif self.held == "bf16":
            weight = weight.bfloat16()
        outputs, inputs = weight.shape
        bias = None if layer.bias is None else layer.bias.detach()[first:last]
        panels = self.filled(weight).view(-1, self.width, inputs).transpose(1, 2)
        more = (self.address(None if one is None else self.filled(one)) for one in (scale, bias))
        return Linear(self.address(panels), *more, inputs, outputs)

    def norm(self, norm: nn.Module) -> Norm:
        """A layer norm, or what stands where there is none."""
        return (
            Norm(self.address(norm.weight), self.address(norm.bias)) if isinstance(norm, nn.LayerNorm) else Norm()
        )

    def layer(self, layer: EncoderLayer | DecoderLayer) -> Layer:
        """The products of a layer."""
        found = Layer()
        found.self_in = self.linear(layer.self_attention.project_in)
        found.self_out = self.linear(layer.self_attention.project_out)
        found.expand, found.contract = map(self.linear, (layer.feed_forward.expand, layer.feed_forward.contract))
        if isinstance(layer, DecoderLayer):
            found.cross_query = self.linear(layer.cross_attention.project_in, last=self.config.d_model)
            found.cross_out = self.linear(layer.cross_attention.project_out)
        return found

    def filled(self, tensor: Tensor) -> Tensor:
        """Append zeros to the outputs until they fill whole panels: (O, ...) -> (O', ...)."""
        missing = -len(tensor) % self.width
        return torch.cat([tensor, tensor.new_zeros(missing, *tensor.shape[1:])])
