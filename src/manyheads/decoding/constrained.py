"""Constrained decoding: outputs that contain required token sequences, by grid beam search (Hokamp and Liu 2017).

Shapes: B sentences, R rows, K = beam_size, C candidates a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from manyheads.decoding.candidates import best_tokens
from manyheads.search.interface import (
    Hypothesis,
    SpecialIds,
    Stepper,
    best_outputs,
    length_divisor,
    make_hypothesis,
)
from manyheads.search.options import Constraints, Ids, SearchOptions


@torch.no_grad()
def grid_beam_search(
    stepper: Stepper,
    constraints: Sequence[Constraints],
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

    With `Constraints.words`, a sequence begins and ends at the boundary of a word: it is missing again if the next
    token goes on with its last word. No word follows the end of the last of `Constraints.sentences`.

    The number of beams of a sentence, each of `beam_size`, is its number of required tokens plus one; up to twice
    as many where a blank is a token of its own.

    Returns:
        For each sentence 1 to n_best outputs, best first.
    """
    device = max_lengths.device
    grids = [
        _Grid(constraint, limit, options, special.eos)
        for constraint, limit in zip(constraints, max_lengths.tolist(), strict=True)
    ]
    active = list(range(len(grids)))
    tokens = torch.full((len(grids),), special.bos)
    while active:
        log_probs = stepper.step(tokens.to(device))
        best = best_tokens(log_probs, options.beam_size + 1, special.suppressed)
        values, ids = (tensor.tolist() for tensor in best)
        open_prefixes = [(grids[number], prefix) for number in active for prefix in grids[number].open]
        others = _gather(log_probs, [grid.next_tokens(prefix) for grid, prefix in open_prefixes])
        for row, choices in _best_after_word(log_probs, open_prefixes, len(ids[0]), special.suppressed).items():
            others[row] = choices | others[row]
        rows: list[int] = []
        first = 0
        for number in active:
            grid = grids[number]
            size = len(grid.open)
            parents = grid.advance(
                values[first : first + size], ids[first : first + size], others[first : first + size]
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
        latest: indices of the sequences that its last token has completed.
        sentences: number of its tokens that end a sentence, without those of required sequences.
    """

    tokens: Ids = ()
    scores: tuple[float, ...] = ()
    met: frozenset[int] = frozenset()
    total: float = 0.0
    latest: frozenset[int] = frozenset()
    sentences: int = 0


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
        within: indices of the sequences that could begin within a word.
        open: open prefixes of all beams.
        finished: outputs so far.
    """

    def __init__(self, constraints: Constraints, limit: int, options: SearchOptions, eos: int) -> None:
        self.sequences = tuple(dict.fromkeys(constraints.required))
        self.words, self.sentences = constraints.words, constraints.sentences
        self.within = {n for n, ids in enumerate(self.sequences) if self.words and self.words.goes_on[ids[0]]}
        self.num_required = sum(map(len, self.sequences))
        self.limit = limit
        self.beam_size, self.n_best = options.beam_size, options.n_best
        self.length_penalty, self.eos = options.length_penalty, eos
        self.open = [_Prefix()]
        self.finished: list[Hypothesis] = []

    def goes_on(self, tokens: Ids, token: int) -> bool:
        """Return whether a token goes on with the word at the end of `tokens`."""
        words = self.words
        return words is not None and bool(words.goes_on[token] and tokens and words.ends_open[tokens[-1]])

    def begins(self, tokens: Ids, start: int, sequence: Ids) -> bool:
        """Return whether the tokens from `start` on are these, and begin at the boundary of a word."""
        return tokens[start:] == sequence and not self.goes_on(tokens[:start], sequence[0])

    def overlap(self, tokens: Ids, sequence: Ids) -> int:
        """Return how many tokens at the end of `tokens` are the beginning of the sequence."""
        longest = min(len(tokens), len(sequence) - 1)
        sizes = range(longest, 0, -1)
        return next((size for size in sizes if self.begins(tokens, len(tokens) - size, sequence[:size])), 0)

    def missing(self, prefix: _Prefix) -> dict[int, int]:
        """Return the next token of each missing sequence -> how many tokens of it the prefix has begun.

        A sequence that cannot begin within the last word of the prefix is left out.
        """
        begun: dict[int, int] = {}
        for number, sequence in enumerate(self.sequences):
            if number not in prefix.met:
                size = self.overlap(prefix.tokens, sequence)
                if size or not self.goes_on(prefix.tokens, sequence[0]):
                    begun[sequence[size]] = max(begun.get(sequence[size], 0), size)
        return begun

    def has_all(self, prefix: _Prefix) -> bool:
        return len(prefix.met) == len(self.sequences)

    def is_over(self, prefix: _Prefix) -> bool:
        """Return whether a prefix has ended its last sentence."""
        return 0 < self.sentences <= prefix.sentences

    def waits(self, prefix: _Prefix) -> bool:
        """Return whether the last word of a prefix must end before a missing sequence can begin."""
        return any(self.goes_on(prefix.tokens, self.sequences[number][0]) for number in self.within - prefix.met)

    def bank(self, prefix: _Prefix) -> tuple[int, bool]:
        """Return the beam of a prefix: the number of tokens that it covers, and whether it waits."""
        complete = sum(len(self.sequences[number]) for number in prefix.met)
        return complete + max(self.missing(prefix).values(), default=0), self.waits(prefix)

    def next_tokens(self, prefix: _Prefix) -> list[int]:
        """Return the tokens that may follow a prefix however unlikely they are."""
        return [*self.missing(prefix), *([self.eos] if self.is_over(prefix) else [])]

    def extend(self, prefix: _Prefix, token: int, value: float) -> _Prefix:
        """Return the prefix with one more token, whose log-probability is `value`."""
        tokens = (*prefix.tokens, token)
        met = prefix.met
        if prefix.latest and self.goes_on(prefix.tokens, token):
            met -= prefix.latest
        ended = frozenset(
            number
            for number, sequence in enumerate(self.sequences)
            if len(sequence) <= len(tokens) and self.begins(tokens, len(tokens) - len(sequence), sequence)
        )
        ends = self.words is not None and self.words.ends_sentence[token] and token not in self.missing(prefix)
        return _Prefix(
            tokens,
            (*prefix.scores, value),
            met | ended,
            prefix.total + value,
            ended - met,
            prefix.sentences + int(ends),
        )

    def is_possible(self, prefix: _Prefix, extended: _Prefix) -> bool:
        """Return whether no word follows the end of the last sentence in an extended prefix, and none will."""
        if self.words is None or not self.is_over(extended):
            return True
        return self.has_all(extended) and not (self.is_over(prefix) and self.words.has_letters[extended.tokens[-1]])

    def advance(self, values: list[list[float]], ids: list[list[int]], others: list[dict[int, float]]) -> list[int]:
        """Extend the open prefixes by one token.

        Each has the log-probabilities and ids of its most likely tokens, best first, and other tokens with their
        log-probabilities, such as the next tokens of its missing sequences.

        Returns:
            For each new open prefix the index of the prefix that it extends.
        """
        if len(self.open[0].tokens) >= self.limit:
            self.finish_at_limit(values, ids)
            self.open = []
            return []
        banks: dict[tuple[int, bool], list[_Candidate]] = {}
        for parent, prefix in enumerate(self.open):
            choices = others[parent] | dict(zip(ids[parent], values[parent], strict=True))
            for token, value in choices.items():
                if value == -torch.inf:
                    continue
                total = prefix.total + value
                if token == self.eos:
                    if self.has_all(prefix):
                        banks.setdefault(self.bank(prefix), []).append(_Candidate(total, parent, token, value))
                    continue
                extended = self.extend(prefix, token, value)
                if self.is_possible(prefix, extended):
                    candidate = _Candidate(total, parent, token, value, extended)
                    banks.setdefault(self.bank(extended), []).append(candidate)
        return self.prune(banks)

    def prune(self, banks: dict[tuple[int, bool], list[_Candidate]]) -> list[int]:
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
            if self.has_all(prefix):
                value, token = values[index][0], ids[index][0]
                self.finish(prefix, value if token == self.eos and value > -torch.inf else None)
        if not self.finished:
            self.finish(self.nearest(), None)

    def nearest(self) -> _Prefix:
        """Return the open prefix that covers most required tokens; of several, the likeliest."""
        return max(self.open, key=lambda prefix: (self.bank(prefix)[0], prefix.total))

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


def _best_after_word(
    log_probs: Tensor, prefixes: Sequence[tuple[_Grid, _Prefix]], count: int, suppressed: Sequence[int]
) -> dict[int, dict[int, float]]:
    """Return the best tokens that end the last word of a prefix, for the row of each that waits or has `latest`."""
    rows = [row for row, (grid, prefix) in enumerate(prefixes) if prefix.latest or grid.waits(prefix)]
    words = next((grid.words for grid, _ in prefixes if grid.words is not None), None)
    if words is None or not rows:
        return {}
    ending = log_probs[rows].masked_fill(torch.from_numpy(words.goes_on).to(log_probs.device), -torch.inf)
    values, ids = (tensor.tolist() for tensor in best_tokens(ending, count, suppressed))
    return {row: dict(zip(*best, strict=True)) for row, *best in zip(rows, ids, values, strict=True)}
