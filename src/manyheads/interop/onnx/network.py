"""Our encoder and one step of our decoder as ONNX graphs.

Shapes: B rows, S source length, N tokens so far, D model width, H heads, E head width, V vocabulary. A step is a
text of one token: wherever S stands, it may be 1.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from torch import nn

from manyheads.interop.onnx.graph import Graph, Port
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.layers import DecoderLayer, EncoderLayer, FeedForward, PostNorm, PreNorm

__all__ = ["decoder_ports", "encoder_ports", "write_decoder", "write_encoder"]


class Network:
    """The parts of our models, as operators of one graph."""

    def __init__(self, name: str, model: EncoderDecoder, longest: int) -> None:
        """An empty graph for a part of a model that is to take texts up to a length."""
        self.graph = Graph(name)
        self.call, self.constant = self.graph.call, self.graph.constant
        self.model = model
        self.longest = longest
        self.heads = model.config.num_heads
        self.each = model.config.d_model // self.heads

    def linear(self, x: str, layer: nn.Linear, first: int = 0, last: int | None = None) -> str:
        """A linear layer, or its outputs first..last: (B, S, I) -> (B, S, O)."""
        found = self.call("MatMul", x, self.constant(layer.weight.detach()[first:last].t()))
        if layer.bias is None:
            return found
        return self.call("Add", found, self.constant(layer.bias.detach()[first:last]))

    def norm(self, x: str, norm: nn.Module) -> str:
        """A layer norm, or what stands where there is none."""
        if not isinstance(norm, nn.LayerNorm):
            return x
        weight, bias = self.constant(norm.weight), self.constant(norm.bias)
        return self.call("LayerNormalization", x, weight, bias, axis=-1, epsilon=norm.eps)

    def before(self, x: str, around: PreNorm | PostNorm) -> str:
        """What a sublayer reads."""
        return self.norm(x, around.norm) if isinstance(around, PreNorm) else x

    def after(self, x: str, sublayer: str, around: PreNorm | PostNorm) -> str:
        """The residual connection."""
        both = self.call("Add", x, sublayer)
        return both if isinstance(around, PreNorm) else self.norm(both, around.norm)

    def embedded(self, ids: str, positions: str, embedding: TokenEmbedding) -> str:
        """Ids (B, S) at positions (B or 1, S) -> (B, S, D)."""
        x = self.call("Gather", self.constant(embedding.tokens.weight), ids)
        x = self.call("Mul", x, self.constant(float(embedding.scale)))
        if embedding.positions is not None:
            table = embedding.positions(torch.arange(self.longest)[None], self.longest)[0].detach()
            x = self.call("Add", x, self.call("Gather", self.constant(table), positions))
        if embedding.types is not None:
            x = self.call("Add", x, self.constant(embedding.types.weight.detach()[0].clone()))
        return self.norm(x, embedding.norm)

    def turns(self, positions: str) -> tuple[str, str] | None:
        """Cosines and sines at positions (B or 1, S), twice (B or 1, 1, S, E / 2), of rotary positions."""
        if self.model.rotary is None:
            return None
        table = self.model.rotary(torch.arange(self.longest)[None])[0, 0]  # (longest, E / 2, 2)
        parts = [self.call("Gather", self.constant(table[..., k].clone()), positions) for k in (0, 1)]
        cosine, sine = (self.call("Unsqueeze", part, self.constant([1])) for part in parts)
        return cosine, sine

    def turned(self, x: str, turns: tuple[str, str] | None) -> str:
        """Queries or keys turned to their positions: (B, H, S, E) -> (B, H, S, E)."""
        if turns is None:
            return x
        pairs = self.call("Reshape", x, self.constant([0, 0, 0, self.each // 2, 2]))
        real, imaginary = (self.call("Gather", pairs, self.constant(k), axis=4) for k in (0, 1))
        cosine, sine = turns
        new_real = self.call("Sub", self.call("Mul", real, cosine), self.call("Mul", imaginary, sine))
        new_imaginary = self.call("Add", self.call("Mul", real, sine), self.call("Mul", imaginary, cosine))
        last = self.constant([4])
        both = [self.call("Unsqueeze", part, last) for part in (new_real, new_imaginary)]
        return self.call("Reshape", self.call("Concat", *both, axis=4), self.constant([0, 0, 0, self.each]))

    def heads_of(self, x: str, parts: int) -> list[str]:
        """Give each head its share: (B, S, parts x D) -> parts times (B, H, S, E)."""
        x = self.call("Reshape", x, self.constant([0, 0, parts, self.heads, self.each]))
        x = self.call("Transpose", x, perm=[2, 0, 3, 1, 4])
        return [self.call("Gather", x, self.constant(k), axis=0) for k in range(parts)]

    def attended(self, query: str, key: str, value: str, bias: str | None) -> str:
        """Attention: (B, H, S, E), twice (B, H, N, E), what is added to the scores (B, 1, 1, N) -> (B, S, D)."""
        scores = self.call("MatMul", query, self.call("Transpose", key, perm=[0, 1, 3, 2]))
        scores = self.call("Mul", scores, self.constant(float(self.each**-0.5)))
        if bias is not None:
            scores = self.call("Add", scores, bias)
        mixed = self.call("MatMul", self.call("Softmax", scores, axis=-1), value)
        return self.call(
            "Reshape",
            self.call("Transpose", mixed, perm=[0, 2, 1, 3]),
            self.constant([0, 0, self.heads * self.each]),
        )

    def feed_forward(self, x: str, part: FeedForward) -> str:
        """(B, S, D) -> (B, S, D)."""
        inner = part.contract.in_features
        if part.activation == "swiglu":
            gate = self.swish(self.linear(x, part.expand, 0, inner))
            return self.linear(self.call("Mul", gate, self.linear(x, part.expand, inner)), part.contract)
        return self.linear(self.activated(self.linear(x, part.expand), part.activation), part.contract)

    def activated(self, x: str, activation: str) -> str:
        """The non-linearity of a feed-forward sublayer."""
        if activation == "relu":
            return self.call("Relu", x)
        if activation == "swish":
            return self.swish(x)
        if activation == "gelu":
            curve = self.call("Erf", self.call("Mul", x, self.constant(math.sqrt(0.5))))
        else:  # gelu-tanh
            cube = self.call("Mul", self.call("Mul", x, x), x)
            bent = self.call("Add", x, self.call("Mul", cube, self.constant(0.044715)))
            curve = self.call("Tanh", self.call("Mul", bent, self.constant(math.sqrt(2 / math.pi))))
        half = self.call("Mul", x, self.constant(0.5))
        return self.call("Mul", half, self.call("Add", curve, self.constant(1.0)))

    def swish(self, x: str) -> str:
        """X times its sigmoid."""
        return self.call("Mul", x, self.call("Sigmoid", x))

    def encoder_layer(self, x: str, layer: EncoderLayer, bias: str, turns: tuple[str, str] | None) -> str:
        """(B, S, D) -> (B, S, D)."""
        read = self.before(x, layer.around_attention)
        query, key, value = self.heads_of(self.linear(read, layer.self_attention.project_in), 3)
        mixed = self.attended(self.turned(query, turns), self.turned(key, turns), value, bias)
        x = self.after(x, self.linear(mixed, layer.self_attention.project_out), layer.around_attention)
        return self.around_feed_forward(x, layer)

    def around_feed_forward(self, x: str, layer: EncoderLayer | DecoderLayer) -> str:
        """The feed-forward sublayer of a layer: (B, S, D) -> (B, S, D)."""
        inner = self.feed_forward(self.before(x, layer.around_feed_forward), layer.feed_forward)
        return self.after(x, inner, layer.around_feed_forward)

    def decoder_layer(self, x: str, layer: DecoderLayer, number: int, turns: tuple[str, str] | None) -> str:
        """(B, 1, D) -> (B, 1, D); the longer past is an output of the graph."""
        read = self.before(x, layer.around_self_attention)
        query, key, value = self.heads_of(self.linear(read, layer.self_attention.project_in), 3)
        keys, values = (
            self.call("Concat", f"past_{kind}_{number}", new, axis=2, output=f"new_{kind}_{number}")
            for kind, new in (("keys", self.turned(key, turns)), ("values", value))
        )
        mixed = self.attended(self.turned(query, turns), keys, values, None)
        x = self.after(x, self.linear(mixed, layer.self_attention.project_out), layer.around_self_attention)
        cross, width = layer.cross_attention, self.heads * self.each
        asked = self.linear(self.before(x, layer.around_cross_attention), cross.project_in, 0, width)
        [query] = self.heads_of(asked, 1)
        mixed = self.attended(query, f"keys_{number}", f"values_{number}", "source_bias")
        x = self.after(x, self.linear(mixed, cross.project_out), layer.around_cross_attention)
        return self.around_feed_forward(x, layer)


def write_encoder(path: Path, model: EncoderDecoder, longest: int) -> None:
    """The encoder, and what the decoder layers make of its output, once a sentence."""
    net = Network("encoder", model, longest)
    call, constant = net.call, net.constant
    real = call("Not", call("Equal", "source", constant(model.pad)))
    count = call("CumSum", call("Cast", real, to=int(net.graph.onnx.TensorProto.INT64)), constant(1))
    positions = call("Max", call("Sub", count, constant(1)), constant(0))
    hidden = call("Where", real, constant(0.0), constant(-math.inf))
    bias = call("Unsqueeze", hidden, constant([1, 2]), output="source_bias")
    x = net.embedded("source", positions, model.source_embedding)
    turns = net.turns(positions)
    for layer in model.encoder_layers:
        x = net.encoder_layer(x, layer, bias, turns)
    memory = net.norm(x, model.encoder_norm)
    for number, decoder in enumerate(model.decoder_layers):
        both = net.linear(memory, decoder.cross_attention.project_in, model.config.d_model)
        for kind, part in zip(("keys", "values"), net.heads_of(both, 2), strict=True):
            call("Identity", part, output=f"{kind}_{number}")
    net.graph.save(path, *encoder_ports(model))


def write_decoder(path: Path, model: EncoderDecoder, longest: int) -> None:
    """One step of the decoder."""
    net = Network("decoder", model, longest)
    call, constant = net.call, net.constant
    positions = call("Unsqueeze", "place", constant([0, 1]))  # (1, 1)
    x = net.embedded(call("Unsqueeze", "tokens", constant([1])), positions, model.target_embedding)
    turns = net.turns(positions)
    for number, layer in enumerate(model.decoder_layers):
        x = net.decoder_layer(x, layer, number, turns)
    last = call("Squeeze", net.norm(x, model.decoder_norm), constant([1]))  # (B, D)
    offset = [] if model.output.bias is None else [constant(model.output.bias)]
    logits = call("Gemm", last, constant(model.output.weight), *offset, transB=1)
    call("LogSoftmax", logits, axis=-1, output="log_probabilities")
    net.graph.save(path, *decoder_ports(model))


def encoder_ports(model: EncoderDecoder) -> tuple[list[Port], list[Port]]:
    """Inputs and outputs of the encoder."""
    return [("source", np.int64, ("B", "S"))], memory_ports(model)


def decoder_ports(model: EncoderDecoder) -> tuple[list[Port], list[Port]]:
    """Inputs and outputs of a step."""
    given: list[Port] = [("tokens", np.int64, ("B",)), ("place", np.int64, ()), *memory_ports(model)]
    found: list[Port] = [("log_probabilities", np.float32, ("B", model.output.out_features))]
    return given + past_ports(model, "past", "N"), found + past_ports(model, "new", "N + 1")


def memory_ports(model: EncoderDecoder) -> list[Port]:
    """What the decoder looks at."""
    return [("source_bias", np.float32, ("B", 1, 1, "S")), *layer_ports(model, "", "S")]


def past_ports(model: EncoderDecoder, name: str, length: str) -> list[Port]:
    """Keys and values of the tokens so far."""
    return layer_ports(model, f"{name}_", length)


def layer_ports(model: EncoderDecoder, prefix: str, length: str) -> list[Port]:
    """Keys and values of each decoder layer (B, H, length, E)."""
    heads, width = model.config.num_heads, model.config.d_model // model.config.num_heads
    names = [
        f"{prefix}{kind}_{number}" for number in range(len(model.decoder_layers)) for kind in ("keys", "values")
    ]
    return [(name, np.float32, ("B", heads, length, width)) for name in names]
