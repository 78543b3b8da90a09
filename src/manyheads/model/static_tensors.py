"""What a decoder's step of a few fixed shapes reads and writes: tensors that neither move nor grow.

Shapes: G sentences, W rows (hypotheses in progress) each, R = G x W, C places of a text, N = C x W tokens of the
rows of a sentence, H heads, E head width, D model width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Self

import torch
from torch import Tensor

from manyheads.model.layers import KeysValues
from manyheads.model.packed import PackedModel, Places

__all__ = ["PLACES", "SENTENCES", "Size", "StaticTensors"]

# Code is made for each size that comes, which takes many seconds; so there are few.
SENTENCES = (1, 4, 16)
PLACES = (32, 128, 512)


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
