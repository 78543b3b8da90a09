"""The loss of a language model: on blocks while it is trained, and over a sliding window when it is judged.

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
    """A language model with its loss: cross-entropy of the token after each, with label smoothing."""

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
    """A window that slides over a text, so that every token but the first is predicted once.

    The first window predicts all that it can. Each further one begins `step` tokens later and predicts what those
    before have not: its last `step` tokens, after at least `width` - `step` others.
    """

    def __init__(self, length: int, *, width: int, step: int) -> None:
        """Of a text of so many tokens, the first of which is only read; at most `width` are seen at once."""
        self.predicted = max(0, length - 1)
        self.width = width
        self.step = step
        further = math.ceil(max(0, self.predicted - width) / step)
        self.number = 0 if not self.predicted else 1 + further

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, place: Any) -> Any:
        return range(self.number)[place]

    def batch(self, tokens: NDArray[np.int32], windows: Sequence[int]) -> tuple[BlockBatch, Tensor]:
        """Some windows of the text, and which places of their (B, T) are theirs to predict (N,).

        The last window is filled up with what no token before can see.
        """
        starts = self.step * np.asarray(windows, np.int64)[:, None]
        inputs = starts + np.arange(min(self.width, self.predicted))
        new = (inputs >= starts + self.width - self.step) | (starts == 0)
        places = (new & (inputs < self.predicted)).ravel().nonzero()[0]
        inputs = np.minimum(inputs, self.predicted - 1)
        ids, right = (torch.from_numpy(tokens[at].astype(np.int64)) for at in (inputs, inputs + 1))
        return BlockBatch(ids, right), torch.from_numpy(places)


def window_nll(
    model: DecoderOnly,
    tokens: NDArray[np.int32],
    windows: Windows,
    which: Sequence[int] | None = None,
    *,
    precision: Precision = "fp32",
    batch_tokens: int = 4_096,
) -> tuple[float, int]:
    """Negative log-likelihood of the tokens of a text, in nats, and how many they are.

    The model is used as it is: call `eval` before. Nothing but rounding depends on `batch_tokens`.

    Args:
        model: a language model.
        tokens: of the text, with one before that is only read (N,).
        windows: how the text is gone through.
        which: the windows to look at, all unless given.
        precision: number format of the products.
        batch_tokens: tokens looked at together.
    """
    device = next(model.parameters()).device
    which = range(len(windows)) if which is None else which
    rows = max(1, batch_tokens // windows.width)
    nats, count = 0.0, 0
    with torch.inference_mode(), autocast(device, precision):
        for first in range(0, len(which), rows):
            batch, places = windows.batch(tokens, which[first : first + rows])
            hidden = model.decode(batch.ids.to(device)).flatten(0, 1).index_select(0, places.to(device))
            right = batch.right.flatten()[places].to(device)
            _, nll = cross_entropy_sums(hidden, model.output.weight, model.output.bias, right)
            nats += float(nll)
            count += len(places)
    return nats, count
