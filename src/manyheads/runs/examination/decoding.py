"""Decoding in several ways that must agree (invariants D, E, M).

Shapes: B sentences, T target length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from manyheads.config.schema import Config
from manyheads.data.batch import pad_rows
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.doctor.after.search import CLOSE, Decoding
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.beam import beam_search
from manyheads.search.greedy import greedy_search
from manyheads.search.interface import Hypothesis
from manyheads.search.options import SearchOptions
from manyheads.tasks.options import plain_search
from manyheads.tasks.translation import Translator
from manyheads.text.tokenizer import BOS, EOS, PAD

__all__ = ["examine_decoding", "greedy", "token_losses"]

SUPPRESSED_IDS = (PAD, BOS)
Rows = Sequence[Sequence[int]]


def examine_decoding(translator: Translator, sources: Sequence[str]) -> Decoding:
    """Decode some sentences together, alone, reversed, greedily, with beams, and by teacher forcing."""
    model, config = translator.model, translator.config
    rows = [translator.shortened(row) for row in translator.tokenizers.source.encode(sources)]
    asked = plain_search(config.search)
    together = best(translator, rows, asked)
    alone = [best(translator, [row], asked)[0] for row in rows]
    reversed_order = best(translator, rows[::-1], replace(asked, batch_tokens=1))[::-1]
    different = [
        place
        for place, one in enumerate(together)
        if differs(one, alone[place]) or differs(one, reversed_order[place])
    ]
    one_by_one = greedy(model, rows, config)
    beam_of_one = [found[0] for found in search_beam(model, rows, config, 1)]
    unlike = [place for place, (a, b) in enumerate(zip(one_by_one, beam_of_one, strict=True)) if differs(a, b)]
    examples = [sources[place] for place in (*different, *unlike)]
    beams = [found[0] for found in search_beam(model, rows, config, config.search.beam_size)]
    return Decoding(
        sentences=len(rows),
        others_beside=len(different),
        cache=cache_gap(model, rows, [one.tokens for one in one_by_one]),
        beam_one=len(unlike),
        score=score_gap(model, rows, beams),
        example=examples[0] if examples else "",
    )


def best(translator: Translator, rows: Rows, asked: SearchOptions) -> list[Hypothesis]:
    """The best output of each row, by the run's own engine."""
    return [found[0] for found in translator.engine.search(rows, asked)]


def differs(one: Hypothesis, other: Hypothesis) -> bool:
    """Whether two outputs are not the same; of two with the same probability either may come."""
    tie = abs(one.log_probability - other.log_probability) < 0.1 * CLOSE
    return one.tokens != other.tokens and not tie


def limits(rows: Rows, config: Config, model: EncoderDecoder) -> Tensor:
    """The longest output of each row (B,)."""
    return torch.tensor(plain_search(config.search).longest(rows, model.config.max_positions - 1))


def greedy(model: EncoderDecoder, rows: Rows, config: Config) -> list[Hypothesis]:
    """Greedy outputs."""
    stepper = EncoderDecoderStepper(model, pad_rows(rows, PAD, last=EOS))
    with torch.no_grad():
        return greedy_search(
            stepper, max_lengths=limits(rows, config, model), bos=BOS, eos=EOS, forbidden=SUPPRESSED_IDS
        )


def search_beam(model: EncoderDecoder, rows: Rows, config: Config, beam: int) -> list[list[Hypothesis]]:
    """Outputs of a beam."""
    return beam_search(
        EncoderDecoderStepper(model, pad_rows(rows, PAD, last=EOS)),
        beam_size=beam,
        length_penalty=config.search.length_penalty,
        max_lengths=limits(rows, config, model),
        bos=BOS,
        eos=EOS,
        forbidden=SUPPRESSED_IDS,
    )


@torch.no_grad()
def cache_gap(model: EncoderDecoder, rows: Rows, outputs: Rows) -> float:
    """Largest difference of the log-probabilities of outputs, step by step from all at once, in nats."""
    source = pad_rows(rows, PAD, last=EOS)
    target = pad_rows([[BOS, *row] for row in outputs], PAD)
    at_once = model(source, target).float().log_softmax(-1)
    stepper, largest = EncoderDecoderStepper(model, source), 0.0
    for place in range(target.size(1)):
        step = stepper.step(target[:, place])
        real = target[:, place] != PAD
        likely = at_once[real, place].topk(min(20, step.size(1)))
        gap = (step[real].gather(1, likely.indices) - likely.values).abs().max()
        largest = max(largest, float(gap))
    return largest


def score_gap(model: EncoderDecoder, rows: Rows, found: Sequence[Hypothesis]) -> float:
    """Largest difference of outputs' log-probabilities from teacher-forced ones, in nats."""
    losses = token_losses(model, rows, [one.tokens for one in found])
    forced = [-sum(row if one.ended else row[:-1]) for row, one in zip(losses, found, strict=True)]
    return max(abs(one.log_probability - right) for one, right in zip(found, forced, strict=True))


@torch.no_grad()
def token_losses(model: EncoderDecoder, sources: Rows, targets: Rows) -> list[list[float]]:
    """Negative log-likelihood of each target token and of the end mark, in nats."""
    logits = model(pad_rows(sources, PAD, last=EOS), pad_rows([[BOS, *row] for row in targets], PAD))
    right = pad_rows([[*row, EOS] for row in targets], EOS)
    found = -logits.float().log_softmax(-1).gather(2, right[:, :, None])[:, :, 0]
    return [row[: len(target) + 1].tolist() for row, target in zip(found, targets, strict=True)]
