"""The loss of a language model: on blocks in training, and over a sliding window in validation.

Shapes: B blocks or windows, T tokens each, D model width.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.data.blocks import BlockBatch
from manyheads.model.decoder_only import DecoderOnly
from manyheads.training.loss import cross_entropy_sums
from manyheads.training.objective import Objective
from manyheads.training.precision import Precision, autocast

__all__ = ["LanguageModelObjective", "Windows", "window_nll"]


class LanguageModelObjective(Objective):
    """A language model with its loss: cross-entropy of the next tokens, with label smoothing."""

    model: DecoderOnly

    def __init__(self, model: DecoderOnly, smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.smoothing = smoothing

    def forward(self, batch: BlockBatch) -> tuple[Tensor, Tensor]:
        """See `Objective`."""
        hidden = self.model.decode(batch.ids).flatten(0, 1)
        right = batch.right.flatten()
        output = self.model.output
        return cross_entropy_sums(hidden[: len(right)], output.weight, output.bias, right, self.smoothing)


class Windows(Sequence[int]):
    """The windows of a sliding window over a text, in which every token but the first is predicted once.

    The first window predicts all its tokens. Each further window begins `step` tokens later and predicts its last
    `step` tokens, each after at least `width` - `step` others.
    """

    def __init__(self, length: int, *, width: int, step: int) -> None:
        """Divide a text into windows.

        Args:
            length: number of tokens of the text, the first of which is not predicted.
            width: number of tokens of a window.
            step: number of tokens by which a window is shifted.
        """
        self.predicted = max(0, length - 1)
        self.width = width
        self.step = step
        further = math.ceil(max(0, self.predicted - width) / step)
        self.number = 0 if not self.predicted else 1 + further

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, index: Any) -> Any:
        return range(self.number)[index]

    def batch(self, tokens: NDArray[np.int32], windows: Sequence[int]) -> tuple[BlockBatch, Tensor]:
        """Return some windows as a batch (B, T), and the indices of the predicted positions in it, flattened (N,).

        The last window is filled up with tokens to which no token before them attends.
        """
        starts = self.step * np.asarray(windows, np.int64)[:, None]
        inputs = starts + np.arange(min(self.width, self.predicted))
        new = (inputs >= starts + self.width - self.step) | (starts == 0)
        positions = (new & (inputs < self.predicted)).ravel().nonzero()[0]
        inputs = np.minimum(inputs, self.predicted - 1)
        ids, right = (torch.from_numpy(tokens[at].astype(np.int64)) for at in (inputs, inputs + 1))
        return BlockBatch(ids, right), torch.from_numpy(positions)


def window_nll(
    model: DecoderOnly,
    tokens: NDArray[np.int32],
    windows: Windows,
    which: Sequence[int] | None = None,
    *,
    precision: Precision = "fp32",
    batch_tokens: int = 4_096,
) -> tuple[float, int]:
    """Return the negative log-likelihood of the tokens of a text, in nats, and the number of these tokens.

    The model is used as it is: call `eval` before. The result depends on `batch_tokens` only by rounding.

    Args:
        model: a language model.
        tokens: ids of the text (N,), after one token that is not predicted.
        windows: the windows of the text.
        which: indices of the windows to score, all by default.
        precision: number format of the matrix products.
        batch_tokens: number of tokens of a batch.
    """
    device = next(model.parameters()).device
    which = range(len(windows)) if which is None else which
    rows = max(1, batch_tokens // windows.width)
    nats, count = 0.0, 0
    with torch.inference_mode(), autocast(device, precision):
        for first in range(0, len(which), rows):
            batch, positions = windows.batch(tokens, which[first : first + rows])
            hidden = model.decode(batch.ids.to(device)).flatten(0, 1).index_select(0, positions.to(device))
            right = batch.right.flatten()[positions].to(device)
            _, nll = cross_entropy_sums(hidden, model.output.weight, model.output.bias, right)
            nats += float(nll)
            count += len(positions)
    return nats, count
