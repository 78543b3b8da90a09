"""Rules for what may come out, laid around any stepper, so that every kind of search obeys them.

Shapes: R rows, B sentences, T tokens so far, V vocabulary, N forbidden places. A row's history is on the CPU.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from manyheads.search.interface import Stepper

__all__ = ["MinLength", "NoRepeat", "Rule", "RuledStepper", "Without"]

NEVER = -torch.inf
Places = tuple[Tensor, Tensor]


class Rule(Protocol):
    """Something that must hold for every output."""

    def __call__(self, tokens: Tensor, sentences: Tensor) -> Places:
        """Which tokens may not come next: rows (N,) and token ids (N,), side by side.

        Args:
            tokens: what each row has so far (R, T), without the begin symbol.
            sentences: the sentence of each row (R,).
        """
        ...


class RuledStepper:
    """A stepper whose rows begin with given prefixes and keep to rules after them.

    What may not come has log-probability -inf; all other log-probabilities stay those of the model, so that a
    score still says what the model thinks of an output. A prefix is above the rules: they hold from its end on.
    """

    def __init__(
        self, stepper: Stepper, sentences: int, *, rules: Sequence[Rule], prefixes: Sequence[Sequence[int]] = ()
    ) -> None:
        """Around a stepper that holds one row a sentence, without a past; prefixes: none, or one a sentence."""
        self.stepper = stepper
        self.rules = rules
        self.prefixes = prefixes
        self.longest_prefix = max(map(len, prefixes), default=0)
        self.sentences = torch.arange(sentences)
        self.tokens: Tensor | None = None

    def step(self, tokens: Tensor) -> Tensor:
        """As `Stepper.step`."""
        log_probs = self.stepper.step(tokens)
        if self.tokens is None:  # the begin symbol
            self.tokens = torch.empty(len(tokens), 0, dtype=torch.int64)
        else:
            self.tokens = torch.cat([self.tokens, tokens.cpu()[:, None]], dim=1)
        banned = [rule(self.tokens, self.sentences) for rule in self.rules]
        rows, ids = (torch.cat(parts).to(log_probs.device) for parts in zip(NOTHING, *banned, strict=True))
        allowed = log_probs.clone()
        allowed[rows, ids] = NEVER
        rows, ids = (part.to(log_probs.device) for part in self.forced(self.tokens.size(1)))
        allowed[rows] = NEVER
        allowed[rows, ids] = log_probs[rows, ids]
        return allowed

    def forced(self, place: int) -> Places:
        """The rows whose prefix goes on at this place, and their tokens there."""
        if place >= self.longest_prefix:
            return NOTHING
        wanted = [
            (row, self.prefixes[sentence][place])
            for row, sentence in enumerate(self.sentences.tolist())
            if place < len(self.prefixes[sentence])
        ]
        rows, ids = torch.tensor(wanted, dtype=torch.int64).reshape(-1, 2).T
        return rows, ids

    def select(self, rows: Tensor) -> None:
        """As `Stepper.select`."""
        self.stepper.select(rows)
        rows = rows.cpu()
        self.sentences = self.sentences[rows]
        if self.tokens is not None:
            self.tokens = self.tokens[rows]


NOTHING: Places = (torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.int64))


class MinLength:
    """No end before so many tokens."""

    def __init__(self, lengths: Sequence[int], eos: int) -> None:
        """The fewest tokens of each sentence's output (B,), the end symbol not counted."""
        self.lengths = torch.tensor(lengths, dtype=torch.int64)
        self.eos = eos

    def __call__(self, tokens: Tensor, sentences: Tensor) -> Places:
        """See `Rule`."""
        rows = (tokens.size(1) < self.lengths[sentences]).nonzero()[:, 0]
        return rows, torch.full_like(rows, self.eos)


class NoRepeat:
    """No n-gram of tokens comes twice in an output (Paulus et al. 2018, section 2.5)."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __call__(self, tokens: Tensor, sentences: Tensor) -> Places:
        """See `Rule`."""
        if tokens.size(1) < self.n:
            return NOTHING
        grams = tokens.unfold(1, self.n, 1)  # (R, T - n + 1, n)
        last = tokens[:, tokens.size(1) - self.n + 1 :]  # (R, n - 1)
        rows, places = (grams[:, :, :-1] == last[:, None]).all(-1).nonzero(as_tuple=True)
        return rows, grams[rows, places, -1]


class Without:
    """Given sequences of tokens never come out."""

    def __init__(self, sequences: Sequence[Sequence[Sequence[int]]]) -> None:
        """Sequences of at least one token, for each of the B sentences."""
        self.ends: list[dict[tuple[int, ...], list[int]]] = []  # what may not follow which tokens, a sentence
        for of_sentence in sequences:
            ends = defaultdict(list)
            for *begin, end in of_sentence:
                ends[tuple(begin)].append(end)
            self.ends.append(dict(ends))
        self.lengths = [sorted({len(begin) for begin in ends}) for ends in self.ends]

    def __call__(self, tokens: Tensor, sentences: Tensor) -> Places:
        """See `Rule`."""
        found = [
            (row, end)
            for row, (history, sentence) in enumerate(zip(tokens.tolist(), sentences.tolist(), strict=True))
            for length in self.lengths[sentence]
            if length <= len(history)
            for end in self.ends[sentence].get(tuple(history[len(history) - length :]), ())
        ]
        rows, ids = torch.tensor(found, dtype=torch.int64).reshape(-1, 2).T
        return rows, ids
