"""Steppers that read each prefix again at every step, by calling the model itself.

They are slower than the steppers of `decoding`, but run all hooks of the modules. Without a causal mask, the
states of earlier positions change with each new token, so that a KV cache cannot be used.

Shapes: R rows, S source length, T tokens so far, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from manyheads.inference.window import held_tokens
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_decoder import EncoderDecoder


class RereadingStepper:
    """The stepper of an encoder-decoder; see `search.interface.Stepper`."""

    def __init__(self, model: EncoderDecoder, source: Tensor) -> None:
        """Encode the source (R, S)."""
        self.model = model
        self.memory, self.mask = model.encode(source)
        self.prefixes = source[:, :0]

    def step(self, tokens: Tensor) -> Tensor:
        """Append a token to each row, and read the whole prefixes again: (R,) -> (R, V)."""
        self.prefixes = torch.cat([self.prefixes, tokens[:, None]], 1)
        hidden = self.model.decode(self.prefixes, self.memory, self.mask)
        return functional.log_softmax(self.model.output(hidden[:, -1]).float(), -1)

    def select(self, rows: Tensor) -> None:
        """Keep some rows: (R',) row indices, repeats allowed."""
        self.prefixes, self.memory, self.mask = (x[rows] for x in (self.prefixes, self.memory, self.mask))


class RereadingTextStepper:
    """The stepper of a language model; see `DecoderOnlyStepper`."""

    def __init__(self, model: DecoderOnly, contexts: Sequence[Sequence[int]], window: int) -> None:
        """Start with one context; several are not implemented."""
        self.model = model
        self.window = window
        self.texts = torch.tensor(contexts, device=model.output.weight.device)
        assert len(self.texts) == 1
        self.started = False

    def step(self, tokens: Tensor) -> Tensor:
        """Append a token to each row, after the first step: (R,) -> (R, V)."""
        if self.started:
            self.texts = torch.cat([self.texts, tokens[:, None]], 1)
        self.started = True
        length = self.texts.size(1)
        seen = self.texts[:, length - held_tokens(length, self.window) :]
        hidden = self.model.decode(seen)[:, -1]
        return functional.log_softmax(self.model.output(hidden).float(), -1)

    def select(self, rows: Tensor) -> None:
        """Keep some rows: (R',) row indices, repeats allowed."""
        self.texts = self.texts[rows]
