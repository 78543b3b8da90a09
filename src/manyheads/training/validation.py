"""The loss of a translation model on validation text; it does not depend on how the text is batched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from manyheads.data.batch import Ids, make_batch
from manyheads.data.sampler import fixed_batches
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.training.objective import translation_loss
from manyheads.training.precision import Precision, autocast

__all__ = ["corpus_nll"]


def corpus_nll(
    model: EncoderDecoder,
    sources: Sequence[Ids],
    targets: Sequence[Ids],
    *,
    bos: int,
    eos: int,
    precision: Precision = "fp32",
    batch_tokens: int = 4_096,
) -> tuple[float, int]:
    """Return the negative log-likelihood of all targets given their sources, in nats, and their number of tokens.

    End marks are counted. Perplexity is exp(nats / tokens). The model is used as it is: call `eval` before.
    """
    device = next(model.parameters()).device
    lengths = np.array([max(len(s), len(t)) + 1 for s, t in zip(sources, targets, strict=True)], dtype=np.int64)
    nats, tokens = 0.0, 0
    with torch.inference_mode(), autocast(device, precision):
        for pairs in fixed_batches(lengths, batch_tokens):
            rows = [sources[pair] for pair in pairs], [targets[pair] for pair in pairs]
            batch = make_batch(*rows, pad=model.pad, bos=bos, eos=eos)
            _, nll = translation_loss(model, batch.to(device), smoothing=0.0)
            nats += float(nll)
            tokens += batch.target_tokens
    return nats, tokens
