"""Texts of an encoder: as token ids, and in batches through a model.

Shapes: N texts, B batch, S length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.config.schema import Config
from manyheads.data.batch import Ids
from manyheads.data.examples import make_texts
from manyheads.data.labelled import split_texts
from manyheads.data.sampler import fixed_batches
from manyheads.data.store import Encode
from manyheads.model.encoder_only import EncoderOnly
from manyheads.model.positions import position_limit
from manyheads.tasks.loading import evaluating
from manyheads.text.normalize import clean
from manyheads.text.tokenizer import BOS, EOS
from manyheads.training.log import Advance, no_advance

_BATCH_TOKENS = 8_192  # tokens of a batch, padding included


def encode_texts(encode: Encode, joined: Sequence[str], marks: int) -> list[list[int]]:
    """Encode texts to ids without begin and end marks around them.

    Args:
        encode: method of a tokenizer.
        joined: texts; the two texts of a pair are joined by a tab.
        marks: number of end marks between the two texts of a pair.
    """
    parts = [split_texts(text) for text in joined]
    ids = iter(encode([clean(text) for texts in parts for text in texts]))
    return [_join_ids((next(ids) for _ in texts), marks) for texts in parts]


def _join_ids(rows: Iterable[list[int]], marks: int) -> list[int]:
    first, *others = rows
    return [*first, *(token for other in others for token in (*[EOS] * marks, *other))]


def longest_text(config: Config) -> int:
    """Return the maximum number of ids of a text without begin and end marks; longer texts are cut."""
    return min(config.data.max_length, position_limit(config.model) - 2)


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
