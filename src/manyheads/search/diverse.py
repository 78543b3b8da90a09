"""Diverse beam search (Vijayakumar et al. 2018): groups of beams that are penalised for choosing equal tokens.

Shapes: B sentences, R rows, V vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest

import torch
from torch import Tensor

from manyheads.search.beam import beam_search
from manyheads.search.interface import Hypothesis, Stepper, best_outputs, with_scores
from manyheads.search.parameters import SearchParameters

__all__ = ["diverse_beam_search"]

# One counter a step: (sentence, token) -> how many open prefixes of the sentence chose the token at that step.
TokenCounts = list[Counter[tuple[int, int]]]


def diverse_beam_search(
    start: Callable[[], Stepper], parameters: SearchParameters, *, groups: int, strength: float
) -> list[list[Hypothesis]]:
    """Search with several groups of beams, one after the other; each is penalised for the tokens of earlier groups.

    In a later group, the log-probability of a token is lowered by `strength` for every open prefix of an earlier
    group that chose this token at the same step (Hamming diversity, section 4 of the paper). The end symbol is
    never lowered. The first group is a plain beam search.

    Args:
        start: returns a new stepper with one row a sentence and an empty prefix; called once a group.
        parameters: the parameters of the search; `beam_size` is the size of all groups together.
        groups: number of groups; each has a beam of beam_size / groups.
        strength: penalty in nats.

    Returns:
        The outputs of all groups, best first by the model's own scores, without penalties. An output that several
        groups found is returned once, so that there may be fewer than n_best.
    """
    counts: TokenCounts = []
    outputs: list[dict[tuple[tuple[int, ...], bool], Hypothesis]] = [{} for _ in parameters.max_lengths]
    size = parameters.beam_size // groups
    for _ in range(groups):
        stepper = DiversityStepper(start(), counts, strength, len(outputs), parameters.eos)
        group = beam_search(stepper, replace(parameters, beam_size=size, n_best=size))
        for sentence, hypotheses in enumerate(group):
            for hypothesis in hypotheses:
                output = remove_penalty(hypothesis, sentence, counts, strength, parameters.length_penalty)
                outputs[sentence].setdefault((output.tokens, output.ended), output)
        counts = add_counts(counts, stepper.counts)
    return [best_outputs(unique.values(), parameters.n_best) for unique in outputs]


class DiversityStepper:
    """A wrapper around a stepper that penalises the tokens of earlier groups, and counts the tokens of its rows.

    Attributes:
        counts: the tokens that its rows have chosen.
    """

    def __init__(self, stepper: Stepper, earlier: TokenCounts, strength: float, sentences: int, eos: int) -> None:
        """Wrap a stepper that holds one row a sentence; `earlier` are the counts of the groups before."""
        self.stepper = stepper
        self.penalties = [penalties_by_sentence(counts, strength) for counts in earlier]
        self.sentences = list(range(sentences))  # the sentence of each row
        self.eos = eos
        self.counts: TokenCounts = []
        self.num_tokens = -1  # tokens appended after the begin symbol

    def step(self, tokens: Tensor) -> Tensor:
        """See `Stepper.step`."""
        log_probs = self.stepper.step(tokens)
        if self.num_tokens >= 0:
            # The search passes the end symbol to a row that only fills the beam; it does not count.
            pairs = zip(self.sentences, tokens.tolist(), strict=True)
            self.counts.append(Counter(pair for pair in pairs if pair[1] != self.eos))
        self.num_tokens += 1
        if self.num_tokens >= len(self.penalties):
            return log_probs
        penalties = self.penalties[self.num_tokens]
        lowered = [
            (row, token, penalty)
            for row, sentence in enumerate(self.sentences)
            for token, penalty in penalties.get(sentence, ())
        ]
        if not lowered:
            return log_probs
        rows, ids, values = zip(*lowered, strict=True)
        penalised = log_probs.clone()
        penalised[list(rows), list(ids)] -= torch.tensor(values, dtype=penalised.dtype, device=penalised.device)
        return penalised

    def select(self, rows: Tensor) -> None:
        """See `Stepper.select`."""
        self.stepper.select(rows)
        self.sentences = [self.sentences[row] for row in rows.tolist()]


def penalties_by_sentence(counts: Counter[tuple[int, int]], strength: float) -> dict[int, list[tuple[int, float]]]:
    """Return for each sentence its penalised tokens and their penalties in nats."""
    penalties: dict[int, list[tuple[int, float]]] = {}
    for (sentence, token), count in counts.items():
        penalties.setdefault(sentence, []).append((token, strength * count))
    return penalties


def add_counts(first: TokenCounts, second: TokenCounts) -> TokenCounts:
    """Add two lists of counters step by step; the shorter list counts nothing after its end."""
    return [left + right for left, right in zip_longest(first, second, fillvalue=Counter[tuple[int, int]]())]


def remove_penalty(
    output: Hypothesis, sentence: int, counts: TokenCounts, strength: float, length_penalty: float
) -> Hypothesis:
    """Return the output with the model's own scores."""
    scores = list(output.token_scores)
    for step, token in enumerate(output.tokens[: len(counts)]):
        scores[step] += strength * counts[step][sentence, token]
    return with_scores(output, scores, length_penalty)
