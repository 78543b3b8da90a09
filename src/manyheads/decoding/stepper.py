"""The stepper of an encoder-decoder with a KV cache, which computes each token once.

Shapes: G cached sentences, W rows (hypotheses in progress) each, R rows of the search (R <= G x W), V vocabulary.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from manyheads.decoding.kv_cache import StepInput
from manyheads.decoding.model import InferenceModel
from manyheads.model.encoder_decoder import EncoderDecoder


class EncoderDecoderStepper:
    """A model while it decodes; see `search.interface.Stepper`.

    Keys and values are cached once a sentence while all sentences have the same number of rows and the rows of a
    sentence are adjacent, as in a beam; otherwise once a row. A dropped sentence is still computed, without use,
    until enough sentences were dropped to make it worth moving the others. Keys are therefore moved rarely, and
    matrix products have few different shapes: the CPU's math library needs half a millisecond to prepare for a new
    shape.

    Attributes:
        memory: cross-attention keys and values of each layer.
        source_bias: attention bias that masks padding of the source, or None.
        cache: KV cache of self-attention.
        position: target position of the next token.
        sentences, width: G and W.
        row_sentences: (G x W,) sentence of each row.
        live: (R,) indices (of the G x W) of the rows of the search; None if it has all rows, in order.
    """

    def __init__(self, model: EncoderDecoder | InferenceModel, source: Tensor) -> None:
        """Encode the source (B, S) and start with B rows with empty prefixes."""
        self.model = model if isinstance(model, InferenceModel) else InferenceModel(model)
        self.memory, self.source_bias = self.model.encode(source)
        self.cache = self.model.new_cache(source.size(0))
        self.position = 0
        self.sentences, self.width = source.size(0), 1
        self.row_sentences = np.arange(self.sentences)
        self.live: Tensor | None = None

    def step(self, tokens: Tensor) -> Tensor:
        """Append one token to each row: (R,) -> log-probabilities of the next token (R, V), float32."""
        return functional.log_softmax(self.model.step(self.step_input(tokens)), -1)

    def step_input(self, tokens: Tensor) -> StepInput:
        """Return the input of the step that appends a token to each row (R,), and advance the position."""
        if self.live is not None:
            tokens = tokens.new_zeros(self.sentences * self.width).index_copy_(0, self.live, tokens)
        self.position += 1
        return StepInput(tokens, self.position - 1, self.cache, self.memory, self.source_bias, self.live)

    def select(self, rows: Tensor) -> None:
        """Keep some of the R rows, in the given order: (R',) row indices, repeats allowed."""
        cached = rows if self.live is None else self.live[rows]  # indices of the G x W rows
        chosen = cached.numpy() if cached.device.type == "cpu" else cached.cpu().numpy()
        if self.live is None and self.width > 1 and np.array_equal(chosen // self.width, self.row_sentences):
            self.cache.select_rows(rows)  # most steps of a beam
            return
        sentences, parents = np.divmod(chosen, self.width)
        width = _adjacent_rows(sentences)
        self.select_sentences(sentences[::width], parents.reshape(-1, width))

    def select_sentences(self, sentences: NDArray[np.int64], parents: NDArray[np.int64]) -> None:
        """Keep some of the cached sentences (G',), and of each of them some rows (G', W')."""
        count, width = parents.shape
        device = self.cache.store.device
        if _padded_count(count) < self.sentences or len(np.unique(sentences)) < count:
            indices = torch.from_numpy(sentences.copy()).to(device)
            self.cache.select_sentences(indices)
            self.memory = [
                (keys.index_select(0, indices), values.index_select(0, indices)) for keys, values in self.memory
            ]
            if self.source_bias is not None:
                self.source_bias = self.source_bias.index_select(0, indices)
            self.sentences, sentences = count, np.arange(count)
        all_parents = np.zeros((self.sentences, width), dtype=np.int64)
        all_parents[sentences] = parents
        first = np.arange(self.sentences)[:, None] * self.width
        self.cache.select_rows(torch.from_numpy((first + all_parents).ravel()).to(device))
        self.width, self.live = width, None
        self.row_sentences = np.repeat(np.arange(self.sentences), width)
        if not np.array_equal(sentences, np.arange(self.sentences)):
            live = sentences[:, None] * width + np.arange(width)
            self.live = torch.from_numpy(live.ravel()).to(device)


def _adjacent_rows(sentences: NDArray[np.int64]) -> int:
    """Return W if every sentence has W adjacent rows, else 1, from the sentence of each row (R,)."""
    starts = np.flatnonzero(np.diff(sentences, prepend=-1))
    width, rest = divmod(len(sentences), len(starts))
    even = rest == 0 and np.array_equal(starts, np.arange(0, len(sentences), width))
    return width if even else 1


def _padded_count(sentences: int) -> int:
    """Round a number of sentences up to the next number that is cached, so that shapes rarely change."""
    step = 1 if sentences <= 8 else 4 if sentences <= 32 else 8
    return -(-sentences // step) * step
