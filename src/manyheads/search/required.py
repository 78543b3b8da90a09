"""Outputs in which given sequences of tokens stand: grid beam search (Hokamp and Liu 2017).

Shapes: B sentences, R rows, K = beam_size, C candidates a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest

import torch
from torch import Tensor

from manyheads.search.candidates import best_tokens, check_limits
from manyheads.search.interface import Hypothesis, Stepper

__all__ = ["grid_beam_search"]

Ids = tuple[int, ...]


@torch.no_grad()
def grid_beam_search(
    stepper: Stepper,
    required: Sequence[Sequence[Ids]],
    *,
    beam_size: int,
    n_best: int,
    length_penalty: float,
    max_lengths: Tensor,
    bos: int,
    eos: int,
    forbidden: Sequence[int] = (),
) -> list[list[Hypothesis]]:
    """As `beam_search`, for outputs that hold every required sequence of their sentence.

    A sentence has a beam for every number of required tokens that a prefix has covered: those of the sequences
    that stand in it, and those of one that has been begun at its end. Each prefix is continued by its most likely
    tokens and by the next tokens of the sequences that it lacks; only one that lacks nothing may end. A prefix
    that has covered a token at every step is in the highest beam there is then, so that one always stays. So every
    output holds all of its sequences, if their tokens and those of a forced prefix fit into max_length together;
    only where other rules forbid that too is an output without them returned, cut.

    A sentence costs as many beams as it has required tokens, and one more.

    Args:
        stepper: holds one row a sentence, with an empty prefix.
        required: for each sentence its sequences of at least one token, each wanted at least once.
        beam_size: K, of each beam.
        n_best: outputs wanted of each sentence, at most beam_size.
        length_penalty: score = log_probability / length ** length_penalty.
        max_lengths: (B,) the longest output in tokens, the end symbol not counted.
        bos: what the first step is given.
        eos: the end symbol.
        forbidden: ids that never come out.

    Returns:
        For each sentence 1 to n_best outputs, best first.
    """
    limits = check_limits(max_lengths).tolist()
    grids = [
        _Grid(tuple(dict.fromkeys(sequences)), limit, beam_size, n_best, length_penalty, eos)
        for sequences, limit in zip(required, limits, strict=True)
    ]
    going = list(range(len(grids)))
    tokens = torch.full((len(grids),), bos)
    while going:
        log_probs = stepper.step(tokens.to(max_lengths.device))
        values, ids = (part.tolist() for part in best_tokens(log_probs, beam_size + 1, forbidden))
        lacking = list(_lacking([grids[number] for number in going]))
        lacking_values = _gather(log_probs, lacking)
        rows: list[int] = []
        first = 0
        for number in going:
            grid = grids[number]
            size = len(grid.open)
            parents = grid.advance(
                values[first : first + size], ids[first : first + size], lacking_values[first : first + size]
            )
            rows += [first + parent for parent in parents]
            first += size
        going = [number for number in going if grids[number].open]
        if going:
            stepper.select(torch.tensor(rows, device=max_lengths.device))
            tokens = torch.tensor([one.tokens[-1] for number in going for one in grids[number].open])
    return [grid.best() for grid in grids]


@dataclass(frozen=True)
class _Prefix:
    """An open hypothesis: its tokens, their log-probabilities, which sequences stand in it (by number)."""

    tokens: Ids = ()
    scores: tuple[float, ...] = ()
    met: frozenset[int] = frozenset()
    total: float = 0.0


class _Grid:
    """The search of one sentence."""

    def __init__(
        self,
        sequences: tuple[Ids, ...],
        limit: int,
        beam_size: int,
        n_best: int,
        length_penalty: float,
        eos: int,
    ) -> None:
        self.sequences = sequences
        self.needed = sum(map(len, sequences))
        self.limit = limit
        self.beam_size = beam_size
        self.n_best = n_best
        self.length_penalty = length_penalty
        self.eos = eos
        self.open = [_Prefix()]
        self.finished: list[Hypothesis] = []

    def begun(self, tokens: Ids, sequence: Ids) -> int:
        """How many tokens at the end of the prefix begin the sequence."""
        longest = min(len(tokens), len(sequence) - 1)
        sizes = range(longest, 0, -1)
        return next((size for size in sizes if tokens[len(tokens) - size :] == sequence[:size]), 0)

    def lacking(self, prefix: _Prefix) -> dict[int, int]:
        """The next token of each sequence that the prefix lacks, and how much of it has been begun."""
        found: dict[int, int] = {}
        for number, sequence in enumerate(self.sequences):
            if number not in prefix.met:
                size = self.begun(prefix.tokens, sequence)
                found[sequence[size]] = max(found.get(sequence[size], 0), size)
        return found

    def covered(self, prefix: _Prefix) -> int:
        """How many required tokens the prefix has covered."""
        whole = sum(len(self.sequences[number]) for number in prefix.met)
        return whole + max(self.lacking(prefix).values(), default=0)

    def grown(self, prefix: _Prefix, token: int, value: float) -> _Prefix:
        """The prefix with one more token."""
        tokens = (*prefix.tokens, token)
        met = {
            number
            for number, sequence in enumerate(self.sequences)
            if tokens[len(tokens) - len(sequence) :] == sequence
        }
        return _Prefix(tokens, (*prefix.scores, value), prefix.met | met, prefix.total + value)

    def advance(
        self, values: list[list[float]], ids: list[list[int]], lacking: list[dict[int, float]]
    ) -> list[int]:
        """Go one token further; returns which of the open prefixes each of the new ones continues.

        Args:
            values: for each open prefix, log-probabilities of its most likely tokens, best first.
            ids: those tokens.
            lacking: for each open prefix, the log-probabilities of the tokens that it lacks.
        """
        if len(self.open[0].tokens) >= self.limit:
            self.close(values, ids)
            self.open = []
            return []
        banks: dict[int, list[tuple[float, int, int, _Prefix | None]]] = {}
        for parent, prefix in enumerate(self.open):
            choices = dict(zip(ids[parent], values[parent], strict=True)) | lacking[parent]
            for token, value in choices.items():
                if value == -torch.inf:
                    continue
                total = prefix.total + value
                if token == self.eos:
                    if len(prefix.met) == len(self.sequences):
                        banks.setdefault(self.needed, []).append((total, -parent, -token, None))
                    continue
                grown = self.grown(prefix, token, value)
                banks.setdefault(self.covered(grown), []).append((total, -parent, -token, grown))
        return self.keep(banks, values, ids)

    def keep(
        self,
        banks: dict[int, list[tuple[float, int, int, _Prefix | None]]],
        values: list[list[float]],
        ids: list[list[int]],
    ) -> list[int]:
        """Finish what ends among the best of the last bank, keep the best of every bank; returns the parents."""
        kept: list[tuple[int, _Prefix]] = []
        for bank in sorted(banks):
            ranked = nlargest(2 * self.beam_size, banks[bank], key=lambda one: one[:3])
            for _, parent, _, _ in [one for one in ranked[: self.beam_size] if one[3] is None]:
                self.finish(self.open[-parent], values[-parent][ids[-parent].index(self.eos)])
            staying = [(-parent, grown) for _, parent, _, grown in ranked if grown is not None]
            kept += staying[: self.beam_size]
        if not kept and not self.finished:
            self.finish(self.nearest(), None)
        self.open = [prefix for _, prefix in kept]
        if self.open and self.settled():
            self.open = []
            return []
        return [parent for parent, _ in kept]

    def close(self, values: list[list[float]], ids: list[list[int]]) -> None:
        """Finish all prefixes that lack nothing, at the length limit."""
        for place, prefix in enumerate(self.open):
            if len(prefix.met) == len(self.sequences):
                value, token = values[place][0], ids[place][0]
                self.finish(prefix, value if token == self.eos and value > -torch.inf else None)
        if not self.finished:
            self.finish(self.nearest(), None)

    def nearest(self) -> _Prefix:
        """The open prefix that has covered most, the likeliest of these."""
        return max(self.open, key=lambda one: (self.covered(one), one.total))

    def finish(self, prefix: _Prefix, end: float | None) -> None:
        """Add an output: ended, with the log-probability of its end symbol, or cut (None)."""
        scores, total = (
            (prefix.scores, prefix.total) if end is None else ((*prefix.scores, end), prefix.total + end)
        )
        score = total / max(len(scores), 1) ** self.length_penalty
        self.finished.append(Hypothesis(prefix.tokens, total, score, scores, ended=end is not None))

    def settled(self) -> bool:
        """Whether the sentence can stop: the two rules of `beam_search`, over the prefixes of all banks."""
        scores = sorted((one.score for one in self.finished), reverse=True)
        best, length = max(one.total for one in self.open), len(self.open[0].tokens)
        usual = len(scores) >= self.beam_size and scores[self.beam_size - 1] >= (best / length**self.length_penalty)
        exact = len(scores) >= self.n_best and scores[self.n_best - 1] >= (
            best / (self.limit + 1) ** self.length_penalty
        )
        return usual or exact

    def best(self) -> list[Hypothesis]:
        """The n_best, best first."""
        return sorted(self.finished, key=lambda one: -one.score)[: self.n_best]


def _lacking(grids: Sequence[_Grid]) -> Iterator[list[int]]:
    """For each row the tokens that it lacks."""
    for grid in grids:
        for prefix in grid.open:
            yield list(grid.lacking(prefix))


def _gather(log_probs: Tensor, wanted: Sequence[Sequence[int]]) -> list[dict[int, float]]:
    """The log-probabilities of some tokens of each row."""
    places = [(row, token) for row, tokens in enumerate(wanted) for token in tokens]
    rows, ids = torch.tensor(places, dtype=torch.int64, device=log_probs.device).reshape(-1, 2).T
    found = iter(log_probs[rows, ids].double().tolist())
    return [{token: next(found) for token in tokens} for tokens in wanted]
