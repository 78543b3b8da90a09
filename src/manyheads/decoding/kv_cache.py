"""The KV cache of decoder self-attention, so that decoding computes each token once, and the input of a step.

Shapes: G sentences, W rows (hypotheses in progress) each, H heads, E head width, N cached tokens of a sentence (the
tokens of all of its W rows, in this step and in earlier steps).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from manyheads.model.layers import KeysValues

_FIRST_CAPACITY = 16  # tokens a row; the capacity doubles whenever the cache is full


class KVCache:
    """Self-attention keys and values of all decoder layers, shared by the rows of a sentence.

    The W rows of a sentence write W adjacent tokens a step, which are never moved: when a search selects other
    rows, only the mask changes that says which of the N tokens each row attends to. A step of a beam therefore
    copies no keys; copying took longer than the attention scores of other rows' tokens, which are masked.

    Attributes:
        length: N.
        store: keys and values (L, 2, G, H, capacity, E), of which the first N tokens are in use.
        bias: attention bias (G, W, capacity), 0 where a row may attend and -inf elsewhere; None while every row
            attends to all tokens.
    """

    def __init__(self, num_layers: int, shape: tuple[int, int, int], like: Tensor) -> None:
        """Make an empty cache of L layers and the shape G, H, E, with the dtype and device of `like`."""
        sentences, heads, width = shape
        self.length = 0
        self.bias: Tensor | None = None
        self.store = like.new_empty(num_layers, 2, sentences, heads, 0, width)
        self.step_bias: Tensor | None = None  # the bias of the present step (G, 1, W, N)
        self.new_views: tuple[Tensor, ...] = ()  # for each layer the new tokens in the store (2, G, H, W, E)
        self.all_views: tuple[Tensor, ...] = ()  # for each layer all tokens in the store (2, G, H, N, E)

    def begin_step(self, width: int) -> None:
        """Reserve a token for each of W = `width` rows, and make the views that `append` writes and reads."""
        self.reserve(width)
        if self.bias is not None:
            self.step_bias = self.bias.narrow(2, 0, self.length).unsqueeze(1)
        self.new_views = self.store.narrow(4, self.length - width, width).unbind(0)
        self.all_views = self.store.narrow(4, 0, self.length).unbind(0)

    def reserve(self, width: int) -> None:
        """Reserve a token for each of W = `width` rows; each row attends to its own new token only."""
        end = self.length + width
        if end > self.store.size(4):
            self.resize(max(_FIRST_CAPACITY * width, 2 * end))
        if width > 1 and self.bias is None:
            self.bias = self.store.new_full((self.store.size(2), width, self.store.size(4)), -math.inf)
            self.bias[:, :, : self.length] = 0
        if self.bias is not None:
            new_bias, diagonal = _as_array(self.bias)[:, :, self.length : end], range(width)
            new_bias[:] = -math.inf
            new_bias[:, diagonal, diagonal] = 0
        self.length = end

    def resize(self, capacity: int) -> None:
        """Copy the cache to a larger store of `capacity` tokens a sentence."""
        larger = self.store.new_empty(*self.store.shape[:4], capacity, self.store.size(5))
        larger[:, :, :, :, : self.length] = self.store[:, :, :, :, : self.length]
        self.store = larger
        if self.bias is not None:
            self.bias = functional.pad(self.bias, (0, capacity - self.bias.size(2)), value=-math.inf)

    def append(self, layer: int, keys_values: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Write the new tokens that `begin_step` has reserved; return all keys and values of a layer.

        Args:
            layer: index of the decoder layer.
            keys_values: keys and values of the new tokens (2, G, H, W, E).

        Returns:
            Keys and values (G, H, N, E), and the attention bias (G, 1, W, N) or None.
        """
        self.new_views[layer].copy_(keys_values)
        keys, values = self.all_views[layer].unbind(0)
        return keys, values, self.step_bias

    def select_sentences(self, sentences: Tensor) -> None:
        """Keep some sentences, in the given order: indices (G',), repeats allowed."""
        self.store = self.store[:, :, :, :, : self.length].index_select(2, sentences)
        if self.bias is not None:
            self.bias = self.bias[:, :, : self.length].index_select(0, sentences)

    def select_rows(self, rows: Tensor) -> None:
        """Select W' rows for each sentence from the G x W rows: indices (G x W',), repeats allowed."""
        if self.bias is not None:
            sentences, _, capacity = self.bias.shape
            selected = _as_array(self.bias).reshape(-1, capacity)[_as_array(rows)].reshape(sentences, -1, capacity)
            self.bias = torch.from_numpy(selected) if isinstance(selected, np.ndarray) else selected


def _as_array(tensor: Tensor) -> Any:
    """Return a CPU tensor as a NumPy array that shares its memory; other tensors unchanged.

    A small NumPy operation starts sooner than one of torch and does not release the interpreter lock: a thread that
    releases it ten times a step waits for other threads ten times a step.
    """
    return tensor.numpy() if tensor.device.type == "cpu" and tensor.dtype != torch.bfloat16 else tensor


@dataclass(frozen=True)
class StepInput:
    """The input of a decoding step: rows that append a token, all at the same position.

    Attributes:
        tokens: (R,) tokens to append, W rows for each of the G sentences.
        position: target position of these tokens, from 0.
        cache: KV cache of the self-attention; the step appends to it.
        memory: keys and values of the source, (G, H, S, E) each, of each decoder layer.
        source_bias: (G, 1, 1, S) added to the scores of cross-attention; None without padding.
        live: (R',) indices of the rows whose next tokens are needed; None: all.
    """

    tokens: Tensor
    position: int
    cache: KVCache
    memory: Sequence[KeysValues]
    source_bias: Tensor | None
    live: Tensor | None

    @property
    def width(self) -> int:
        """The rows of a sentence, W."""
        return len(self.tokens) // self.memory[0][0].size(0)
