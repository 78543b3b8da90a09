"""Keys and values of the past, so that decoding computes each token once.

Shapes: G sentences, W rows (hypotheses in progress) each, H heads, E head width, N tokens so far of all W rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["SharedPast", "as_array"]

FIRST_CAPACITY = 16  # tokens a row; doubled whenever it is full


class SharedPast:
    """The self-attention past of all decoder layers, held once a sentence.

    The W rows of a sentence write W tokens a step side by side, and these stay where they are: when a search goes
    on from other rows, only what each row may see of the N tokens changes. So a step of a beam moves no keys,
    which otherwise took longer than attending to those of the other rows, which are masked.

    Attributes:
        length: N.
        bias: what is added to the scores of attention, 0 where a row may attend and -inf elsewhere,
            (G, W, >= N); None while all rows see everything.
    """

    def __init__(self, num_layers: int, shape: tuple[int, int, int], like: Tensor) -> None:
        """Nothing yet, of so many layers.

        Args:
            num_layers: L.
            shape: G, H, E.
            like: a tensor of the same number format on the same device.
        """
        sentences, heads, width = shape
        self.length = 0
        self.bias: Tensor | None = None
        self.store = like.new_empty(num_layers, 2, sentences, heads, 0, width)
        self.seen: Tensor | None = None  # the bias of a step
        self.new: tuple[Tensor, ...] = ()  # each layer's part of the store that the step writes (2, G, H, W, E)
        self.all: tuple[Tensor, ...] = ()  # and that it reads (2, G, H, N, E)

    def begin(self, width: int) -> None:
        """Make room for a token of each of W = `width` rows, which `append` writes and reads."""
        self.make_room(width)
        if self.bias is not None:
            self.seen = self.bias.narrow(2, 0, self.length).unsqueeze(1)
        self.new = self.store.narrow(4, self.length - width, width).unbind(0)
        self.all = self.store.narrow(4, 0, self.length).unbind(0)

    def make_room(self, width: int) -> None:
        """Count a token of each of W = `width` rows, which sees itself and not those beside it."""
        end = self.length + width
        if end > self.store.size(4):
            self.enlarge(max(FIRST_CAPACITY * width, 2 * end))
        if width > 1 and self.bias is None:
            self.bias = self.store.new_full((self.store.size(2), width, self.store.size(4)), -math.inf)
            self.bias[:, :, : self.length] = 0
        if self.bias is not None:
            here, each = as_array(self.bias)[:, :, self.length : end], range(width)
            here[:] = -math.inf
            here[:, each, each] = 0
        self.length = end

    def enlarge(self, capacity: int) -> None:
        """Move to a larger store."""
        larger = self.store.new_empty(*self.store.shape[:4], capacity, self.store.size(5))
        larger[:, :, :, :, : self.length] = self.store[:, :, :, :, : self.length]
        self.store = larger
        if self.bias is not None:
            self.bias = functional.pad(self.bias, (0, capacity - self.bias.size(2)), value=-math.inf)

    def append(self, layer: int, keys_values: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Write the tokens for which `begin` has made room, and return all there is to attend to.

        Args:
            layer: of the decoder.
            keys_values: of the new tokens (2, G, H, W, E).

        Returns:
            Keys and values (G, H, N, E), and what is added to the scores (G, 1, W, N), if anything.
        """
        self.new[layer].copy_(keys_values)
        keys, values = self.all[layer].unbind(0)
        return keys, values, self.seen

    def keep_sentences(self, sentences: Tensor) -> None:
        """Go on with these sentences, in this order, repeats allowed: (G',)."""
        self.store = self.store[:, :, :, :, : self.length].index_select(2, sentences)
        if self.bias is not None:
            self.bias = self.bias[:, :, : self.length].index_select(0, sentences)

    def keep_rows(self, rows: Tensor) -> None:
        """Let the rows from now on, W' of each sentence, see what these of the G x W rows saw: (G x W',)."""
        if self.bias is not None:
            sentences, _, capacity = self.bias.shape
            kept = as_array(self.bias).reshape(-1, capacity)[as_array(rows)].reshape(sentences, -1, capacity)
            self.bias = torch.from_numpy(kept) if isinstance(kept, np.ndarray) else kept


def as_array(tensor: Tensor) -> Any:
    """A tensor, on a CPU as an array of the same numbers.

    Small operations of numpy start sooner, and keep the interpreter meanwhile: a thread that lets go of it ten
    times a step waits for other threads ten times a step.
    """
    return tensor.numpy() if tensor.device.type == "cpu" and tensor.dtype != torch.bfloat16 else tensor
