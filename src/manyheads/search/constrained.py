"""Constrained decoding: outputs that contain required token sequences, by grid beam search (Hokamp and Liu 2017).

Shapes: B sentences, R rows, K = beam_size, C candidates a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from manyheads.search.candidates import best_tokens
from manyheads.search.interface import (
    Hypothesis,
    SpecialIds,
    Stepper,
    best_outputs,
    length_divisor,
    make_hypothesis,
)
from manyheads.search.options import Ids, SearchOptions


@torch.no_grad()
def grid_beam_search(
    stepper: Stepper,
    required: Sequence[Sequence[Ids]],
    options: SearchOptions,
    max_lengths: Tensor,
    special: SpecialIds,
) -> list[list[Hypothesis]]:
    """Search like `beam_search`, for outputs that contain every required sequence of their sentence.

    A sentence has one beam for every number of covered tokens. A prefix covers the tokens of all required sequences
    that it contains, and the tokens of a sequence that it has begun at its end. Each prefix is extended by its most
    likely tokens and by the next tokens of its missing sequences; only a prefix without missing sequences may end.
    A prefix that has covered a token at every step is in the highest beam of that step, so that one such prefix
    always remains. Every output therefore contains all of its sequences, if their tokens and the tokens of a forced
    prefix fit into max_length together. If other rules forbid the sequences, an output without them is returned,
    cut.

    The number of beams of a sentence, each of `beam_size`, is its number of required tokens plus one.

    Returns:
        For each sentence 1 to n_best outputs, best first.
    """
    device = max_lengths.device
    grids = [
        _Grid(tuple(dict.fromkeys(sequences)), limit, options, special.eos)
        for sequences, limit in zip(required, max_lengths.tolist(), strict=True)
    ]
    active = list(range(len(grids)))
    tokens = torch.full((len(grids),), special.bos)
    while active:
        log_probs = stepper.step(tokens.to(device))
        best = best_tokens(log_probs, options.beam_size + 1, special.suppressed)
        values, ids = (tensor.tolist() for tensor in best)
        missing = [list(grids[number].missing(prefix)) for number in active for prefix in grids[number].open]
        missing_values = _gather(log_probs, missing)
        rows: list[int] = []
        first = 0
        for number in active:
            grid = grids[number]
            size = len(grid.open)
            parents = grid.advance(
                values[first : first + size], ids[first : first + size], missing_values[first : first + size]
            )
            rows += [first + parent for parent in parents]
            first += size
        active = [number for number in active if grids[number].open]
        if active:
            stepper.select(torch.tensor(rows, device=device))
            tokens = torch.tensor([prefix.tokens[-1] for number in active for prefix in grids[number].open])
    return [best_outputs(grid.finished, options.n_best) for grid in grids]


@dataclass(frozen=True)
class _Prefix:
    """An open hypothesis.

    Attributes:
        tokens: its token ids.
        scores: log-probabilities of the tokens.
        met: indices of the required sequences that it contains.
        total: sum of the scores.
    """

    tokens: Ids = ()
    scores: tuple[float, ...] = ()
    met: frozenset[int] = frozenset()
    total: float = 0.0


@dataclass(frozen=True)
class _Candidate:
    """The open prefix `parent` with one more token of log-probability `value`; `extended` is None for eos."""

    total: float
    parent: int
    token: int
    value: float
    extended: _Prefix | None = None


class _Grid:
    """The search of one sentence.

    Attributes:
        num_required: number of required tokens.
        open: open prefixes of all beams.
        finished: outputs so far.
    """

    def __init__(self, sequences: tuple[Ids, ...], limit: int, options: SearchOptions, eos: int) -> None:
        self.sequences = sequences
        self.num_required = sum(map(len, sequences))
        self.limit = limit
        self.beam_size, self.n_best = options.beam_size, options.n_best
        self.length_penalty, self.eos = options.length_penalty, eos
        self.open = [_Prefix()]
        self.finished: list[Hypothesis] = []

    def overlap(self, tokens: Ids, sequence: Ids) -> int:
        """Return how many tokens at the end of `tokens` are the beginning of the sequence."""
        longest = min(len(tokens), len(sequence) - 1)
        sizes = range(longest, 0, -1)
        return next((size for size in sizes if tokens[len(tokens) - size :] == sequence[:size]), 0)

    def missing(self, prefix: _Prefix) -> dict[int, int]:
        """Return the next token of each missing sequence -> how many tokens of it the prefix has begun."""
        begun: dict[int, int] = {}
        for number, sequence in enumerate(self.sequences):
            if number not in prefix.met:
                size = self.overlap(prefix.tokens, sequence)
                begun[sequence[size]] = max(begun.get(sequence[size], 0), size)
        return begun

    def covered(self, prefix: _Prefix) -> int:
        complete = sum(len(self.sequences[number]) for number in prefix.met)
        return complete + max(self.missing(prefix).values(), default=0)

    def extend(self, prefix: _Prefix, token: int, value: float) -> _Prefix:
        """Return the prefix with one more token, whose log-probability is `value`."""
        tokens = (*prefix.tokens, token)
        met = {
            number
            for number, sequence in enumerate(self.sequences)
            if tokens[len(tokens) - len(sequence) :] == sequence
        }
        return _Prefix(tokens, (*prefix.scores, value), prefix.met | met, prefix.total + value)

    def advance(
        self, values: list[list[float]], ids: list[list[int]], missing: list[dict[int, float]]
    ) -> list[int]:
        """Extend the open prefixes by one token.

        Each has the log-probabilities and ids of its most likely tokens, best first, and the next tokens of its
        missing sequences with their log-probabilities.

        Returns:
            For each new open prefix the index of the prefix that it extends.
        """
        if len(self.open[0].tokens) >= self.limit:
            self.finish_at_limit(values, ids)
            self.open = []
            return []
        banks: dict[int, list[_Candidate]] = {}
        for parent, prefix in enumerate(self.open):
            choices = dict(zip(ids[parent], values[parent], strict=True)) | missing[parent]
            for token, value in choices.items():
                if value == -torch.inf:
                    continue
                total = prefix.total + value
                if token == self.eos:
                    if len(prefix.met) == len(self.sequences):
                        banks.setdefault(self.num_required, []).append(_Candidate(total, parent, token, value))
                    continue
                extended = self.extend(prefix, token, value)
                candidate = _Candidate(total, parent, token, value, extended)
                banks.setdefault(self.covered(extended), []).append(candidate)
        return self.prune(banks)

    def prune(self, banks: dict[int, list[_Candidate]]) -> list[int]:
        """Keep the best prefixes of every beam, by the number of covered tokens, and finish the prefixes that end.

        Returns:
            For each new open prefix the index of the prefix that it extends.
        """
        open_prefixes: list[tuple[int, _Prefix]] = []
        for bank in sorted(banks):
            by_rank = sorted(banks[bank], key=lambda entry: (-entry.total, entry.parent, entry.token))
            ranked = by_rank[: 2 * self.beam_size]
            for candidate in ranked[: self.beam_size]:
                if candidate.extended is None:
                    self.finish(self.open[candidate.parent], candidate.value)
            extensions = [(entry.parent, entry.extended) for entry in ranked if entry.extended is not None]
            open_prefixes += extensions[: self.beam_size]
        if not open_prefixes and not self.finished:
            self.finish(self.nearest(), None)
        self.open = [prefix for _, prefix in open_prefixes]
        if self.open and self.can_stop():
            self.open = []
            return []
        return [parent for parent, _ in open_prefixes]

    def finish_at_limit(self, values: list[list[float]], ids: list[list[int]]) -> None:
        """Finish all prefixes that contain every sequence, at the length limit."""
        for index, prefix in enumerate(self.open):
            if len(prefix.met) == len(self.sequences):
                value, token = values[index][0], ids[index][0]
                self.finish(prefix, value if token == self.eos and value > -torch.inf else None)
        if not self.finished:
            self.finish(self.nearest(), None)

    def nearest(self) -> _Prefix:
        """Return the open prefix that covers most required tokens; of several, the likeliest."""
        return max(self.open, key=lambda prefix: (self.covered(prefix), prefix.total))

    def finish(self, prefix: _Prefix, end: float | None) -> None:
        """Add an output; `end` is the log-probability of its end symbol, None if it is cut."""
        tokens, scores = prefix.tokens, prefix.scores
        if end is not None:
            tokens, scores = (*tokens, self.eos), (*scores, end)
        self.finished.append(
            make_hypothesis(tokens, scores, ended=end is not None, length_penalty=self.length_penalty)
        )

    def can_stop(self) -> bool:
        """Return whether the sentence meets a stop rule of `beam_search`, over the prefixes of all beams."""
        scores = sorted((output.score for output in self.finished), reverse=True)
        best, length = max(prefix.total for prefix in self.open), len(self.open[0].tokens)
        divisors = [length_divisor(count, self.length_penalty) for count in (length, self.limit + 1)]
        usual = len(scores) >= self.beam_size and scores[self.beam_size - 1] >= best / divisors[0]
        exact = len(scores) >= self.n_best and scores[self.n_best - 1] >= best / divisors[1]
        return usual or exact


def _gather(log_probs: Tensor, tokens_of_rows: Sequence[Sequence[int]]) -> list[dict[int, float]]:
    pairs = [(row, token) for row, tokens in enumerate(tokens_of_rows) for token in tokens]
    rows, ids = torch.tensor(pairs, dtype=torch.int64, device=log_probs.device).reshape(-1, 2).T
    values = iter(log_probs[rows, ids].double().tolist())
    return [{token: next(values) for token in tokens} for tokens in tokens_of_rows]
