"""A decoder's step in tensors that neither move nor grow, as torch.compile and CUDA graphs want it.

A step of few rows on a GPU is a hundred short operations, whose starts take longer than themselves. Compiled with
`mode="reduce-overhead"`, they are started as one, a CUDA graph, which knows the addresses of its tensors by heart.
So there are a few sizes, every search has tensors of the smallest that holds it, and what is not there is masked.

Shapes: G sentences, W rows (hypotheses in progress) each, R = G x W, C places of a text, N = C x W tokens of the
rows of a sentence, H heads, E head width, D model width, V vocabulary.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from manyheads.model.attention import MultiHeadAttention, attend
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.layers import DecoderLayer, KeysValues, turned
from manyheads.model.masks import padding_mask
from manyheads.model.packed import PackedModel, Places

__all__ = ["PLACES", "SENTENCES", "Size", "StaticDecoder", "StaticModel", "StaticStepper"]

# Code is made for each size that comes, which takes many seconds; so there are few.
SENTENCES = (1, 4, 16)
PLACES = (32, 128, 512)
MOST_SIZES = 2_000  # of all models; code that is made for other reasons would be a fault of ours


@dataclass(frozen=True)
class Size:
    """What tensors have room for: G sentences of W rows and C places of their targets, and of their sources."""

    sentences: int
    width: int
    places: int

    @classmethod
    def holding(cls, sentences: int, width: int, places: int) -> Self:
        """The smallest that has room for so many.

        Raises:
            ValueError: there is none.
        """
        try:
            rounded = (next(one for one in SENTENCES if one >= sentences),
                       next(one for one in PLACES if one >= places))  # fmt: skip
        except StopIteration:
            raise ValueError(f"{sentences} sentences of {places} places are more than any size holds") from None
        return cls(rounded[0], width, rounded[1])

    @property
    def rows(self) -> int:
        """R."""
        return self.sentences * self.width

    @property
    def tokens(self) -> int:
        """G x N."""
        return self.rows * self.places


class StaticTensors:
    """All that steps of one size read and write.

    Attributes:
        told: of each row the token to append and the row it goes on from, and the place: (2 R + 1,).
        keys, values: what has been written, of each layer (G, H, N, E); the rows of a sentence stand side by side.
        seen: which of these tokens a row sees (R, N), bool.
        source_keys, source_values: of each layer (G, H, C, E).
        source_mask: (G, 1, 1, C), True where a source stands.
        signals: what is added to the embeddings of each place (C, D), if anything.
        turns: how queries and keys turn there (C, E / 2, 2), if they do.
        log_probs: what a step finds (R, V), float32.
        compiled: whether there is code for this size.
    """

    def __init__(self, size: Size, packed: PackedModel) -> None:
        """Room for all of it, with nothing in it."""
        config, device = packed.model.config, packed.like.device
        like = torch.empty(0, dtype=packed.dtype, device=device)
        layers = range(config.num_decoder_layers)
        head = config.num_heads, config.d_model // config.num_heads

        def room(length: int) -> list[Tensor]:
            return [like.new_zeros(size.sentences, head[0], length, head[1]) for _ in layers]

        self.size = size
        self.told = torch.zeros(2 * size.rows + 1, dtype=torch.int64, device=device)
        self.keys, self.values = room(size.places * size.width), room(size.places * size.width)
        self.seen = torch.zeros(size.rows, size.places * size.width, dtype=torch.bool, device=device)
        self.source_keys, self.source_values = room(size.places), room(size.places)
        self.source_mask = torch.zeros(size.sentences, 1, 1, size.places, dtype=torch.bool, device=device)
        limit = packed.target_embedding.limit or size.places
        places = Places(packed, packed.target_embedding, min(size.places, limit))
        self.signals = None if places.signals is None else places.signals[: size.places].to(packed.dtype)
        self.turns = None if places.turns is None else places.turns[: size.places].clone()
        self.log_probs = torch.zeros(size.rows, packed.model.output.out_features, device=device)
        self.compiled = False
        for tensor in self.tensors():
            torch._dynamo.mark_static_address(tensor, guard=False)

    def tensors(self) -> list[Tensor]:
        """All of them."""
        both = chain(self.keys, self.values, self.source_keys, self.source_values)
        others = (self.told, self.seen, self.source_mask, self.signals, self.turns, self.log_probs)
        return [*both, *(tensor for tensor in others if tensor is not None)]

    def begin(self, memory: Sequence[KeysValues], mask: Tensor) -> None:
        """Start with the keys and values of sources, of each layer twice (B, H, S, E), and their mask (B, S)."""
        count, length = mask.shape
        # What is masked counts with a weight of 0, which NaN times 0 would not be; nor is padding written by all.
        for tensor in chain(self.keys, self.values, self.source_keys, self.source_values, [self.seen]):
            tensor.zero_()
        padding = ~mask[:, None, :, None]
        for pair, keys, values in zip(memory, self.source_keys, self.source_values, strict=True):
            keys[:count, :, :length] = pair[0].masked_fill(padding, 0.0)
            values[:count, :, :length] = pair[1].masked_fill(padding, 0.0)
        self.source_mask.zero_()
        self.source_mask[count:] = True  # no query may be without a single key
        self.source_mask[:count, 0, 0, :length] = mask

    def go_on_from(self, other: StaticTensors) -> None:
        """Take over what a smaller one holds."""
        mine, its = ((one.keys, one.values, one.source_keys, one.source_values) for one in (self, other))
        for larger, smaller in zip(chain(*mine), chain(*its), strict=True):
            larger.zero_()
            larger[:, :, : smaller.size(2)] = smaller
        self.seen.zero_()
        self.seen[:, : other.seen.size(1)] = other.seen
        self.source_mask.zero_()
        self.source_mask[..., : other.size.places] = other.source_mask


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
