"""The stepper of a language model with a KV cache: contexts are computed in one pass, then each new token once.

A model sees at most `window` tokens (`inference.window`).

Shapes: R rows (texts in progress), N cached columns, T columns computed at once, H heads, E head width, D model
width, V vocabulary. All rows end in the same column; the columns before the first token of a row are padding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from manyheads.inference.window import held_tokens, window_step
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.layers import EncoderLayer
from manyheads.model.positions import apply_rotary
from manyheads.search.interface import Stepper

_MIN_FREE_CAPACITY = 16  # free columns for new tokens whenever the cache is made or resized


class DecoderOnlyStepper:
    """The stepper of a decoder-only model; see `search.interface.Stepper`.

    The first step returns the log-probabilities after the contexts and ignores its tokens.
    """

    def __init__(self, model: DecoderOnly, contexts: Sequence[Sequence[int]], window: int) -> None:
        """Compute the contexts, at least one; of a context longer than the window the last ids are used.

        The model is in evaluation mode. It sees at most `window` tokens, at most its number of positions.
        """
        if not contexts or not all(map(len, contexts)):
            raise ValueError("a text goes on after at least one token")
        rows = [list(ids)[len(ids) - held_tokens(len(ids), window) :] for ids in contexts]
        self.model = model
        self.window = window
        self.end = max(map(len, rows))
        self.begins = torch.tensor([self.end - len(row) for row in rows])  # (R,) first column of each, on the CPU
        width = model.config.d_model // model.config.num_heads
        capacity = self.end + _MIN_FREE_CAPACITY
        weight = model.output.weight.detach()
        self.tokens = torch.full((len(rows), capacity), model.pad, device=weight.device)
        for number, row in enumerate(rows):
            self.tokens[number, self.end - len(row) : self.end] = torch.tensor(row, device=weight.device)
        layers = len(model.decoder_layers)
        # keys and values of all layers, (L, 2, R, H, capacity, E)
        self.store = weight.new_zeros(layers, 2, len(rows), model.config.num_heads, capacity, width)
        # log-probabilities (R, V) that the first step returns
        self.first: Tensor | None = self.score(self.read(torch.arange(len(rows)), self.end))

    def step(self, tokens: Tensor) -> Tensor:
        """Append a token to each row, after the first step: (R,) -> log-probabilities (R, V)."""
        if self.first is not None:
            log_probs, self.first = self.first, None
            return log_probs
        self.drop_first_halves()
        if self.end == self.tokens.size(1):
            self.resize()
        self.tokens[:, self.end] = tokens
        self.end += 1
        return self.score(self.compute(None, 1, self.end))

    def select(self, rows: Tensor) -> None:
        """Keep some rows, with their keys and values: (R',) row indices."""
        self.begins = self.begins[rows.cpu()]
        self.tokens = self.tokens.index_select(0, rows)
        self.store = self.store.index_select(2, rows)
        if self.first is not None:
            self.first = self.first.index_select(0, rows)

    def score(self, hidden: Tensor) -> Tensor:
        """Return the log-probabilities of the next token: (R, D) -> (R, V), float32."""
        return functional.log_softmax(self.model.output(hidden).float(), -1)

    def drop_first_halves(self) -> None:
        """Drop the first half of the rows that fill the window, and compute their last half again."""
        full = (self.end - self.begins == self.window).nonzero()[:, 0]
        if len(full):
            num_kept = self.window - window_step(self.window)
            self.begins[full] = self.end - num_kept
            if num_kept:
                self.read(full, num_kept)

    def resize(self) -> None:
        """Remove the columns that are padding in every row, and double the capacity."""
        first = int(self.begins.min())
        self.begins -= first
        rest = self.end - first
        free = max(_MIN_FREE_CAPACITY, rest)
        self.tokens = functional.pad(self.tokens[:, first : self.end], (0, free), value=self.model.pad)
        self.store = functional.pad(self.store[:, :, :, :, first : self.end], (0, 0, 0, free))
        self.end = rest

    def read(self, rows: Tensor, length: int) -> Tensor:
        """Compute the last `length` columns of some rows from scratch; return their last hidden states (R', D)."""
        return self.compute(rows.to(self.tokens.device), length, length)

    def compute(self, rows: Tensor | None, num_queries: int, num_keys: int) -> Tensor:
        """Compute the last T columns of some rows (R',), or of all, which attend to the last N columns.

        The result is the hidden states of the last column (R', D).
        """
        model, end, device = self.model, self.end, self.tokens.device
        begins = self.begins if rows is None else self.begins[rows.cpu()]
        begins = begins.to(device)
        ids = self.tokens[:, end - num_queries : end]
        queries = torch.arange(end - num_queries, end, device=device)
        positions = (queries - begins[:, None]).clamp_min(0)  # (R', T)
        x = model.embedding(ids if rows is None else ids[rows], positions, self.window)
        rotary = None if model.rotary is None else model.rotary(positions)
        mask = _attention_mask(begins, queries, torch.arange(end - num_keys, end, device=device))
        for number, layer in enumerate(model.decoder_layers):
            x = self.compute_layer(layer, number, x, mask, rotary, rows, num_keys)
        return model.decoder_norm(x[:, -1])

    def compute_layer(
        self,
        layer: EncoderLayer,
        number: int,
        x: Tensor,
        mask: Tensor,
        rotary: Tensor | None,
        rows: Tensor | None,
        num_keys: int,
    ) -> Tensor:
        """Compute one layer and cache its keys and values: (R', T, D) -> (R', T, D)."""
        columns = slice(self.end - x.size(1), self.end)

        def attend(x: Tensor) -> Tensor:
            query, key, value = layer.self_attention.queries_keys_values(x)
            if rotary is not None:
                query, key = apply_rotary(query, rotary), apply_rotary(key, rotary)
            store = self.store[number]
            if rows is None:
                store[0, :, :, columns], store[1, :, :, columns] = key, value
                key, value = store[:, :, :, self.end - num_keys : self.end]
            else:
                store[0, rows, :, columns], store[1, rows, :, columns] = key, value
            return layer.self_attention.attend(query, key, value, mask)

        return layer.around_feed_forward(layer.around_attention(x, attend), layer.feed_forward)


def _attention_mask(begins: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """Return the causal mask of rows that begin in different columns; a padding column attends to itself alone.

    From the first column of each row (R,), the columns of queries (T,) and of keys (N,) -> bool (R, 1, T, N).
    """
    causal = keys <= queries[:, None]  # (T, N)
    diagonal = keys == queries[:, None]  # (T, N)
    not_padding = keys >= begins[:, None]  # (R, N)
    return ((causal & not_padding[:, None]) | diagonal)[:, None]


def array_stepper(model: DecoderOnly, contexts: Sequence[Sequence[int]], window: int) -> ArrayStepper:
    """Return the stepper of a model whose arguments and results are NumPy arrays; see `DecoderOnlyStepper`."""
    return ArrayStepper(DecoderOnlyStepper(model, contexts, window), model.output.weight.device)


class ArrayStepper:
    """A stepper with torch whose arguments and results are NumPy arrays, as of `NativeTextStepper`."""

    def __init__(self, stepper: Stepper, device: torch.device) -> None:
        self.stepper = stepper
        self.device = device

    @torch.no_grad()
    def step(self, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        """Append a token to each row: (R,) -> log-probabilities of the next (R, V)."""
        return self.stepper.step(torch.from_numpy(tokens).to(self.device)).cpu().double().numpy()

    @torch.no_grad()
    def select(self, rows: NDArray[np.int64]) -> None:
        """Keep some rows: (R',) row indices."""
        self.stepper.select(torch.from_numpy(rows).to(self.device))
