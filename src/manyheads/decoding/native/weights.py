"""Weights as the C code reads them (`linear.h`): packed into panels, and rounded to a precision.

Shapes: I inputs, O outputs of a linear layer.
"""

from __future__ import annotations

from typing import get_args

import torch
from torch import Tensor, nn

from manyheads.config.schema import ModelConfig
from manyheads.decoding.linear import Precision, quantize_int8
from manyheads.decoding.native.structs import Layer, LayerNorm, Linear, Model
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.layers import DecoderLayer, EncoderLayer

__all__ = ["PackedWeights"]

FORMATS: tuple[Precision, ...] = get_args(Precision)  # in the order of linear.h
ACTIVATIONS = ("none", "relu", "gelu", "gelu-tanh", "swish", "swiglu")  # in the order of vectors.h


class PackedWeights:
    """The structs of a model's parts, and the memory that they point to."""

    def __init__(self, config: ModelConfig, precision: Precision, panel_width: int) -> None:
        """Start without weights.

        Args:
            config: configuration of the model.
            precision: number format of the matrices.
            panel_width: outputs side by side in a panel, as the library was compiled.
        """
        self.config = config
        self.precision = precision
        self.panel_width = panel_width
        self.tensors: list[Tensor] = []  # to which the structs point

    def model(
        self,
        embedding: TokenEmbedding,
        layers: list[Layer],
        norms: list[nn.Module],
        last_norm: nn.Module,
        output: Linear,
    ) -> Model:
        """Return the struct of an encoder or decoder.

        Args:
            embedding: the token embedding.
            layers: the packed layers.
            norms: the norm of each sublayer.
            last_norm: the norm after the last layer, or an identity.
            output: the projection to the vocabulary; of an encoder an empty struct.
        """
        pre_norm = self.config.norm == "pre"
        ordered = [*norms, last_norm] if pre_norm else [nn.Identity(), *norms]
        return Model(
            layers=(Layer * len(layers))(*layers),
            norms=(LayerNorm * len(ordered))(*map(self.norm, ordered)),
            embedding=self.keep(embedding.tokens.weight),
            embedding_norm=self.norm(embedding.norm),
            output=output,
            num_layers=len(layers),
            d_model=self.config.d_model,
            num_heads=self.config.num_heads,
            d_ff=self.config.d_ff,
            vocabulary=embedding.tokens.num_embeddings,
            format=FORMATS.index(self.precision),
            activation=ACTIVATIONS.index(self.config.activation),
            pre_norm=pre_norm,
            embedding_scale=embedding.scale,
            norm_epsilon=self.config.norm_epsilon,
        )

    def keep(self, tensor: Tensor | None) -> int | None:
        """Keep a tensor alive, made contiguous, and return its address."""
        if tensor is None:
            return None
        self.tensors.append(tensor.detach().contiguous())
        return self.tensors[-1].data_ptr()

    def linear(self, layer: nn.Linear, first: int = 0, last: int | None = None) -> Linear:
        """Pack a linear layer, or its outputs first..last."""
        weight, scale = layer.weight.detach()[first:last], None
        if self.precision == "int8":
            weight, scale = quantize_int8(weight)
        elif self.precision == "bf16":
            weight = weight.bfloat16()
        outputs, inputs = weight.shape
        bias = None if layer.bias is None else layer.bias.detach()[first:last]
        panels = self.pad_outputs(weight).view(-1, self.panel_width, inputs).transpose(1, 2)
        return Linear(
            weight=self.keep(panels),
            scale=None if scale is None else self.keep(self.pad_outputs(scale)),
            bias=None if bias is None else self.keep(self.pad_outputs(bias)),
            inputs=inputs,
            outputs=outputs,
        )

    def norm(self, norm: nn.Module) -> LayerNorm:
        """Return the struct of a layer norm; of any other module an empty one, which normalizes nothing."""
        if not isinstance(norm, nn.LayerNorm):
            return LayerNorm()
        return LayerNorm(weight=self.keep(norm.weight), bias=self.keep(norm.bias))

    def layer(self, layer: EncoderLayer | DecoderLayer) -> Layer:
        """Pack the linear layers of an encoder or decoder layer."""
        packed = Layer(
            self_qkv=self.linear(layer.self_attention.project_in),
            self_out=self.linear(layer.self_attention.project_out),
            expand=self.linear(layer.feed_forward.expand),
            contract=self.linear(layer.feed_forward.contract),
        )
        if isinstance(layer, DecoderLayer):
            packed.cross_query = self.linear(layer.cross_attention.project_in, last=self.config.d_model)
            packed.cross_out = self.linear(layer.cross_attention.project_out)
        return packed

    def pad_outputs(self, tensor: Tensor) -> Tensor:
        """Append zeros until the outputs fill whole panels: (O, ...) -> (O', ...)."""
        missing = -len(tensor) % self.panel_width
        return torch.cat([tensor, tensor.new_zeros(missing, *tensor.shape[1:])])
