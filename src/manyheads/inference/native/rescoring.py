"""A second pass over finished outputs in C: attention and alternative tokens, as `decoding.rescoring` with torch.

Shapes: T tokens of an output with its end mark, S source length with its end mark, L layers, H heads, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from manyheads.inference.batching import SPECIAL_IDS
from manyheads.inference.native.model import NativeModel
from manyheads.inference.native.sequence import NativeSequence
from manyheads.inference.threads import map_in_threads
from manyheads.search.arrays import FloatArray, best_tokens, log_softmax
from manyheads.search.interface import Hypothesis
from manyheads.search.options import SearchOptions
from manyheads.text.tokenizer import BOS, EOS


def review(
    model: NativeModel,
    rows: Sequence[Sequence[int]],
    outputs: list[list[Hypothesis]],
    options: SearchOptions,
    workers: int,
) -> list[list[Hypothesis]]:
    """Add attention and alternatives to the outputs, as the options request, in at most so many worker threads."""
    if not (options.alternatives or options.alignment):
        return outputs

    def review_row(number: int) -> list[Hypothesis]:
        memory = [array[0] for array in model.read(model.sources([rows[number]]))]
        length = len(rows[number]) + 1
        return [_review_output(model, memory, length, output, options) for output in outputs[number]]

    return map_in_threads(review_row, range(len(rows)), workers)


def _review_output(
    model: NativeModel,
    memory: Sequence[NDArray[np.float32]],
    source_length: int,
    output: Hypothesis,
    options: SearchOptions,
) -> Hypothesis:
    count, length = len(output.token_scores), memory[0].shape[1]
    sequence = NativeSequence(model, count, memory)
    shape = (count, model.config.num_decoder_layers, model.config.num_heads, length)
    attention = np.empty(shape, dtype=np.float32) if options.alignment else None
    logits = np.empty((count, model.vocabulary), dtype=np.float32) if options.alternatives else None
    sequence.append([BOS, *output.tokens][:count], logits, attention)
    if logits is not None:
        output = replace(
            output, alternatives=likeliest_alternatives(output, log_softmax(logits), options.alternatives)
        )
    if attention is not None:
        weights = attention[:, options.attention_layer].mean(1)  # (T, S)
        weights = np.pad(weights, ((0, 0), (0, source_length - length)))  # an end mark that the model does not read
        output = replace(output, attention=tuple(map(tuple, weights.tolist())))
    return output


def likeliest_alternatives(
    output: Hypothesis, rows: FloatArray, count: int
) -> tuple[tuple[tuple[int, float], ...], ...]:
    """Return the likeliest other tokens of each token: log-probabilities (T, V) -> T times `count` pairs."""
    tokens = (*output.tokens, EOS)[: len(output.token_scores)]
    alternatives = []
    for token, log_probs in zip(tokens, rows, strict=True):
        ids = best_tokens(log_probs, count, (token, *SPECIAL_IDS.suppressed))
        alternatives.append(tuple((int(token), float(log_probs[token])) for token in ids))
    return tuple(alternatives)
