"""Training objectives: a model with the loss of its task; and the loss of a validation text.

A loss is summed over all predictions of a batch or of a text, in nats. The loss of a text does not depend on how
the text is batched, except by rounding.

Shapes: B blocks or windows, T tokens each, D model width, C classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from manyheads.data.batches import fixed_batches
from manyheads.model.decoder_only import DecoderOnly
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.model.encoder_only import MaskedLanguageModel, TextClassifier
from manyheads.model.transformer import Transformer
from manyheads.reports import Advance, no_advance
from manyheads.tensors.blocks import BlockBatch
from manyheads.tensors.examples import NO_LABEL, Examples
from manyheads.tensors.masked import MaskedTexts
from manyheads.tensors.pairs import Batch, Ids, make_batch
from manyheads.training.loss import cross_entropy_sums, kl_divergence_sum

# The training loss, and the plain negative log-likelihood in nats, both summed over the predictions; float32 ().
LossAndNll = tuple[Tensor, Tensor]


class Objective(nn.Module):
    """A model with its loss as one module, which DDP or FSDP can wrap."""

    def __init__(self, model: Transformer, loss: Callable[[Any, Any], LossAndNll]) -> None:
        """Take a model, and the function that returns the losses of the model on a micro-batch."""
        super().__init__()
        self.model = model
        self.loss = loss

    def forward(self, batch: Any) -> LossAndNll:
        """Compute the losses of a micro-batch (`MicroBatch`)."""
        return self.loss(self.model, batch)


def translation_loss(model: EncoderDecoder, batch: Batch, smoothing: float, r_drop: float = 0.0) -> LossAndNll:
    """Compute the losses of the real target tokens.

    With R-Drop, the losses are the mean of two passes with different dropout, and the divergence of the passes is
    added to the training loss, times `r_drop` (alpha of Liang et al. 2021, equation 4).
    """
    output = model.output
    hidden, labels = _hidden_states(model, batch if r_drop == 0 else batch.twice())
    loss, nll = cross_entropy_sums(hidden, output.weight, output.bias, labels, smoothing)
    if r_drop == 0:
        return loss, nll
    first, second = hidden.chunk(2)
    divergence = kl_divergence_sum(first, second, output.weight, output.bias)
    return (loss + r_drop * divergence) / 2, nll / 2


def _hidden_states(model: EncoderDecoder, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return last hidden states (N, D) and correct tokens (N,) of the N real target positions, row by row."""
    hidden = model.decode(batch.target_in, *model.encode(batch.source))
    positions = batch.target_positions
    return hidden.flatten(0, 1).index_select(0, positions), batch.target_out.flatten().index_select(0, positions)


def classification_loss(
    model: TextClassifier, batch: Examples, smoothing: float, class_weights: Tensor | None = None
) -> LossAndNll:
    """Compute the losses of labelled texts.

    The class weights (C,), by default equal, do not enter the plain negative log-likelihood.
    """
    logits = model(batch.ids, batch.types).float()
    weights = None if class_weights is None else class_weights.to(logits.device)
    sum_over_texts = partial(functional.cross_entropy, ignore_index=NO_LABEL, reduction="sum")
    loss = sum_over_texts(logits, batch.labels, weights, label_smoothing=smoothing)
    return loss, sum_over_texts(logits.detach(), batch.labels)


def masked_loss(model: MaskedLanguageModel, batch: MaskedTexts, smoothing: float) -> LossAndNll:
    """Compute the losses of the masked tokens, with label smoothing."""
    hidden = model.encode(batch.ids)[0].flatten(0, 1).index_select(0, batch.positions)
    output = model.output
    return cross_entropy_sums(model.transform_states(hidden), output.weight, output.bias, batch.labels, smoothing)


def next_token_loss(model: DecoderOnly, batch: BlockBatch, smoothing: float) -> LossAndNll:
    """Compute the losses of the next tokens in each block, with label smoothing."""
    hidden, labels = model.decode(batch.ids).flatten(0, 1), batch.labels.flatten()
    return cross_entropy_sums(hidden[: len(labels)], model.output.weight, model.output.bias, labels, smoothing)


# --- the loss of a validation text ---


def corpus_nll(
    model: EncoderDecoder,
    sources: Sequence[Ids],
    targets: Sequence[Ids],
    *,
    bos: int,
    eos: int,
    prefix: Sequence[int] = (),
    batch_tokens: int = 4_096,
    advance: Advance = no_advance,
) -> tuple[float, int]:
    """Return the negative log-likelihood of all targets given their sources, in nats, and their number of tokens.

    End marks are counted; the tokens of `prefix`, which begin every target, are not. Perplexity is
    exp(nats / tokens). Pairs that are longer than the learned positions of the model are left out. The mode of the
    model is not changed: call `eval` before. `advance` is called with the number of pairs of each batch.
    """
    device = next(model.parameters()).device
    targets = [[*prefix, *target] for target in targets] if prefix else targets
    lengths = np.array([max(len(s), len(t)) + 1 for s, t in zip(sources, targets, strict=True)], dtype=np.int64)
    short = np.flatnonzero(lengths <= model.config.position_limit)
    nats, tokens = 0.0, 0
    with torch.inference_mode():
        for pairs in map(short.__getitem__, fixed_batches(lengths[short], batch_tokens)):
            rows = [sources[pair] for pair in pairs], [targets[pair] for pair in pairs]
            batch = make_batch(*rows, pad=model.pad, bos=bos, eos=eos, given=len(prefix))
            _, nll = translation_loss(model, batch.to(device), smoothing=0.0)
            nats += float(nll)
            tokens += batch.target_tokens
            advance(len(pairs))
    return nats, tokens


class Windows(Sequence[int]):
    """The windows of a sliding window over a text, in which every token but the first is predicted once.

    The first window predicts all its tokens. Each further window begins `step` tokens later and predicts its last
    `step` tokens, each after at least `width` - `step` others.
    """

    def __init__(self, length: int, *, width: int, step: int) -> None:
        """Divide a text of `length` tokens, the first of which is not predicted, into windows of `width` tokens."""
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
        ids, labels = (torch.from_numpy(tokens[indices].astype(np.int64)) for indices in (inputs, inputs + 1))
        return BlockBatch(ids, labels), torch.from_numpy(positions)


def window_nll(
    model: DecoderOnly,
    tokens: NDArray[np.int32],
    windows: Windows,
    which: Sequence[int] | None = None,
    *,
    batch_tokens: int = 4_096,
    advance: Advance = no_advance,
) -> tuple[float, int]:
    """Return the negative log-likelihood of the tokens of a text, in nats, and the number of these tokens.

    The mode of the model is not changed: call `eval` before. The result depends on `batch_tokens` only by rounding.
    The ids of the text (N,) follow one token that is not predicted; the windows `which` are scored, all by default.
    `advance` is called with the number of windows of each batch.
    """
    device = next(model.parameters()).device
    which = range(len(windows)) if which is None else which
    rows = max(1, batch_tokens // windows.width)
    nats, count = 0.0, 0
    with torch.inference_mode():
        for first in range(0, len(which), rows):
            numbers = which[first : first + rows]
            batch, positions = windows.batch(tokens, numbers)
            hidden = model.decode(batch.ids.to(device)).flatten(0, 1).index_select(0, positions.to(device))
            labels = batch.labels.flatten()[positions].to(device)
            _, nll = cross_entropy_sums(hidden, model.output.weight, model.output.bias, labels)
            nats += float(nll)
            count += len(positions)
            advance(len(numbers))
    return nats, count
