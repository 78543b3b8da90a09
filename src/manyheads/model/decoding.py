"""An encoder-decoder in the middle of decoding, each token computed once.

Shapes: G sentences held, W rows (hypotheses in progress) each, R rows in all that a search knows of, V vocabulary.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from manyheads.model.descriptions import Part
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.packed import PackedModel

__all__ = ["EncoderDecoderStepper"]


class EncoderDecoderStepper:
    """A model in the middle of decoding.

    Keys and values are held once a sentence as long as every sentence has as many rows as the others and they
    stand together, as in a beam; else once a row. A sentence that is dropped goes on unseen until enough have been
    dropped to be worth moving the others: so keys move seldom, and the products come in few shapes, as each new one
    costs the processor's library half a millisecond.
    """

    def __init__(self, model: EncoderDecoder | PackedModel, source: Tensor) -> None:
        """Encode the source (B, S) and start with B rows without a past."""
        self.model = model if isinstance(model, PackedModel) else PackedModel(model)
        self.memory, self.source_bias = self.model.encode(source)
        self.past = self.model.past(source.size(0))
        self.place = 0
        self.sentences, self.width = source.size(0), 1  # G, W
        self.owners = np.arange(self.sentences)  # (G x W,) the sentence of each row
        self.live: Tensor | None = None  # (R,) which of the G x W rows a search knows; None is all, in order

    def step(self, tokens: Tensor) -> Tensor:
        """Append one token to each row: (R,) -> log-probabilities of the next (R, V), float32."""
        (logits,) = self.model.steps([self.part(tokens)])
        return functional.log_softmax(logits, -1)

    def part(self, tokens: Tensor) -> Part:
        """The step that appends a token to each row (R,); it counts as taken."""
        if self.live is not None:
            tokens = tokens.new_zeros(self.sentences * self.width).index_copy_(0, self.live, tokens)
        self.place += 1
        return Part(tokens, self.place - 1, self.past, self.memory, self.source_bias, self.live)

    def select(self, rows: Tensor) -> None:
        """Go on with these rows, in this order, repeats allowed: (R',)."""
        known = rows if self.live is None else self.live[rows]
        chosen = known.numpy() if known.device.type == "cpu" else known.cpu().numpy()
        if self.live is None and self.width > 1 and np.array_equal(chosen // self.width, self.owners):
            self.past.keep_rows(rows)  # most steps of a beam
            return
        held, parents = np.divmod(chosen, self.width)
        width = rows_together(held)
        self.go_on(held[::width], parents.reshape(-1, width))

    def go_on(self, sentences: NDArray[np.int64], parents: NDArray[np.int64]) -> None:
        """Go on with these of the held sentences (G',), of each with these of its rows (G', W')."""
        count, width = parents.shape
        device = self.past.store.device
        if size_class(count) < self.sentences or len(np.unique(sentences)) < count:
            kept = torch.from_numpy(sentences.copy()).to(device)
            self.past.keep_sentences(kept)
            self.memory = [
                (keys.index_select(0, kept), values.index_select(0, kept)) for keys, values in self.memory
            ]
            if self.source_bias is not None:
                self.source_bias = self.source_bias.index_select(0, kept)
            self.sentences, sentences = count, np.arange(count)
        everywhere = np.zeros((self.sentences, width), dtype=np.int64)
        everywhere[sentences] = parents
        first = np.arange(self.sentences)[:, None] * self.width
        self.past.keep_rows(torch.from_numpy((first + everywhere).ravel()).to(device))
        self.width, self.live = width, None
        self.owners = np.repeat(np.arange(self.sentences), width)
        if not np.array_equal(sentences, np.arange(self.sentences)):
            live = sentences[:, None] * width + np.arange(width)
            self.live = torch.from_numpy(live.ravel()).to(device)


def rows_together(sentences: NDArray[np.int64]) -> int:
    """How many rows each sentence has, if all have as many and they stand together; else 1.

    Args:
        sentences: (R,) the sentence of each row.
    """
    starts = np.flatnonzero(np.diff(sentences, prepend=-1))
    width, rest = divmod(len(sentences), len(starts))
    even = rest == 0 and np.array_equal(starts, np.arange(0, len(sentences), width))
    return width if even else 1


def size_class(sentences: int) -> int:
    """The number of sentences held when so many go on."""
    step = 1 if sentences <= 8 else 4 if sentences <= 32 else 8
    return -(-sentences // step) * step
