"""Rules that forbid next tokens, applied by a wrapper around any stepper, so that every kind of search obeys them.

Shapes: R rows, B sentences, T tokens so far, V vocabulary, N pairs of a row and a token. Tokens are on the CPU.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from manyheads.search.interface import Stepper

RowTokens = tuple[Tensor, Tensor]  # pairs of a row (N,) and a token id (N,)


class Rule(Protocol):
    """A constraint that every output obeys."""

    def __call__(self, tokens: Tensor, sentences: Tensor) -> RowTokens:
        """Return the forbidden next tokens as pairs: rows (N,) and token ids (N,).

        Each row has its tokens so far (R, T), without the begin symbol, and its sentence (R,).
        """
        ...


class RuledStepper:
    """A wrapper around a stepper that forces prefixes, and applies rules to the tokens after them.

    A forbidden token has log-probability -inf; all other log-probabilities stay unchanged, so that the score of an
    output is still the model's score. Rules do not apply within a prefix.
    """

    def __init__(
        self, stepper: Stepper, sentences: int, *, rules: Sequence[Rule], prefixes: Sequence[Sequence[int]] = ()
    ) -> None:
        """Wrap a stepper that holds one row a sentence with an empty prefix; prefixes: none, or one a sentence."""
        self.stepper = stepper
        self.rules = rules
        self.prefixes = prefixes
        self.longest_prefix = max(map(len, prefixes), default=0)
        self.sentences = torch.arange(sentences)  # the sentence of each row
        self.tokens: Tensor | None = None

    def step(self, tokens: Tensor) -> Tensor:
        """Append a token to each row; forbidden tokens get -inf, a prefix allows one token: (R,) -> (R, V)."""
        log_probs = self.stepper.step(tokens)
        if self.tokens is None:  # the first step appends the begin symbol
            self.tokens = torch.empty(len(tokens), 0, dtype=torch.int64)
        else:
            self.tokens = torch.cat([self.tokens, tokens.cpu()[:, None]], dim=1)
        banned = [rule(self.tokens, self.sentences) for rule in self.rules]
        rows, ids = (torch.cat(tensors).to(log_probs.device) for tensors in zip(_NO_TOKENS, *banned, strict=True))
        allowed = log_probs.clone()
        allowed[rows, ids] = -torch.inf
        rows, ids = (tensor.to(log_probs.device) for tensor in self.forced(self.tokens.size(1)))
        allowed[rows] = -torch.inf
        allowed[rows, ids] = log_probs[rows, ids]
        return allowed

    def forced(self, position: int) -> RowTokens:
        """Return the rows whose prefix reaches a position, and their prefix tokens there."""
        if position >= self.longest_prefix:
            return _NO_TOKENS
        pairs = [
            (row, self.prefixes[sentence][position])
            for row, sentence in enumerate(self.sentences.tolist())
            if position < len(self.prefixes[sentence])
        ]
        rows, ids = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
        return rows, ids

    def select(self, rows: Tensor) -> None:
        """Keep some rows, with their tokens and sentences: (R',) row indices."""
        self.stepper.select(rows)
        rows = rows.cpu()
        self.sentences = self.sentences[rows]
        if self.tokens is not None:
            self.tokens = self.tokens[rows]


_NO_TOKENS: RowTokens = (torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.int64))


class MinLength:
    """Forbid the end symbol before a minimum number of tokens."""

    def __init__(self, lengths: Sequence[int], eos: int) -> None:
        """Take the minimum output length of each sentence in tokens (B,), the end symbol not counted."""
        self.lengths = torch.tensor(lengths, dtype=torch.int64)
        self.eos = eos

    def __call__(self, tokens: Tensor, sentences: Tensor) -> RowTokens:
        """Forbid the end symbol in the rows that are too short."""
        rows = (tokens.size(1) < self.lengths[sentences]).nonzero()[:, 0]
        return rows, torch.full_like(rows, self.eos)


class NoRepeat:
    """Forbid that an n-gram of tokens occurs twice in an output (Paulus et al. 2018, section 2.5)."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __call__(self, tokens: Tensor, sentences: Tensor) -> RowTokens:
        """Forbid the tokens that would complete an n-gram of their row."""
        if tokens.size(1) < self.n:
            return _NO_TOKENS
        grams = tokens.unfold(1, self.n, 1)  # (R, T - n + 1, n)
        last = tokens[:, tokens.size(1) - self.n + 1 :]  # (R, n - 1)
        rows, positions = (grams[:, :, :-1] == last[:, None]).all(-1).nonzero(as_tuple=True)
        return rows, grams[rows, positions, -1]


class ForbiddenSequences:
    """Forbid sequences of tokens."""

    def __init__(self, sequences: Sequence[Sequence[Sequence[int]]]) -> None:
        """Take the forbidden sequences of each of the B sentences, each of at least one token."""
        # for each sentence: all but the last token of a sequence -> the tokens that must not follow
        self.ends: list[dict[tuple[int, ...], list[int]]] = []
        for sentence_sequences in sequences:
            ends = defaultdict(list)
            for *begin, end in sentence_sequences:
                ends[tuple(begin)].append(end)
            self.ends.append(dict(ends))
        self.lengths = [sorted({len(begin) for begin in ends}) for ends in self.ends]

    def __call__(self, tokens: Tensor, sentences: Tensor) -> RowTokens:
        """Forbid the tokens that would complete a sequence."""
        pairs = [
            (row, end)
            for row, (history, sentence) in enumerate(zip(tokens.tolist(), sentences.tolist(), strict=True))
            for length in self.lengths[sentence]
            if length <= len(history)
            for end in self.ends[sentence].get(tuple(history[len(history) - length :]), ())
        ]
        rows, ids = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
        return rows, ids
