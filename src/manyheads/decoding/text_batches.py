"""Texts of an encoder in batches through a model in torch.

Shapes: N texts, B batch, S length, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.data.batches import fixed_batches
from manyheads.inference.loading import evaluating
from manyheads.model.encoder_only import EncoderOnly, TextClassifier
from manyheads.reports import Advance, no_advance
from manyheads.tensors.examples import make_texts
from manyheads.tensors.pairs import Ids
from manyheads.text.tokenizer import BOS, EOS

_BATCH_TOKENS = 8_192  # tokens of a batch, padding included


def compute_batches(
    model: EncoderOnly,
    rows: Sequence[Ids],
    width: int,
    compute: Callable[[Tensor, Tensor | None], Tensor],
    advance: Advance = no_advance,
) -> NDArray[np.float64]:
    """Apply a function to N texts in batches of similar length; return its results (N, width).

    Args:
        model: the model that `compute` calls; in evaluation mode during the call.
        rows: ids of each text, without begin and end marks.
        width: number of results for each text.
        compute: ids (B, S), and token types (B, S) or None -> (B, width).
        advance: called with the number of texts of each batch.
    """
    device = next(model.parameters()).device
    results = np.zeros((len(rows), width), np.float64)
    lengths = np.array([len(row) + 2 for row in rows], np.int64)
    with evaluating(model), torch.inference_mode():
        for indices in fixed_batches(lengths, _BATCH_TOKENS):
            ids, types = make_texts(
                [rows[index] for index in indices],
                pad=model.pad,
                bos=BOS,
                eos=EOS,
                with_types=model.config.token_types > 1,
            )
            batch = compute(ids.to(device), None if types is None else types.to(device))
            results[indices] = batch.cpu().double().numpy()
            advance(len(indices))
    return results


def class_probabilities(
    model: TextClassifier, rows: Sequence[Ids], advance: Advance = no_advance
) -> NDArray[np.float64]:
    """Return class probabilities (N, C) of N texts, given as ids without begin and end marks.

    The model is in evaluation mode during the call. A batch holds texts of similar length. `advance` is called with
    the number of texts of each batch.
    """
    logits = compute_batches(model, rows, model.output.out_features, model, advance)
    return torch.from_numpy(logits).softmax(-1).numpy()
