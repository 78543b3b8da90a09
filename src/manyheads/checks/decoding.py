"""Decoding in several ways that must agree (invariants D, E and M), and the first token of a target (invariant F).

Shapes: B sentences, T target length, V vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bitext.letters import has_text
from manyheads.checks.catalogue import run_finding
from manyheads.checks.subjects import TrainedLanguageModel, TrainedTranslator
from manyheads.checks.tokens import entropy
from manyheads.decoding.beam import beam_search
from manyheads.decoding.greedy import greedy_search
from manyheads.decoding.language_model import DecoderOnlyStepper
from manyheads.decoding.stepper import EncoderDecoderStepper
from manyheads.inference.batching import SPECIAL_IDS
from manyheads.model.encoder_decoder import EncoderDecoder
from manyheads.search.interface import Hypothesis
from manyheads.tensors.pairs import pad_rows
from manyheads.text.tokenizer import BOS, EOS, PAD
from transformer_doctor.catalogue import model_finding
from transformer_doctor.model_adapter import device_of
from transformer_doctor.report import Finding
from transformer_doctor.tolerances import SAME_NATS, TIE

_DECODED = 16  # validation sentences
_MEMORIZED = 32  # training pairs whose first token is compared
# The loss of a first token is at most about the entropy of its frequencies; one that was never a label costs more
# than a blind guess, as all other tokens have been preferred to it.
_FIRST_MARGIN, _FIRST_FACTOR = 1.0, 2.0
_LIKELIEST = 20  # tokens whose log-probabilities are compared at each step
_TEXTS, _STEPS = 6, 4  # texts that a language model continues, and by how many tokens
_Rows = Sequence[Sequence[int]]


@dataclass(frozen=True)
class _Decoding:
    """Differences between several ways to decode the same sentences.

    Attributes:
        sentences: number of sentences.
        others_beside: number of outputs that change when sentences are decoded alone, or in another order (D).
        cache: largest difference of a token's log-probability, step by step, from teacher forcing, in nats (E).
        beam_one: number of greedy outputs that differ from those with a beam of 1 (M).
        score: largest difference of an output's log-probability from the teacher-forced one, in nats (M).
        example: a source whose output differs, for the evidence.
    """

    sentences: int
    others_beside: int = 0
    cache: float = 0.0
    beam_one: int = 0
    score: float = 0.0
    example: str = ""


def check_decoding(trained: TrainedTranslator) -> Iterator[Finding]:
    """Decode some validation sentences in several ways."""
    pairs = trained.read_pairs
    spread = pairs[:: max(1, len(pairs) // _DECODED)][:_DECODED]
    return _decoding_findings(_compare_decoding(trained, [pair.source for pair in spread]))


def _compare_decoding(trained: TrainedTranslator, sources: Sequence[str]) -> _Decoding:
    """Decode some sentences together, alone, reversed, greedily, with beams, and by teacher forcing."""
    model, options = trained.model, trained.options
    rows = trained.encode_sources(sources)
    together = _best(trained.engine.search(rows, options))
    alone = [_best(trained.engine.search([row], options))[0] for row in rows]
    reversed_order = _best(trained.engine.search(rows[::-1], replace(options, batch_tokens=1)))[::-1]
    outputs = zip(together, alone, reversed_order, strict=True)
    batch_dependent = [
        i for i, (output, *others) in enumerate(outputs) if any(_differ(output, other) for other in others)
    ]
    greedy_outputs = _greedy(trained, rows)
    beam_of_one = _search_beam(trained, rows, 1)
    beam_dependent = [i for i, pair in enumerate(zip(greedy_outputs, beam_of_one, strict=True)) if _differ(*pair)]
    examples = [sources[index] for index in (*batch_dependent, *beam_dependent)]
    return _Decoding(
        sentences=len(rows),
        others_beside=len(batch_dependent),
        cache=_cache_gap(model, rows, [output.tokens for output in greedy_outputs]),
        beam_one=len(beam_dependent),
        score=_score_gap(model, rows, _search_beam(trained, rows, options.beam_size)),
        example=examples[0] if examples else "",
    )


def _best(outputs: Sequence[Sequence[Hypothesis]]) -> list[Hypothesis]:
    return [hypotheses[0] for hypotheses in outputs]


def _differ(output: Hypothesis, other: Hypothesis) -> bool:
    """Return whether two outputs differ; outputs of equal probability do not, as either may be generated."""
    tie = abs(output.log_probability - other.log_probability) < TIE
    return output.tokens != other.tokens and not tie


def _max_lengths(trained: TrainedTranslator, rows: _Rows) -> Tensor:
    """Return the length limits of the run for the outputs of rows (B,)."""
    limits = trained.options.longest(rows, trained.config.model.max_positions - 1)
    return torch.tensor(limits, device=device_of(trained.model))


def _source_ids(model: EncoderDecoder, rows: _Rows) -> Tensor:
    """Return sources with their end marks as a tensor (B, S) on the device of a model."""
    return pad_rows(rows, PAD, last=EOS).to(device_of(model))


def _target_ids(model: EncoderDecoder, rows: _Rows) -> Tensor:
    """Return decoder inputs, which begin with the begin mark, as a tensor (B, T) on the device of a model."""
    return pad_rows([[BOS, *row] for row in rows], PAD).to(device_of(model))


def _greedy(trained: TrainedTranslator, rows: _Rows) -> list[Hypothesis]:
    stepper = EncoderDecoderStepper(trained.model, _source_ids(trained.model, rows))
    with torch.no_grad():
        return greedy_search(stepper, trained.options, _max_lengths(trained, rows), SPECIAL_IDS)


def _search_beam(trained: TrainedTranslator, rows: _Rows, beam_size: int) -> list[Hypothesis]:
    stepper = EncoderDecoderStepper(trained.model, _source_ids(trained.model, rows))
    options = replace(trained.options, beam_size=beam_size)
    return _best(beam_search(stepper, options, _max_lengths(trained, rows), SPECIAL_IDS))


@torch.no_grad()
def _cache_gap(model: EncoderDecoder, rows: _Rows, outputs: _Rows) -> float:
    """Return the largest difference of outputs' log-probabilities between decoding and teacher forcing, in nats."""
    source, target = _source_ids(model, rows), _target_ids(model, outputs)
    at_once = model(source, target).float().log_softmax(-1)
    stepper, largest = EncoderDecoderStepper(model, source), 0.0
    for position in range(target.size(1)):
        step = stepper.step(target[:, position])
        real = target[:, position] != PAD
        largest = max(largest, _likeliest_gap(step[real], at_once[real, position]))
    return largest


def _likeliest_gap(step: Tensor, expected: Tensor) -> float:
    """Return the largest difference at the likeliest expected tokens, in nats: (..., V), (..., V)."""
    likely = expected.topk(min(_LIKELIEST, expected.size(-1)))
    return float((step.gather(-1, likely.indices) - likely.values).abs().max())


def _score_gap(model: EncoderDecoder, rows: _Rows, outputs: Sequence[Hypothesis]) -> float:
    """Return the largest difference of outputs' log-probabilities from teacher-forced ones, in nats."""
    losses = _token_losses(model, rows, [output.tokens for output in outputs])
    forced = [-sum(row if output.ended else row[:-1]) for row, output in zip(losses, outputs, strict=True)]
    return max(abs(output.log_probability - score) for output, score in zip(outputs, forced, strict=True))


@torch.no_grad()
def _token_losses(model: EncoderDecoder, sources: _Rows, targets: _Rows) -> list[list[float]]:
    """Return the negative log-likelihood of each target token and of the end mark, in nats."""
    logits = model(_source_ids(model, sources), _target_ids(model, targets)).cpu()
    labels = pad_rows([[*row, EOS] for row in targets], EOS)
    losses = -logits.float().log_softmax(-1).gather(2, labels[:, :, None])[:, :, 0]
    return [row[: len(target) + 1].tolist() for row, target in zip(losses, targets, strict=True)]


@torch.no_grad()
def check_steps(trained: TrainedLanguageModel) -> Iterator[Finding]:
    """Compare step-by-step continuations of texts with full forward passes, and batches with single texts."""
    model, half, device = trained.model, max(1, trained.window // 2), device_of(trained.model)
    rows = [trained.tokens[start : start + half].tolist() for start in range(0, half * _TEXTS, half)]
    rows = [row[: len(row) - index] for index, row in enumerate(rows) if len(row) > index + 1]
    largest, differing = 0.0, 0
    stepper = DecoderOnlyStepper(model, rows, trained.window)
    step = stepper.step(torch.tensor([row[-1] for row in rows], device=device))
    for _ in range(min(_STEPS, half)):
        for index, row in enumerate(rows):
            at_once = model(torch.tensor([row], device=device))[0, -1].float().log_softmax(-1)
            gap = _likeliest_gap(step[index], at_once)
            largest = max(largest, gap)
            alone = DecoderOnlyStepper(model, [row], trained.window).step(torch.tensor(row[-1:], device=device))
            differing += int(alone[0].argmax()) != int(step[index].argmax()) and gap > TIE
        tokens = step.argmax(-1)
        rows = [[*row, int(token)] for row, token in zip(rows, tokens, strict=True)]
        step = stepper.step(tokens)
    yield from _decoding_findings(_Decoding(len(rows), others_beside=differing, cache=largest))


def check_first_token(trained: TrainedTranslator) -> Iterator[Finding]:
    """Compare the loss of the first target token of some training pairs with that of the others."""
    pairs = [pair for pair in trained.train if has_text(pair.source)][: 50 * _MEMORIZED]
    by_length = sorted(pairs, key=lambda pair: len(pair.target))[len(pairs) // 4 :]
    sources, targets = trained.encode(by_length[:: max(1, len(pairs) // (2 * _MEMORIZED))][:_MEMORIZED])
    outputs = _greedy(trained, sources)
    starts = Counter(
        row[0] for row in trained.tokenizers.target.encode([pair.target for pair in trained.train]) if row
    )
    correct = sum(list(output.tokens[:1]) == row[:1] for output, row in zip(outputs, targets, strict=True))
    return _first_token_findings(_token_losses(trained.model, sources, targets), entropy(starts.values()), correct)


def _first_token_findings(losses: Sequence[Sequence[float]], frequencies: float, correct: int) -> Iterator[Finding]:
    """Yield a finding unless the first token of training pairs is predicted as well as by its frequencies.

    Args:
        losses: negative log-likelihood of each target token in nats, a row for each pair.
        frequencies: loss of a guess that knows only the frequencies of the first tokens, in nats.
        correct: number of greedy outputs whose first token is correct.
    """
    first = sum(row[0] for row in losses) / len(losses)
    rest = [value for row in losses for value in row[1:]]
    others = sum(rest) / max(1, len(rest))
    if first > frequencies + _FIRST_MARGIN and first > _FIRST_FACTOR * others:
        evidence = (
            f"in training pairs the first target token costs {first:.2f} nats, the others {others:.2f}; "
            f"its frequencies alone give {frequencies:.2f}; {correct} of {len(losses)} greedy outputs begin rightly"
        )
        yield run_finding("first-token-not-learned", evidence)


def _decoding_findings(decoding: _Decoding) -> Iterator[Finding]:
    """Yield findings about neighbours, cache and search."""
    example = f'; such as "{decoding.example}"' if decoding.example else ""
    count = decoding.sentences
    if decoding.others_beside:
        evidence = (
            f"{decoding.others_beside} of {count} sentences have another output alone than with others{example}"
        )
        yield model_finding("depends-on-the-batch", evidence)
    if decoding.cache > SAME_NATS:
        evidence = f"a token's log-probability differs by up to {decoding.cache:.2g} nats from teacher forcing"
        yield model_finding("cache-differs", evidence)
    if decoding.beam_one:
        evidence = f"{decoding.beam_one} of {count} outputs with a beam of 1 are not the greedy ones{example}"
        yield run_finding("beam-one-differs", evidence)
    if decoding.score > SAME_NATS:
        evidence = (
            f"the log-probability of an output differs by up to {decoding.score:.2g} nats from teacher forcing"
        )
        yield run_finding("score-differs", evidence)
