"""Weights as the C code reads them (`linear.h`): packed into panels, and rounded to a precision.

Shapes: I inputs, O outputs of a linear layer, D model width, V vocabulary.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from manyheads.config.schema import ModelConfig
from manyheads.errors import UsageError
from manyheads.inference.native.positions import Positions
from manyheads.inference.native.structs import Activation, Format, Layer, LayerNorm, Linear, Model

TorchPrecision = Literal["fp32", "bf16"]  # of torch operators
Precision = Literal["fp32", "bf16", "int8"]  # of the C code
_PRECISIONS: tuple[Precision, ...] = get_args(Precision)
_FORMATS: dict[Precision, Format] = {"fp32": Format.FLOAT32, "bf16": Format.BFLOAT16, "int8": Format.INT8}
_CACHE_LINE = 64  # bytes: a vector of weights that crosses two lines is read twice
_INT8_MAX = 127

FloatArray = NDArray[np.float32]


class WeightsError(ValueError):
    """A tensor is missing, or has another shape or type than the configuration says."""


def parse_precision(precision: str) -> Precision:
    """Return the precision of a name; raise `UsageError` if there is none."""
    for name in _PRECISIONS:
        if name == precision:
            return name
    raise UsageError(f'there is no precision "{precision}". Use one of {", ".join(_PRECISIONS)}.')


def torch_precision(precision: Precision, why: str) -> TorchPrecision:
    """Return a precision of torch operators; raise `UsageError` with the reason for torch if it is int8."""
    if precision == "int8":
        raise UsageError(f'precision "int8" is computed in C alone, and {why}. Use "bf16" or "fp32".')
    return precision


class PackedWeights:
    """The structs of a model, and the arrays that they point to."""

    def __init__(
        self,
        tensors: Mapping[str, FloatArray],
        config: ModelConfig,
        precision: Precision,
        panel_width: int,
        panel_depth: int = 1,
    ) -> None:
        """Start without packed weights; each tensor is read when it is packed.

        A panel has `panel_width` outputs, as the library was compiled; in int8 the weights of `panel_depth` inputs
        lie side by side.
        """
        self.tensors = tensors
        self.config = config
        self.precision = precision
        self.panel_width = panel_width
        self.panel_depth = panel_depth
        self.arrays: list[NDArray[Any]] = []  # references to the memory to which the structs point

    def encoder(self, vocabulary: int, embedding: str = "source_embedding", output: Linear | None = None) -> Model:
        """Pack the encoder of an encoder-decoder or encoder-only model, whose embedding has V tokens.

        `output` is the output layer of the decoder, if it has the same weights as the embedding.
        """
        names = [f"encoder_layers.{number}" for number in range(self.config.num_encoder_layers)]
        norms = [f"{name}.around_{part}.norm" for name in names for part in ("attention", "feed_forward")]
        layers = [self.layer(name) for name in names]
        return self.model(embedding, vocabulary, layers, [*norms, "encoder_norm"], output or Linear())

    def decoder(self, vocabulary: int) -> Model:
        """Pack the decoder of a target vocabulary of V tokens, without the keys and values of the source."""
        names = [f"decoder_layers.{number}" for number in range(self.config.num_decoder_layers)]
        parts = ("self_attention", "cross_attention", "feed_forward")
        norms = [f"{name}.around_{part}.norm" for name in names for part in parts]
        layers = []
        for name in names:
            layer = self.layer(name)
            layer.cross_query = self.attention_in(f"{name}.cross_attention", 0, 1)
            layer.cross_out = self.linear(f"{name}.cross_attention.project_out", self.config.d_model)
            layers.append(layer)
        output = self.linear("output", vocabulary)
        return self.model("target_embedding", vocabulary, layers, [*norms, "decoder_norm"], output)

    def language_model(self, vocabulary: int) -> Model:
        """Pack a `DecoderOnly` of V tokens: a decoder without cross-attention; its output may have a fixed bias."""
        names = [f"decoder_layers.{number}" for number in range(self.config.num_decoder_layers)]
        norms = [f"{name}.around_{part}.norm" for name in names for part in ("attention", "feed_forward")]
        layers = [self.layer(name) for name in names]
        output = self.linear("output", vocabulary, bias="output.bias" in self.tensors)
        return self.model("embedding", vocabulary, layers, [*norms, "decoder_norm"], output)

    def memory_keys_values(self) -> Any:
        """Pack the projections of the source to keys and values, of all decoder layers: an array of `Linear`."""
        count = self.config.num_decoder_layers
        names = [f"decoder_layers.{number}.cross_attention" for number in range(count)]
        return (Linear * count)(*(self.attention_in(name, 1, 3) for name in names))

    def positions(self, embedding: str, library: ctypes.CDLL) -> Positions:
        """Return the positions of `source_embedding` or `target_embedding`, the embedding of token type 0 added."""
        config, learned, token_type = self.config, None, None
        if config.positions == "learned":
            learned = self.take(f"{embedding}.positions.table.weight", config.max_positions, config.d_model)
        if config.token_types:
            token_type = self.take(f"{embedding}.types.weight", config.token_types, config.d_model)[0]
        return Positions(library, config, learned, token_type)

    def model(
        self, embedding: str, vocabulary: int, layers: list[Layer], norms: list[str], output: Linear
    ) -> Model:
        """Return the struct of an encoder or decoder.

        Args:
            embedding: name of the token embedding.
            vocabulary: V.
            layers: the packed layers.
            norms: names of the norms, in the order of the sublayers; only a pre-norm model has the last one.
            output: the projection to the vocabulary, from whose weights a tied embedding is read; an empty struct
                for an encoder with an embedding of its own.
        """
        config = self.config
        pre_norm = config.norm == "pre"
        packed = [self.norm(name) for name in (norms if pre_norm else norms[:-1])]
        ordered = packed if pre_norm else [LayerNorm(), *packed]
        return Model(
            layers=(Layer * len(layers))(*layers),
            norms=(LayerNorm * len(ordered))(*ordered),
            embedding=self.embedding(embedding, vocabulary, output),
            embedding_norm=self.norm(f"{embedding}.norm") if config.embedding_norm else LayerNorm(),
            output=output,
            num_layers=len(layers),
            d_model=config.d_model,
            num_heads=config.num_heads,
            d_ff=config.d_ff,
            vocabulary=vocabulary,
            format=_FORMATS[self.precision],
            activation=Activation[config.activation.upper().replace("-", "_")],
            pre_norm=pre_norm,
            embedding_scale=math.sqrt(config.d_model) if config.scale_embeddings else 1.0,
            norm_epsilon=config.norm_epsilon,
        )

    def layer(self, name: str) -> Layer:
        """Pack the linear layers that encoder and decoder layers have in common."""
        width, inner = self.config.d_model, self.config.d_ff
        return Layer(
            self_qkv=self.attention_in(f"{name}.self_attention", 0, 3),
            self_out=self.linear(f"{name}.self_attention.project_out", width),
            expand=self.linear(f"{name}.feed_forward.expand", inner * (1 + (self.config.activation == "swiglu"))),
            contract=self.linear(f"{name}.feed_forward.contract", width, inner),
        )

    def attention_in(self, name: str, first: int, last: int) -> Linear:
        """Pack some of the projections of an attention: 0 queries, 1 keys, 2 values."""
        width = self.config.d_model
        return self.linear(f"{name}.project_in", 3 * width, kept=slice(first * width, last * width))

    def linear(
        self,
        name: str,
        outputs: int,
        inputs: int | None = None,
        kept: slice = slice(None),
        bias: bool | None = None,
    ) -> Linear:
        """Pack the outputs `kept` of a linear layer of O outputs and I inputs, by default D.

        Whether it has a bias is by default the setting of the model.
        """
        inputs = inputs or self.config.d_model
        has_bias = self.config.bias if bias is None else bias
        biases = self.take(f"{name}.bias", outputs)[kept] if has_bias else None
        weight, scale = self.matrix(f"{name}.weight", outputs, inputs, kept)
        return Linear(
            weight=weight,
            scale=scale,
            bias=None if biases is None else self.keep(self.panels(biases[:, None])),
            inputs=inputs,
            outputs=len(range(outputs)[kept]),
        )

    def matrix(self, name: str, outputs: int, inputs: int, kept: slice) -> tuple[int, int | None]:
        """Pack some outputs of a matrix (O, I) in its precision; return the addresses of its panels and scales."""
        weight = self.take(name, outputs, inputs)[kept]
        if self.precision == "int8":
            integers, scale = quantize_int8(weight)
            return self.keep(self.panels(integers, self.panel_depth)), self.keep(self.panels(scale[:, None]))
        return self.keep(self.panels(_bfloat16_bits(weight) if self.precision == "bf16" else weight)), None

    def embedding(self, name: str, vocabulary: int, output: Linear) -> int | None:
        """Return the address of a token embedding (V, D) in float32, rounded if the precision is int8.

        None if it is tied to the weights of `output`: a second copy would be the largest array of many models. In
        bf16, the embedding is not rounded, and so a matrix of its own.
        """
        if output.weight and self.config.tied_embeddings != "none" and self.precision != "bf16":
            return None
        weight = self.take(f"{name}.tokens.weight", vocabulary, self.config.d_model)
        if self.precision == "int8":
            integers, scale = quantize_int8(weight)
            weight = integers * scale[:, None]
        return self.keep(weight)

    def norm(self, name: str) -> LayerNorm:
        """Return the struct of a layer norm."""
        weight, bias = (self.take(f"{name}.{part}", self.config.d_model) for part in ("weight", "bias"))
        return LayerNorm(weight=self.keep(weight), bias=self.keep(bias))

    def panels(self, weight: NDArray[Any], depth: int = 1) -> NDArray[Any]:
        """Pack a matrix (O, I) into panels, padded with zeros: (O / panel_width, I / depth, panel_width, depth)."""
        width, outputs, groups = self.panel_width, len(weight), -(-weight.shape[1] // depth)
        if missing := groups * depth - weight.shape[1]:
            weight = np.pad(weight, ((0, 0), (0, missing)))
        weight = weight.reshape(outputs, groups, depth)
        full, rest = divmod(outputs, width)
        packed = _aligned_zeros((full + bool(rest), groups, width, depth), weight.dtype)
        packed[:full] = weight[: full * width].reshape(full, width, groups, depth).transpose(0, 2, 1, 3)
        if rest:
            packed[full, :, :rest] = weight[full * width :].transpose(1, 0, 2)
        return packed if depth > 1 else packed[..., 0]

    def take(self, name: str, *shape: int) -> FloatArray:
        """Return a tensor.

        Raises:
            WeightsError: the tensor is missing, or has another shape or type.
        """
        tensor = self.tensors.get(name)
        if tensor is None or tensor.shape != shape or tensor.dtype != np.float32:
            actual = "missing" if tensor is None else f"{tensor.dtype} {tensor.shape}"
            raise WeightsError(f"{name} is {actual}, not float32 {shape}")
        return tensor

    def keep(self, array: NDArray[Any]) -> int:
        """Store an array, made contiguous, so that its memory stays valid; return its address."""
        self.arrays.append(np.ascontiguousarray(array))
        return self.arrays[-1].ctypes.data


def quantize_int8(weight: FloatArray) -> tuple[NDArray[np.int8], FloatArray]:
    """Quantize a matrix to 8 bits with one scale an output: (O, I) -> integers (O, I) int8, scales (O,) float32."""
    scale = np.maximum(np.abs(weight).max(1).astype(np.float32), np.finfo(np.float32).tiny) / np.float32(_INT8_MAX)
    with np.errstate(invalid="ignore"):
        return np.rint(weight / scale[:, None]).astype(np.int8), scale


def _bfloat16_bits(weight: FloatArray) -> NDArray[np.uint16]:
    """Round a matrix to bfloat16, ties to even; return the bits."""
    bits = np.ascontiguousarray(weight).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    rounded[np.isnan(weight)] = 0x7FC0
    return rounded


def _aligned_zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array of zeros that begins at a cache line."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.zeros(size + _CACHE_LINE, dtype=np.uint8)
    first = -memory.ctypes.data % _CACHE_LINE
    return memory[first : first + size].view(dtype).reshape(shape)
