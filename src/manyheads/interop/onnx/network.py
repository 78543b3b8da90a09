"""The encoder and one step of the decoder as ONNX graphs.

Shapes: B rows, S source length, N cached tokens, D model width, H heads, E head width, V vocabulary. In a step of
the decoder, S is 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from manyheads.errors import require
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.layers import DecoderLayer, EncoderLayer, FeedForward, PostNorm, PreNorm

__all__ = ["decoder_ports", "encoder_ports", "write_decoder", "write_encoder"]

OPSET = 17  # the first with LayerNormalization
FORMAT = 8  # version of the file format; runtimes from 2022 on read it
Port = tuple[str, type[Any], Sequence[str | int]]  # name, number type, axes: sizes, or names of dynamic axes


class Graph:
    """Operators and constants; values are referred to by name."""

    def __init__(self, name: str) -> None:
        """Start an empty graph; raises `MissingExtraError`."""
        self.onnx = require("onnx", extra="onnx", purpose="the ONNX format")
        self.name = name
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.known: dict[tuple[Any, ...], str] = {}
        self.tensors: list[torch.Tensor] = []  # so that no other tensor reuses the memory of one in `known`

    def constant(self, value: torch.Tensor | NDArray[Any] | Sequence[int] | float | int) -> str:
        """Return the name of a constant; the same tensor is stored once."""
        if isinstance(value, torch.Tensor):
            key: tuple[Any, ...] = (value.data_ptr(), value.shape, value.stride())
            self.tensors.append(value)
            value = value.detach().contiguous().numpy()
        else:
            value = np.asarray(value, dtype=np.float32 if isinstance(value, float) else None)
            key = (str(value.dtype), value.shape, value.tobytes())
        if key not in self.known:
            self.known[key] = f"constant_{len(self.known)}"
            self.constants.append(self.onnx.numpy_helper.from_array(value, self.known[key]))
        return self.known[key]

    def call(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add an operator with one output, and return the name of the output."""
        name = output or f"value_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def save(self, path: Path, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        """Check the graph by the rules of ONNX, and write it."""
        helper = self.onnx.helper

        def described(port: Port) -> Any:
            name, kind, axes = port
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), list(axes))

        graph = helper.make_graph(
            self.nodes,
            self.name,
            [described(port) for port in inputs],
            [described(port) for port in outputs],
            self.constants,
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=FORMAT, producer_name="manyheads"
        )
        self.onnx.checker.check_model(model, full_check=True)
        self.onnx.save_model(model, str(path))


class Network(Graph):
    """The modules of a model as operators of one graph."""

    def __init__(self, name: str, model: EncoderDecoder, longest: int) -> None:
        """Start an empty graph for a part of a model, for texts of up to `longest` tokens."""
        super().__init__(name)
        self.model = model
        self.longest = longest
        self.heads = model.config.num_heads
        self.head_width = model.config.d_model // self.heads

    def linear(self, x: str, layer: nn.Linear, first: int = 0, last: int | None = None) -> str:
        """Add a linear layer, or its outputs first to last: (B, S, I) -> (B, S, O)."""
        product = self.call("MatMul", x, self.constant(layer.weight.detach()[first:last].t()))
        if layer.bias is None:
            return product
        return self.call("Add", product, self.constant(layer.bias.detach()[first:last]))

    def norm(self, x: str, norm: nn.Module) -> str:
        """Add a layer norm, or nothing for an identity."""
        if not isinstance(norm, nn.LayerNorm):
            return x
        weight, bias = self.constant(norm.weight), self.constant(norm.bias)
        return self.call("LayerNormalization", x, weight, bias, axis=-1, epsilon=norm.eps)

    def residual(self, x: str, around: PreNorm | PostNorm, sublayer: Callable[[str], str]) -> str:
        """Add a sublayer within its residual connection: (B, S, D) -> (B, S, D)."""
        if isinstance(around, PreNorm):
            return self.call("Add", x, sublayer(self.norm(x, around.norm)))
        return self.norm(self.call("Add", x, sublayer(x)), around.norm)

    def embedded(self, ids: str, positions: str, embedding: TokenEmbedding) -> str:
        """Add the embedding of ids (B, S) at positions (B or 1, S) -> (B, S, D)."""
        x = self.call("Gather", self.constant(embedding.tokens.weight), ids)
        x = self.call("Mul", x, self.constant(float(embedding.scale)))
        if embedding.positions is not None:
            table = embedding.positions(torch.arange(self.longest)[None], self.longest)[0].detach()
            x = self.call("Add", x, self.call("Gather", self.constant(table), positions))
        if embedding.types is not None:
            x = self.call("Add", x, self.constant(embedding.types.weight.detach()[0].clone()))
        return self.norm(x, embedding.norm)

    def rotary_cos_sin(self, positions: str) -> tuple[str, str] | None:
        """Return cosines and sines of rotary positions (B or 1, S), twice (B or 1, 1, S, E / 2), or None."""
        if self.model.rotary is None:
            return None
        table = self.model.rotary(torch.arange(self.longest)[None])[0, 0]  # (longest, E / 2, 2)
        parts = [self.call("Gather", self.constant(table[..., k].clone()), positions) for k in (0, 1)]
        cosine, sine = (self.call("Unsqueeze", part, self.constant([1])) for part in parts)
        return cosine, sine

    def apply_rotary(self, x: str, cos_sin: tuple[str, str] | None) -> str:
        """Rotate queries or keys by the angles of their positions: (B, H, S, E) -> (B, H, S, E)."""
        if cos_sin is None:
            return x
        pairs = self.call("Reshape", x, self.constant([0, 0, 0, self.head_width // 2, 2]))
        real, imaginary = (self.call("Gather", pairs, self.constant(k), axis=4) for k in (0, 1))
        cosine, sine = cos_sin
        new_real = self.call("Sub", self.call("Mul", real, cosine), self.call("Mul", imaginary, sine))
        new_imaginary = self.call("Add", self.call("Mul", real, sine), self.call("Mul", imaginary, cosine))
        last = self.constant([4])
        both = [self.call("Unsqueeze", part, last) for part in (new_real, new_imaginary)]
        return self.call("Reshape", self.call("Concat", *both, axis=4), self.constant([0, 0, 0, self.head_width]))

    def split_heads(self, x: str, parts: int) -> list[str]:
        """Split the width into heads: (B, S, parts x D) -> parts times (B, H, S, E)."""
        x = self.call("Reshape", x, self.constant([0, 0, parts, self.heads, self.head_width]))
        x = self.call("Transpose", x, perm=[2, 0, 3, 1, 4])
        return [self.call("Gather", x, self.constant(k), axis=0) for k in range(parts)]

    def attend(self, query: str, key: str, value: str, bias: str | None) -> str:
        """Add attention: (B, H, S, E), twice (B, H, N, E), bias of the scores (B, 1, 1, N) -> (B, S, D)."""
        scores = self.call("MatMul", query, self.call("Transpose", key, perm=[0, 1, 3, 2]))
        scores = self.call("Mul", scores, self.constant(float(self.head_width**-0.5)))
        if bias is not None:
            scores = self.call("Add", scores, bias)
        attended = self.call("MatMul", self.call("Softmax", scores, axis=-1), value)
        return self.call(
            "Reshape",
            self.call("Transpose", attended, perm=[0, 2, 1, 3]),
            self.constant([0, 0, self.heads * self.head_width]),
        )

    def feed_forward(self, x: str, part: FeedForward) -> str:
        """Add the feed-forward layer: (B, S, D) -> (B, S, D)."""
        inner = part.contract.in_features
        if part.activation == "swiglu":
            gate = self.swish(self.linear(x, part.expand, 0, inner))
            return self.linear(self.call("Mul", gate, self.linear(x, part.expand, inner)), part.contract)
        return self.linear(self.activate(self.linear(x, part.expand), part.activation), part.contract)

    def activate(self, x: str, activation: str) -> str:
        """Add the non-linearity of a feed-forward layer."""
        if activation == "relu":
            return self.call("Relu", x)
        if activation == "swish":
            return self.swish(x)
        if activation == "gelu":
            curve = self.call("Erf", self.call("Mul", x, self.constant(math.sqrt(0.5))))
        else:  # gelu-tanh
            cube = self.call("Mul", self.call("Mul", x, x), x)
            cubic = self.call("Add", x, self.call("Mul", cube, self.constant(0.044715)))
            curve = self.call("Tanh", self.call("Mul", cubic, self.constant(math.sqrt(2 / math.pi))))
        half = self.call("Mul", x, self.constant(0.5))
        return self.call("Mul", half, self.call("Add", curve, self.constant(1.0)))

    def swish(self, x: str) -> str:
        """Add x times its sigmoid."""
        return self.call("Mul", x, self.call("Sigmoid", x))

    def encoder_layer(self, x: str, layer: EncoderLayer, bias: str, cos_sin: tuple[str, str] | None) -> str:
        """Add an encoder layer: (B, S, D) -> (B, S, D)."""

        def attend(x: str) -> str:
            query, key, value = self.split_heads(self.linear(x, layer.self_attention.project_in), 3)
            attended = self.attend(self.apply_rotary(query, cos_sin), self.apply_rotary(key, cos_sin), value, bias)
            return self.linear(attended, layer.self_attention.project_out)

        x = self.residual(x, layer.around_attention, attend)
        return self.residual(x, layer.around_feed_forward, lambda x: self.feed_forward(x, layer.feed_forward))

    def decoder_layer(self, x: str, layer: DecoderLayer, number: int, cos_sin: tuple[str, str] | None) -> str:
        """Add a decoder layer: (B, 1, D) -> (B, 1, D); the longer KV cache is an output of the graph."""

        def attend_to_prefix(x: str) -> str:
            query, key, value = self.split_heads(self.linear(x, layer.self_attention.project_in), 3)
            keys, values = (
                self.call("Concat", f"past_{kind}_{number}", new, axis=2, output=f"new_{kind}_{number}")
                for kind, new in (("keys", self.apply_rotary(key, cos_sin)), ("values", value))
            )
            attended = self.attend(self.apply_rotary(query, cos_sin), keys, values, None)
            return self.linear(attended, layer.self_attention.project_out)

        def attend_to_source(x: str) -> str:
            width = self.heads * self.head_width
            [query] = self.split_heads(self.linear(x, layer.cross_attention.project_in, 0, width), 1)
            attended = self.attend(query, f"keys_{number}", f"values_{number}", "source_bias")
            return self.linear(attended, layer.cross_attention.project_out)

        x = self.residual(x, layer.around_self_attention, attend_to_prefix)
        x = self.residual(x, layer.around_cross_attention, attend_to_source)
        return self.residual(x, layer.around_feed_forward, lambda x: self.feed_forward(x, layer.feed_forward))


def write_encoder(path: Path, model: EncoderDecoder, longest: int) -> None:
    """Write the encoder with the keys and values of each decoder layer's cross-attention."""
    net = Network("encoder", model, longest)
    call, constant = net.call, net.constant
    real = call("Not", call("Equal", "source", constant(model.pad)))
    count = call("CumSum", call("Cast", real, to=int(net.onnx.TensorProto.INT64)), constant(1))
    positions = call("Max", call("Sub", count, constant(1)), constant(0))
    padding_bias = call("Where", real, constant(0.0), constant(-math.inf))
    bias = call("Unsqueeze", padding_bias, constant([1, 2]), output="source_bias")
    x = net.embedded("source", positions, model.source_embedding)
    cos_sin = net.rotary_cos_sin(positions)
    for layer in model.encoder_layers:
        x = net.encoder_layer(x, layer, bias, cos_sin)
    memory = net.norm(x, model.encoder_norm)
    for number, decoder in enumerate(model.decoder_layers):
        both = net.linear(memory, decoder.cross_attention.project_in, model.config.d_model)
        for kind, part in zip(("keys", "values"), net.split_heads(both, 2), strict=True):
            call("Identity", part, output=f"{kind}_{number}")
    net.save(path, *encoder_ports(model))


def write_decoder(path: Path, model: EncoderDecoder, longest: int) -> None:
    """Write one step of the decoder."""
    net = Network("decoder", model, longest)
    call, constant = net.call, net.constant
    positions = call("Unsqueeze", "place", constant([0, 1]))  # (1, 1)
    x = net.embedded(call("Unsqueeze", "tokens", constant([1])), positions, model.target_embedding)
    cos_sin = net.rotary_cos_sin(positions)
    for number, layer in enumerate(model.decoder_layers):
        x = net.decoder_layer(x, layer, number, cos_sin)
    last = call("Squeeze", net.norm(x, model.decoder_norm), constant([1]))  # (B, D)
    offset = [] if model.output.bias is None else [constant(model.output.bias)]
    logits = call("Gemm", last, constant(model.output.weight), *offset, transB=1)
    call("LogSoftmax", logits, axis=-1, output="log_probabilities")
    net.save(path, *decoder_ports(model))


def encoder_ports(model: EncoderDecoder) -> tuple[list[Port], list[Port]]:
    """Return inputs and outputs of the encoder."""
    return [("source", np.int64, ("B", "S"))], memory_ports(model)


def decoder_ports(model: EncoderDecoder) -> tuple[list[Port], list[Port]]:
    """Return inputs and outputs of a decoder step."""
    inputs: list[Port] = [("tokens", np.int64, ("B",)), ("place", np.int64, ()), *memory_ports(model)]
    outputs: list[Port] = [("log_probabilities", np.float32, ("B", model.output.out_features))]
    return inputs + layer_ports(model, "past_", "N"), outputs + layer_ports(model, "new_", "N + 1")


def memory_ports(model: EncoderDecoder) -> list[Port]:
    """Return the mask of the source, and keys and values of cross-attention."""
    return [("source_bias", np.float32, ("B", 1, 1, "S")), *layer_ports(model, "", "S")]


def layer_ports(model: EncoderDecoder, prefix: str, length: str) -> list[Port]:
    """Return keys and values of each decoder layer (B, H, length, E)."""
    heads, width = model.config.num_heads, model.config.d_model // model.config.num_heads
    names = [
        f"{prefix}{kind}_{number}" for number in range(len(model.decoder_layers)) for kind in ("keys", "values")
    ]
    return [(name, np.float32, ("B", heads, length, width)) for name in names]
