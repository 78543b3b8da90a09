"""What a second pass over finished outputs tells: where the model looked, what else it thought of.

The outputs are given to the model whole (teacher forcing), so that the search itself stays as fast as it is.
Shapes: B outputs, S source length, T target length, both with their mark, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from manyheads.data.batch import pad_rows
from manyheads.data.sampler import fixed_batches
from manyheads.inspection.capture import recording
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.candidates import best_tokens
from manyheads.search.ensemble import Combine
from manyheads.search.interface import Hypothesis
from manyheads.search.options import SearchOptions
from manyheads.text.tokenizer import BOS, EOS, PAD

__all__ = ["coverage_term", "review"]

BATCH_TOKENS = 2_048  # source and target tokens read together
NEVER_LOOKED_AT = 1e-9  # least attention that counts, so that a score stays finite


def review(
    models: Sequence[EncoderDecoder],
    combine: Combine,
    rows: Sequence[Sequence[int]],
    found: list[list[Hypothesis]],
    options: SearchOptions,
) -> list[list[Hypothesis]]:
    """Add attention and rivals to the outputs when the options ask for them; rank them anew by coverage.

    Args:
        models: in evaluation mode.
        combine: makes one distribution of theirs.
        rows: sources as ids without marks.
        found: the outputs of each.
        options: `coverage_penalty`, `rivals`, `attention` and `attention_layer` are used.

    Returns:
        The outputs, best first again where a coverage penalty was asked for and none were drawn by chance.
    """
    if not (options.coverage_penalty or options.rivals or options.attention):
        return found
    pairs = [(place, rank) for place, hypotheses in enumerate(found) for rank in range(len(hypotheses))]
    lengths = np.array([len(rows[place]) + len(found[place][rank].tokens) + 2 for place, rank in pairs])
    reviewed = [list(hypotheses) for hypotheses in found]
    for batch in fixed_batches(lengths, BATCH_TOKENS):
        chosen = [pairs[number] for number in batch]
        outputs = [found[place][rank] for place, rank in chosen]
        looked, rivals = read(models, combine, [rows[place] for place, _ in chosen], outputs, options)
        for (place, rank), output, attention, others in zip(chosen, outputs, looked, rivals, strict=True):
            reviewed[place][rank] = replace(
                output,
                score=output.score + options.coverage_penalty * coverage_term(attention),
                rivals=others,
                attention=tuple(map(tuple, attention.tolist())) if options.attention else None,
            )
    if options.coverage_penalty and options.sampling is None:
        return [sorted(hypotheses, key=lambda one: -one.score) for hypotheses in reviewed]
    return reviewed


def read(
    models: Sequence[EncoderDecoder],
    combine: Combine,
    rows: Sequence[Sequence[int]],
    outputs: Sequence[Hypothesis],
    options: SearchOptions,
) -> tuple[list[Tensor], list[tuple[tuple[tuple[int, float], ...], ...] | None]]:
    """Read outputs beside their sources: the attention (T, S) of each, and the rivals of its tokens."""
    device = next(models[0].parameters()).device
    source = pad_rows(rows, PAD, last=EOS).to(device)
    target = pad_rows([output.tokens for output in outputs], PAD, first=BOS).to(device)
    looked, scores = [], []
    for model in models:
        with recording([model.decoder_layers[options.attention_layer].cross_attention]) as weights:
            hidden = model.decode(target, *model.encode(source))
        looked.append(weights[0].float().mean(1))  # (B, T, S)
        if options.rivals:
            scores.append(functional.log_softmax(model.project(hidden).float(), -1))
    attention = torch.stack(looked).mean(0).cpu()
    trimmed = [
        attention[place, : len(output.token_scores), : len(row) + 1]
        for place, (row, output) in enumerate(zip(rows, outputs, strict=True))
    ]
    if not options.rivals:
        return trimmed, [None] * len(outputs)
    log_probs = combine(scores)
    return trimmed, [
        rivals_of(output, log_probs[place, : len(output.token_scores)], options.rivals)
        for place, output in enumerate(outputs)
    ]


def rivals_of(output: Hypothesis, log_probs: Tensor, count: int) -> tuple[tuple[tuple[int, float], ...], ...]:
    """The likeliest other tokens beside each token of an output: log-probabilities (T, V) -> T times `count`."""
    tokens = (*output.tokens, EOS)[: len(output.token_scores)]
    others = log_probs.scatter(1, torch.tensor(tokens, device=log_probs.device)[:, None], -torch.inf)
    values, ids = best_tokens(others, count, (PAD, BOS))
    return tuple(
        tuple((token, value) for token, value in zip(*beside, strict=True) if value > -math.inf)
        for beside in zip(ids.tolist(), values.tolist(), strict=True)
    )


def coverage_term(attention: Tensor) -> float:
    """How much of the source was looked at (Wu et al. 2016, equation 14 without its factor beta): 0 if all.

    The sum over source tokens of log(min(attention it got from all target tokens, 1)); the source's end mark,
    which is the last column, does not count: (T, S) -> a number <= 0.
    """
    got = attention[:, :-1].double().sum(0).clamp(NEVER_LOOKED_AT, 1.0)
    return float(got.log().sum())
