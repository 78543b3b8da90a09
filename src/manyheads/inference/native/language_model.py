"""A language model in C: the next tokens of several texts, each of which is read once.

Shapes: R rows (texts in progress), V vocabulary.
"""

from __future__ import annotations

import ctypes
from collections import ChainMap
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from manyheads.config.schema import ModelConfig
from manyheads.inference.native.model import FloatArray, NativePart
from manyheads.inference.native.sequence import NativeSequence
from manyheads.inference.native.weights import PackedWeights, Precision
from manyheads.inference.window import held_tokens, window_step
from manyheads.search.arrays import log_softmax

_FORBIDDEN_LOGIT = -1e4  # as in model/decoder_only.py


def with_fixed_bias(
    tensors: Mapping[str, FloatArray], vocabulary: int, absent: Sequence[int]
) -> Mapping[str, FloatArray]:
    """Return the weights of a file with the fixed bias that forbids ids without a token, if there are any."""
    if not absent:
        return tensors
    bias = np.zeros(vocabulary, dtype=np.float32)
    bias[[*absent]] = _FORBIDDEN_LOGIT
    return ChainMap({"output.bias": bias}, tensors)  # type: ignore[arg-type]


class NativeLanguageModel(NativePart):
    """A decoder-only model with its weights packed for the C code."""

    def __init__(
        self,
        tensors: Mapping[str, FloatArray],
        config: ModelConfig,
        vocabulary: int,
        precision: Precision,
        library: ctypes.CDLL,
    ) -> None:
        """Pack the weights of a `DecoderOnly` of V tokens; raise `WeightsError` for one that does not fit."""
        weights = PackedWeights(tensors, config, precision, library.panel_width(), library.panel_depth())
        super().__init__(weights, library)
        self.vocabulary = vocabulary
        self.decoder = weights.language_model(vocabulary)
        self.target_positions = weights.positions("embedding", library)


class NativeTextStepper:
    """A language model while it writes; see `search.interface.Stepper`, with NumPy arrays.

    The first step returns the log-probabilities after the contexts and ignores its tokens.
    """

    def __init__(
        self, model: NativeLanguageModel, contexts: Sequence[Sequence[int]], window: int, most: int
    ) -> None:
        """Read the contexts, at least one; of a context longer than the window the last ids are used.

        At most `most` tokens are appended to a row.
        """
        self.model, self.window = model, window
        self.texts = [list(ids)[len(ids) - held_tokens(len(ids), window) :] for ids in contexts]
        self.rows = [self.read(text[:-1], len(text) + most) for text in self.texts]
        self.started = False

    def read(self, tokens: Sequence[int], capacity: int) -> NativeSequence:
        """Return a sequence of tokens, with room for `capacity` or the window."""
        sequence = NativeSequence(self.model, min(self.window, capacity))
        sequence.append(tokens)
        return sequence

    def step(self, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        """Append one token to each row: (R,) -> log-probabilities of the next token (R, V)."""
        if self.started:
            for number, token in enumerate(tokens.tolist()):
                if len(self.texts[number]) == self.window:
                    self.texts[number] = self.texts[number][window_step(self.window) :]
                    self.rows[number] = self.read(self.texts[number], self.window)
                self.texts[number].append(token)
        self.started = True
        last = np.array([text[-1] for text in self.texts], dtype=np.int64)
        logits = np.empty((len(last), self.model.vocabulary), dtype=np.float32)
        steps = [step for number, row in enumerate(self.rows) for step in row.steps(last[number : number + 1])]
        self.model.decoder_steps(steps, max(row.length for row in self.rows), logits)
        return log_softmax(logits)

    def select(self, rows: NDArray[np.int64]) -> None:
        """Keep some of the R rows, in the given order: (R',) row indices, repeats allowed."""
        self.texts = [[*self.texts[row]] for row in rows.tolist()]
        self.rows = [self.rows[row].copy() for row in rows.tolist()]
