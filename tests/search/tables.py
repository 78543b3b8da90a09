"""Models without a network: random log-probabilities of the next token that depend on the prefix alone.

Two reference implementations search them: a plain beam search of one sentence, and the enumeration of every output.
The module also holds the helpers that the tests of all search algorithms share.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor

from manyheads.search.interface import Hypothesis, SpecialIds, length_divisor
from manyheads.search.options import SearchOptions

UNK, PAD, BOS, EOS = 0, 1, 2, 3
FORBIDDEN = (PAD, BOS)
Prefix = tuple[int, ...]
Sentence = TypeVar("Sentence")


def parameters(
    limits: Sequence[int] | Tensor, suppressed: Sequence[int] = FORBIDDEN, **options: Any
) -> tuple[SearchOptions, Tensor, SpecialIds]:
    """Return the arguments of a search of sentences with these limits; padding and BOS are never generated."""
    max_lengths = limits if isinstance(limits, Tensor) else torch.tensor(limits, dtype=torch.int64)
    given = SearchOptions(**({"beam_size": 1, "length_penalty": 1.0} | options))
    return given, max_lengths, SpecialIds(BOS, EOS, suppressed)


def assert_independent(
    search: Callable[[Sequence[Sentence]], list[list[Hypothesis]]], sentences: Sequence[Sentence]
) -> list[list[Hypothesis]]:
    """Check that outputs depend on their sentence alone, not on the others or their order; return the outputs."""
    together = search(sentences)
    assert search(sentences[::-1])[::-1] == together
    for sentence, outputs in zip(sentences, together, strict=True):
        assert search([sentence]) == [outputs]
    return together


@dataclass(frozen=True)
class Table:
    """A random model: every prefix has a next-token distribution of its own.

    Attributes:
        seed: seed of the distributions.
        size: V.
        end_bias: value added to the logit of EOS; +4 ends most outputs at once, -4 hardly any, -inf none.
        sharpness: scale of the logits.
        impossible: share of tokens of probability 0.
        steps: logits are rounded to multiples of 1 / steps, so that ties occur; 0 means no rounding.
    """

    seed: int
    size: int = 7
    end_bias: float = 0.0
    sharpness: float = 1.5
    impossible: float = 0.0
    steps: int = 0
    known: dict[Prefix, Tensor] = field(default_factory=dict, compare=False, repr=False)

    def log_probs(self, prefix: Prefix) -> Tensor:
        """Return the log-probabilities of the next token: (V,), float32."""
        if prefix not in self.known:
            rng = random.Random(f"{self.seed} {prefix}")
            logits = [rng.gauss(0, self.sharpness) for _ in range(self.size)]
            if self.steps:
                logits = [round(logit * self.steps) / self.steps for logit in logits]
            logits[EOS] += self.end_bias
            for token in range(self.size):
                if rng.random() < self.impossible:
                    logits[token] = -torch.inf
            row = torch.tensor(logits)
            alive = bool((row > -torch.inf).any())
            self.known[prefix] = row.log_softmax(0) if alive else row
        return self.known[prefix]

    def score_tokens(self, hypothesis: Hypothesis) -> tuple[float, ...]:
        """Return the log-probability of each token of an output."""
        tokens = (*hypothesis.tokens, EOS) if hypothesis.ended else hypothesis.tokens
        return tuple(self.log_probs(tokens[:index])[token].item() for index, token in enumerate(tokens))


@dataclass(frozen=True)
class RestrictedTable(Table):
    """A table in which some tokens cannot follow some prefixes; the others keep their log-probabilities.

    Attributes:
        banned: function of (prefix, token): whether the token cannot follow the prefix.
    """

    banned: Callable[[Prefix, int], bool] = field(default=lambda prefix, token: False, compare=False)

    def log_probs(self, prefix: Prefix) -> Tensor:
        row = super().log_probs(prefix).clone()
        row[[token for token in range(self.size) if self.banned(prefix, token)]] = -torch.inf
        return row


class TableStepper:
    """A stepper with one row a table; records the number of rows of each step, and checks its arguments."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self.rows: list[tuple[int, Table, Prefix]] = [
            (sentence, table, ()) for sentence, table in enumerate(tables)
        ]
        self.row_counts: list[int] = []

    def step(self, tokens: Tensor) -> Tensor:
        assert tokens.shape == (len(self.rows),)
        if self.row_counts:
            self.rows = [
                (sentence, table, (*prefix, token))
                for (sentence, table, prefix), token in zip(self.rows, tokens.tolist(), strict=True)
            ]
        else:
            assert tokens.tolist() == [BOS] * len(self.rows)
        self.row_counts.append(len(self.rows))
        sentences = [sentence for sentence, _, _ in self.rows]
        assert sentences == sorted(sentences), "the rows of a sentence are contiguous"
        return torch.stack([table.log_probs(prefix) for _, table, prefix in self.rows])

    def select(self, rows: Tensor) -> None:
        assert rows.ndim == 1
        assert rows.numel() > 0
        assert rows.min() >= 0
        self.rows = [self.rows[row] for row in rows.tolist()]


@dataclass(frozen=True)
class ReferenceOutput:
    """An output of a reference search; tokens without EOS."""

    score: float
    tokens: Prefix
    ended: bool


def to_reference(outputs: Sequence[Hypothesis]) -> list[ReferenceOutput]:
    """Return the outputs of a search in the form of the reference search."""
    return [ReferenceOutput(output.score, output.tokens, output.ended) for output in outputs]


def score(total: float, length: int, length_penalty: float) -> float:
    return total / length_divisor(length, length_penalty)


def permitted(table: Table, prefix: Prefix, forbidden: Sequence[int]) -> list[tuple[float, int]]:
    """Return (log-probability, token) of the possible next tokens, best first, ties by the lower id."""
    row = table.log_probs(prefix).tolist()
    options = [(value, token) for token, value in enumerate(row) if token not in forbidden and value > -torch.inf]
    return sorted(options, key=lambda option: (-option[0], option[1]))


def finish_at_limit(
    table: Table, prefix: Prefix, total: float, length_penalty: float, forbidden: Sequence[int]
) -> ReferenceOutput:
    """Return the output of a prefix at its length limit."""
    options = permitted(table, prefix, forbidden)
    if options and options[0][1] == EOS:
        return ReferenceOutput(score(total + options[0][0], len(prefix) + 1, length_penalty), prefix, True)
    return ReferenceOutput(score(total, len(prefix), length_penalty), prefix, False)


def enumerate_outputs(
    table: Table, limit: int, length_penalty: float, forbidden: Sequence[int] = ()
) -> Iterator[ReferenceOutput]:
    """Yield every possible output."""
    stack: list[tuple[Prefix, float]] = [((), 0.0)]
    while stack:
        prefix, total = stack.pop()
        if len(prefix) == limit:
            yield finish_at_limit(table, prefix, total, length_penalty, forbidden)
            continue
        for value, token in permitted(table, prefix, forbidden):
            if token == EOS:
                yield ReferenceOutput(score(total + value, len(prefix) + 1, length_penalty), prefix, True)
            else:
                stack.append(((*prefix, token), total + value))


def reference_beam(
    table: Table,
    *,
    beam_size: int,
    n_best: int,
    length_penalty: float,
    limit: int,
    forbidden: Sequence[int] = (),
) -> tuple[list[ReferenceOutput], int]:
    """Search one sentence with lists, as a reference; return its outputs and the number of steps."""
    beam: list[tuple[float, Prefix]] = [(0.0, ())]
    outputs: list[ReferenceOutput] = []
    for length in range(limit + 1):
        choices = [
            (-(total + value), parent, rank, value, token)
            for parent, (total, prefix) in enumerate(beam)
            for rank, (value, token) in enumerate(permitted(table, prefix, forbidden))
        ]
        if length == limit or not (choices or outputs):
            outputs += [finish_at_limit(table, prefix, total, length_penalty, forbidden) for total, prefix in beam]
            break
        grown: list[tuple[float, Prefix]] = []
        for index, (negative, parent, _, _, token) in enumerate(sorted(choices)):
            prefix = beam[parent][1]
            if token == EOS:
                if index < beam_size:
                    outputs.append(ReferenceOutput(score(-negative, length + 1, length_penalty), prefix, True))
            elif len(grown) < beam_size:
                grown.append((-negative, (*prefix, token)))
        beam = grown
        if not beam:
            break
        scores = sorted((output.score for output in outputs), reverse=True)
        best = beam[0][0]
        if len(scores) >= beam_size and scores[beam_size - 1] >= score(best, length + 1, length_penalty):
            break
        if len(scores) >= n_best and scores[n_best - 1] >= score(best, limit + 1, length_penalty):
            break
    return sorted(outputs, key=lambda output: -output.score)[:n_best], length + 1
