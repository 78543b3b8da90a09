"""Diverse beam search (Vijayakumar et al. 2018): outputs that differ, not one output in many spellings.

Shapes: B sentences, R rows, V vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from manyheads.search.beam import beam_search
from manyheads.search.interface import Hypothesis, Stepper

__all__ = ["diverse_beam_search"]

Taken = list[Counter[tuple[int, int]]]  # a step's entry: how many prefixes of (sentence) took (token)


def diverse_beam_search(
    start: Callable[[], Stepper],
    *,
    groups: int,
    strength: float,
    beam_size: int,
    n_best: int,
    length_penalty: float,
    max_lengths: Tensor,
    bos: int,
    eos: int,
    forbidden: Sequence[int] = (),
) -> list[list[Hypothesis]]:
    """Search with several beams one after the other, each led away from the steps of those before it.

    For a later group, the log-probability of a token is lowered by `strength` for every open prefix of an earlier
    group that took this token at the same step (Hamming diversity, section 4 of the paper). The end symbol is
    never lowered. The first group is a plain beam search.

    Args:
        start: makes a stepper with one row a sentence and an empty prefix, once a group.
        groups: how many; each has a beam of beam_size / groups.
        strength: in nats.
        beam_size: of all groups together.
        n_best: outputs wanted of each sentence, at most beam_size.
        length_penalty: exponent of the length in a score.
        max_lengths: the longest output of each sentence in tokens (B,), as for `beam_search`.
        bos: what the first step is given.
        eos: the end symbol.
        forbidden: ids that never come out.

    Returns:
        The outputs of all groups, best first by the scores of the model itself, without penalties; an output that
        several groups found comes once, so that there may be fewer than n_best.
    """
    taken: Taken = []
    outputs: list[dict[tuple[tuple[int, ...], bool], Hypothesis]] = [{} for _ in max_lengths]
    for _ in range(groups):
        stepper = ApartStepper(start(), taken, strength, len(max_lengths), eos)
        found = beam_search(
            stepper,
            beam_size=beam_size // groups,
            n_best=beam_size // groups,
            length_penalty=length_penalty,
            max_lengths=max_lengths,
            bos=bos,
            eos=eos,
            forbidden=forbidden,
        )
        for sentence, hypotheses in enumerate(found):
            for one in hypotheses:
                own = without_penalty(one, sentence, taken, strength, length_penalty)
                outputs[sentence].setdefault((own.tokens, own.ended), own)
        taken = merged(taken, stepper.own)
    return [sorted(found.values(), key=lambda one: -one.score)[:n_best] for found in outputs]


class ApartStepper:
    """A stepper that finds tokens less likely that others took at the same step, and notes what its rows take."""

    def __init__(self, stepper: Stepper, taken: Taken, strength: float, sentences: int, eos: int) -> None:
        """Around a stepper that holds one row a sentence, without a past."""
        self.stepper = stepper
        self.penalties = [by_sentence(counts, strength) for counts in taken]
        self.sentences = list(range(sentences))
        self.eos = eos
        self.own: Taken = []
        self.place = -1

    def step(self, tokens: Tensor) -> Tensor:
        """As `Stepper.step`."""
        log_probs = self.stepper.step(tokens)
        if self.place >= 0:
            # A row that only fills the beam is given the end symbol; it took nothing.
            pairs = zip(self.sentences, tokens.tolist(), strict=True)
            self.own.append(Counter(pair for pair in pairs if pair[1] != self.eos))
        self.place += 1
        if self.place >= len(self.penalties):
            return log_probs
        penalties = self.penalties[self.place]
        lowered = [
            (row, token, penalty)
            for row, sentence in enumerate(self.sentences)
            for token, penalty in penalties.get(sentence, ())
        ]
        if not lowered:
            return log_probs
        rows, ids, values = zip(*lowered, strict=True)
        apart = log_probs.clone()
        apart[list(rows), list(ids)] -= torch.tensor(values, dtype=apart.dtype, device=apart.device)
        return apart

    def select(self, rows: Tensor) -> None:
        """As `Stepper.select`."""
        self.stepper.select(rows)
        self.sentences = [self.sentences[row] for row in rows.tolist()]


def by_sentence(counts: Counter[tuple[int, int]], strength: float) -> dict[int, list[tuple[int, float]]]:
    """For each sentence the tokens taken, and by how much they are lowered."""
    penalties: dict[int, list[tuple[int, float]]] = {}
    for (sentence, token), count in counts.items():
        penalties.setdefault(sentence, []).append((token, strength * count))
    return penalties


def merged(taken: Taken, own: Taken) -> Taken:
    """What two of them took together, step by step."""
    length = max(len(taken), len(own))
    return [
        Counter(taken[place] if place < len(taken) else ()) + Counter(own[place] if place < len(own) else ())
        for place in range(length)
    ]


def without_penalty(
    output: Hypothesis, sentence: int, taken: Taken, strength: float, length_penalty: float
) -> Hypothesis:
    """The output with the scores that the model gave."""
    scores = list(output.token_scores)
    for place, token in enumerate(output.tokens[: len(taken)]):
        scores[place] += strength * taken[place][sentence, token]
    total = sum(scores)
    return replace(
        output,
        log_probability=total,
        score=total / max(len(scores), 1) ** length_penalty,
        token_scores=tuple(scores),
    )
