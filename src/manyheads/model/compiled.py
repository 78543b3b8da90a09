"""One short sentence read, and steps of few rows, by compiled code (`native/decoder.c`): the sums of `packed.py`.

Shapes: G sentences, W rows each, R = G x W, D model width, H heads, E head width, S source length, V vocabulary.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import chain
from typing import Literal

import torch
from torch import Tensor, nn

from manyheads.model.cache import SharedPast
from manyheads.model.embedding import TokenEmbedding
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.layers import DecoderLayer, EncoderLayer, KeysValues
from manyheads.model.products import rounded
from manyheads.native.build import library

__all__ = ["MOST_ROWS", "MOST_ROWS_OF_ONE", "MOST_TOKENS", "CompiledModel", "compiled_model", "few_rows"]

MOST_ROWS = 8  # of a step: beyond them, and in longer sentences, the products of oneDNN are the faster ones
MOST_ROWS_OF_ONE = 24  # the same where one thread computes: there the calls of operators weigh more
MOST_TOKENS = 48
MOST_THREADS = 8  # more would wait for each other longer than they read
Held = Literal["fp32", "bf16", "int8"]
FORMATS: tuple[Held, ...] = ("fp32", "bf16", "int8")  # numbers as in decoder.c
ACTIVATIONS = ("none", "relu", "gelu", "gelu-tanh", "swish", "swiglu")  # the same
POINTER, WHOLE, REAL = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float


class Linear(ctypes.Structure):
    """A linear layer."""

    _fields_ = (("weight", POINTER), ("scale", POINTER), ("bias", POINTER), ("inputs", WHOLE), ("outputs", WHOLE))


class Norm(ctypes.Structure):
    """A layer norm; without a weight there is none."""

    _fields_ = (("weight", POINTER), ("bias", POINTER))


class Layer(ctypes.Structure):
    """The products of a decoder layer."""

    _fields_ = tuple(
        (name, Linear) for name in ("self_in", "self_out", "cross_query", "cross_out", "expand", "contract")
    )


class Model(ctypes.Structure):
    """All that a step needs to know of a model."""

    _fields_ = (
        ("layers", ctypes.POINTER(Layer)),
        ("norms", ctypes.POINTER(Norm)),
        ("table", POINTER),
        ("embedding_norm", Norm),
        ("output", Linear),
        *((name, WHOLE) for name in ("count", "width", "heads", "inner", "format", "activation", "pre_norm")),
        ("scale", REAL),
        ("epsilon", REAL),
    )


class Step(ctypes.Structure):
    """What differs from step to step."""

    _fields_ = (
        *((name, POINTER) for name in ("tokens", "signal", "turns", "past", "past_bias")),
        ("memory", ctypes.POINTER(POINTER)),
        ("source_bias", POINTER),
        *((name, WHOLE) for name in ("sentences", "rows", "held", "room", "source")),
    )


def few_rows(rows: int) -> bool:
    """Whether a step of so many rows is faster in compiled code, with the threads that torch has now."""
    return rows <= (MOST_ROWS_OF_ONE if torch.get_num_threads() == 1 else MOST_ROWS)


def compiled_model(model: EncoderDecoder, held: Held) -> CompiledModel | None:
    """A model in float32 on a CPU; None for others, and where nothing can be compiled."""
    weight = model.output.weight
    if weight.device.type != "cpu" or weight.dtype != torch.float32 or (code := library()) is None:
        return None
    return CompiledModel(model, held, code)


class CompiledModel:
    """Weights where compiled code finds them; in fp32 they are those of the model itself.

    Safe to call from several threads.
    """

    def __init__(self, model: EncoderDecoder, held: Held, code: ctypes.CDLL) -> None:
        self.code = code
        code.working_room.restype = WHOLE
        self.held = held
        self.kept: list[Tensor] = []  # whose addresses are in the descriptions
        self.config = model.config
        encoder, decoder = model.encoder_layers, model.decoder_layers
        norms = [(one.around_attention.norm, one.around_feed_forward.norm) for one in encoder]
        self.encoder = self.described(model.source_embedding, list(map(self.layer, encoder)),
                                      [*chain(*norms)], model.encoder_norm, Linear())  # fmt: skip
        more = [
            (one.around_self_attention.norm, one.around_cross_attention.norm, one.around_feed_forward.norm)
            for one in decoder
        ]
        self.decoder = self.described(model.target_embedding, list(map(self.layer, decoder)),
                                      [*chain(*more)], model.decoder_norm, self.linear(model.output))  # fmt: skip
        width = model.config.d_model
        memory_in = [self.linear(one.cross_attention.project_in, width) for one in decoder]
        self.memory_in = (Linear * len(decoder))(*memory_in)

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
        return Linear(self.address(weight), self.address(scale), self.address(bias), inputs, outputs)

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

    def encode(self, source: Tensor, signals: Tensor | None, turns: Tensor | None) -> list[KeysValues]:
        """Read one sentence.

        Args:
            source: (S,), without padding.
            signals: what is added to the embeddings (S, D), if anything.
            turns: how queries and keys turn (S, E / 2, 2), if they do.

        Returns:
            Of each decoder layer, what its tokens look at and what they take from it, twice (1, H, S, E).
        """
        heads, length = self.config.num_heads, len(source)
        layers = len(self.memory_in)
        store = torch.empty(layers, 2, 1, heads, length, self.config.d_model // heads)
        memory: list[KeysValues] = [(keys, values) for keys, values in store.unbind(0)]
        threads = min(torch.get_num_threads(), MOST_THREADS)
        source, room = source.contiguous(), self.working_room(self.encoder, length, length, threads)
        self.code.encode(
            ctypes.byref(self.encoder),
            self.memory_in,
            WHOLE(layers),
            POINTER(pointer(source)),
            WHOLE(length),
            POINTER(pointer(signals)),
            POINTER(pointer(turns)),
            addresses(memory),
            POINTER(pointer(room)),
            threads,
        )
        return memory

    def working_room(self, model: Model, rows: int, keys: int, threads: int) -> Tensor:
        """What a call with so many rows, of which each looks at up to so many keys, works in."""
        size = self.code.working_room(ctypes.byref(model), WHOLE(rows), WHOLE(keys), WHOLE(threads))
        return torch.empty(size)

    def step(
        self,
        tokens: Tensor,
        signal: Tensor | None,
        turns: Tensor | None,
        past: SharedPast,
        memory: Sequence[KeysValues],
        source_bias: Tensor | None,
    ) -> Tensor:
        """Append a token to each row.

        Args:
            tokens: (R,).
            signal: what is added to the embeddings at this place of the target (D,), if anything.
            turns: how queries and keys turn there (E / 2, 2), if they do.
            past: with room made for this step.
            memory: of each layer, keys and values of the source (G, H, S, E).
            source_bias: what is added to the scores of cross-attention (G, 1, 1, S), if anything.

        Returns:
            Logits of the next tokens (R, V).
        """
        sentences, _, length, _ = memory[0][0].shape
        rows, tokens = len(tokens), tokens.contiguous()
        step = Step(
            pointer(tokens),
            pointer(signal),
            pointer(turns),
            pointer(past.store),
            pointer(past.bias),
            addresses(memory),
            pointer(source_bias),
            sentences,
            rows // sentences,
            past.length,
            past.store.size(4),
            length,
        )
        threads = min(torch.get_num_threads(), MOST_THREADS)
        room = self.working_room(self.decoder, rows, max(past.length, length), threads)
        logits = torch.empty(rows, self.decoder.output.outputs)
        self.code.decoder_step(
            ctypes.byref(self.decoder),
            ctypes.byref(step),
            POINTER(pointer(room)),
            POINTER(pointer(logits)),
            threads,
        )
        return logits


def addresses(memory: Sequence[KeysValues]) -> ctypes.Array[ctypes.c_void_p]:
    """Where keys and values lie, layer by layer; the caller keeps them."""
    return (POINTER * (2 * len(memory)))(*(pointer(tensor) for pair in memory for tensor in pair))


def pointer(tensor: Tensor | None) -> int | None:
    """Where a contiguous tensor lies; the caller keeps it."""
    if tensor is None:
        return None
    assert tensor.is_contiguous()
    return tensor.data_ptr()
