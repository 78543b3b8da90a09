"""A decoder's step in tensors that neither move nor grow, as torch.compile and CUDA graphs want it.

A step of few rows on a GPU is a hundred short operations, whose starts take longer than themselves. Compiled with
`mode="reduce-overhead"`, they are started as one, a CUDA graph, which knows the addresses of its tensors by heart.
So there are a few sizes, every search has tensors of the smallest that holds it, and what is not there is masked.

Shapes: G sentences, W rows (hypotheses in progress) each, R = G x W, C places of a text, N = C x W tokens of the
rows of a sentence, H heads, E head width, D model width, V vocabulary.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from manyheads.model.attention import MultiHeadAttention, attend
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.layers import DecoderLayer, KeysValues, turned
from manyheads.model.masks import padding_mask
from manyheads.model.packed import PackedModel
from manyheads.model.static_tensors import Size, StaticTensors

__all__ = ["StaticDecoder", "StaticModel", "StaticStepper"]

MOST_SIZES = 2_000  # of all models; code that is made for other reasons would be a fault of ours


class StaticDecoder(nn.Module):
    """The decoder of a model, for a step of one token a row."""

    def __init__(self, model: EncoderDecoder, dtype: torch.dtype) -> None:
        """Around the model's own parts, or around copies where they are to be in another number format."""
        super().__init__()
        own = model if model.output.weight.dtype == dtype else copy.deepcopy(model).to(dtype)
        self.embedding, self.layers = own.target_embedding, own.decoder_layers
        self.norm, self.output = own.decoder_norm, own.output

    def forward(self, held: StaticTensors) -> None:
        """Take the step that has been told."""
        size = held.size
        tokens, parents, place = held.told.split([size.rows, size.rows, 1])
        x = self.embedding.tokens(tokens) * self.embedding.scale
        if held.signals is not None:
            x = x + held.signals.index_select(0, place)
        x = self.embedding.norm(x).unflatten(0, (size.sentences, size.width))  # (G, W, D)
        turns = None if held.turns is None else held.turns.index_select(0, place)[None, None]
        new = place * size.width + torch.arange(size.width, device=place.device)  # (W,) where these tokens go
        itself = torch.arange(held.seen.size(1), device=place.device) == new.repeat(size.sentences)[:, None]
        held.seen.copy_(held.seen.index_select(0, parents) | itself)
        mask = held.seen.view(size.sentences, 1, size.width, -1)
        for number, layer in enumerate(self.layers):
            x = step_of_layer(layer, x, held, number, new, mask, turns)
        logits = self.output(self.norm(x)).flatten(0, 1).float()
        held.log_probs.copy_(functional.log_softmax(logits, -1))


def step_of_layer(
    layer: DecoderLayer,
    x: Tensor,
    held: StaticTensors,
    number: int,
    new: Tensor,
    mask: Tensor,
    turns: Tensor | None,
) -> Tensor:
    """A layer's part of a step.

    Args:
        layer: of the decoder.
        x: (G, W, D).
        held: gets the keys and values of the new tokens.
        number: of the layer.
        new: where they go (W,).
        mask: what a row sees of the target (G, 1, W, N).
        turns: how queries and keys turn here (1, 1, 1, E / 2, 2), if they do.

    Returns:
        (G, W, D).
    """

    def attend_to_target(x: Tensor) -> Tensor:
        query, key, value = layer.self_attention.queries_keys_values(x)
        query, key = turned(query, key, turns)
        keys = held.keys[number].index_copy_(2, new, key)
        values = held.values[number].index_copy_(2, new, value)
        return mixed(layer.self_attention, query, (keys, values), mask)

    def attend_to_source(x: Tensor) -> Tensor:
        memory = held.source_keys[number], held.source_values[number]
        return mixed(layer.cross_attention, layer.cross_attention.queries(x), memory, held.source_mask)

    x = layer.around_self_attention(x, attend_to_target)
    x = layer.around_cross_attention(x, attend_to_source)
    return layer.around_feed_forward(x, layer.feed_forward)


def mixed(attention: MultiHeadAttention, query: Tensor, memory: KeysValues, mask: Tensor) -> Tensor:
    """`MultiHeadAttention.attend` without dropout and where nobody listens: -> (G, W, D)."""
    return attention.project_out(attention.merge(attend(query, *memory, mask)))


class StaticModel:
    """A model whose decoder takes its steps in fixed tensors; for one search at a time.

    Attributes:
        held: the tensors of each size that has come.
    """

    def __init__(self, packed: PackedModel) -> None:
        """A model in eval mode, arranged for decoding in the number format in which steps are taken."""
        self.packed = packed
        decoder = StaticDecoder(packed.model, packed.dtype)
        self.run = torch.compile(decoder.forward, mode="reduce-overhead", fullgraph=True, dynamic=False)
        self.held: dict[Size, StaticTensors] = {}

    def of(self, size: Size) -> StaticTensors:
        """The tensors of a size."""
        if size not in self.held:
            self.held[size] = StaticTensors(size, self.packed)
        return self.held[size]

    def step(self, held: StaticTensors, told: NDArray[np.int64]) -> None:
        """Take a step; told is as `StaticTensors.told`."""
        held.told.copy_(torch.from_numpy(told))
        if held.compiled:
            self.run(held)
            return
        limits = {"recompile_limit": MOST_SIZES, "accumulated_recompile_limit": MOST_SIZES}
        with torch._dynamo.config.patch(limits):
            self.run(held)
        held.compiled = True


class StaticStepper:
    """A model in the middle of decoding, as `EncoderDecoderStepper`, for at most W rows a sentence.

    Sentences that end stay in their place, unseen.
    """

    def __init__(self, model: StaticModel, source: Tensor, width: int) -> None:
        """Encode the source (B, S) and start with B rows without a past."""
        self.model = model
        count, length = source.shape
        memory, _ = model.packed.encode(source)
        with plain():
            self.held = model.of(Size.holding(count, width, length))
            self.held.begin(memory, padding_mask(source, model.packed.model.pad)[:, 0, 0])
        self.place = 0
        self.slots = np.arange(count) * width  # (R',) where each row that a search knows stands among the R
        self.parents = np.arange(self.held.size.rows)  # (R,) where each stood at the last step
        self.live: Tensor | None = None  # the slots, on the device

    def step(self, tokens: Tensor) -> Tensor:
        """Append one token to each row: (R',) -> log-probabilities of the next (R', V), float32."""
        self.model.packed.at(self.place)  # says so where the model's positions end
        size = self.held.size
        told = np.zeros(2 * size.rows + 1, dtype=np.int64)
        told[self.slots] = tokens.cpu().numpy()
        told[size.rows : -1], told[-1] = self.parents, self.place
        with plain():
            if self.place == size.places:
                self.held = self.grown()
            self.model.step(self.held, told)
            if self.live is None:
                self.live = torch.from_numpy(self.slots).to(self.held.told.device)
            found = self.held.log_probs.index_select(0, self.live)  # the next step overwrites the others
        self.place += 1
        self.parents = np.arange(size.rows)
        return found

    def grown(self) -> StaticTensors:
        """The tensors of the next size, with all that these hold."""
        size = self.held.size
        larger = self.model.of(Size.holding(size.sentences, size.width, size.places + 1))
        larger.go_on_from(self.held)
        return larger

    def select(self, rows: Tensor) -> None:
        """Go on with these rows, in this order, repeats allowed: (R'',).

        Raises:
            ValueError: a sentence would have more rows than there is room for.
        """
        chosen = self.slots[rows.cpu().numpy()]
        width = self.held.size.width
        sentences = chosen // width
        order = sentences.argsort(kind="stable")
        starts = np.searchsorted(sentences[order], sentences[order])
        numbers = np.empty_like(order)  # of each row among those of its sentence
        numbers[order] = np.arange(len(order)) - starts
        if numbers.max(initial=0) >= width:
            raise ValueError(f"{numbers.max() + 1} rows of a sentence are more than the {width} there is room for")
        slots, parents = sentences * width + numbers, np.arange(self.held.size.rows)
        parents[slots] = self.parents[chosen]
        self.slots, self.parents, self.live = slots, parents, None


@contextmanager
def plain() -> Iterator[None]:
    """Whoever calls, tensors are made and code is compiled in one and the same mode."""
    with torch.inference_mode(False), torch.no_grad():
        yield
