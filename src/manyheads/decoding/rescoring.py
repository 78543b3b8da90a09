"""A second pass over finished outputs: attention and alternative tokens.

The pass uses teacher forcing, so that the search does not have to compute these values.
Shapes: B outputs, S source length and T target length, both with their end mark, V vocabulary.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from manyheads.data.batches import fixed_batches
from manyheads.decoding.ensemble import mean_probability
from manyheads.inference.native.rescoring import likeliest_alternatives
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.interface import Hypothesis
from manyheads.search.options import SearchOptions
from manyheads.tensors.capture import recording
from manyheads.tensors.pairs import pad_rows
from manyheads.text.tokenizer import BOS, EOS, PAD

_RECORDING = threading.Lock()  # attention is recorded in the model's own modules: one pass at a time
_BATCH_TOKENS = 2_048  # source and target tokens of a batch


def review(
    models: Sequence[EncoderDecoder],
    rows: Sequence[Sequence[int]],
    outputs: list[list[Hypothesis]],
    options: SearchOptions,
) -> list[list[Hypothesis]]:
    """Add attention and alternatives to the outputs, as the options request, by models in evaluation mode."""
    if not (options.alternatives or options.alignment):
        return outputs
    pairs = [(row, rank) for row, hypotheses in enumerate(outputs) for rank in range(len(hypotheses))]
    lengths = np.array([len(rows[row]) + len(outputs[row][rank].tokens) + 2 for row, rank in pairs])
    reviewed = [list(hypotheses) for hypotheses in outputs]
    for batch in fixed_batches(lengths, _BATCH_TOKENS):
        batch_pairs = [pairs[number] for number in batch]
        batch_outputs = [outputs[row][rank] for row, rank in batch_pairs]
        attentions, alternatives = _teacher_force(
            models, [rows[row] for row, _ in batch_pairs], batch_outputs, options
        )
        for (row, rank), output, attention, token_alternatives in zip(
            batch_pairs, batch_outputs, attentions, alternatives, strict=True
        ):
            reviewed[row][rank] = replace(
                output,
                alternatives=token_alternatives,
                attention=tuple(map(tuple, attention.tolist())) if options.alignment else None,
            )
    return reviewed


def _teacher_force(
    models: Sequence[EncoderDecoder],
    rows: Sequence[Sequence[int]],
    outputs: Sequence[Hypothesis],
    options: SearchOptions,
) -> tuple[list[Tensor], list[tuple[tuple[tuple[int, float], ...], ...] | None]]:
    """Feed the outputs to the models; return attention (T, S) and alternatives of the tokens of each output."""
    device = next(models[0].parameters()).device
    source = pad_rows(rows, PAD, last=EOS).to(device)
    target = pad_rows([output.tokens for output in outputs], PAD, first=BOS).to(device)
    attentions, scores = [], []
    for model in models:
        with _RECORDING, recording([model.decoder_layers[options.attention_layer].cross_attention]) as weights:
            hidden = model.decode(target, *model.encode(source))
        attentions.append(weights[0].float().mean(1))  # (B, T, S)
        if options.alternatives:
            scores.append(functional.log_softmax(model.output(hidden).float(), -1))
    attention = torch.stack(attentions).mean(0).cpu()
    trimmed = [
        attention[index, : len(output.token_scores), : len(row) + 1]
        for index, (row, output) in enumerate(zip(rows, outputs, strict=True))
    ]
    if not options.alternatives:
        return trimmed, [None] * len(outputs)
    log_probs = mean_probability(scores).cpu().double().numpy()
    return trimmed, [
        likeliest_alternatives(output, log_probs[index, : len(output.token_scores)], options.alternatives)
        for index, output in enumerate(outputs)
    ]
