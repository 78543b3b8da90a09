"""The options of a search, the same for every engine.

A "row" is here a source sentence as token ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self, TypeVar

__all__ = ["Ids", "Sampling", "SearchOptions"]

Ids = tuple[int, ...]
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class Sampling:
    """Options of sampling: draw each token from the model's distribution.

    Each token is drawn from p ** (1 / temperature), normalised, of which the top_k most likely tokens are kept, and
    of these the fewest whose probabilities add up to top_p (nucleus sampling, Holtzman et al. 2020).

    Attributes:
        temperature: above 0; 1 is the model's own distribution, less prefers likely tokens, more flattens it.
        top_k: number of tokens to keep; 0 keeps all.
        top_p: probability mass to keep, above 0 and at most 1, which keeps all.
        seed: of the random numbers; the samples of a row depend on the seed, the row and their index alone.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.temperature < float("inf"):
            raise ValueError(
                f"temperature = {self.temperature} must be above 0. For the likeliest, search greedily."
            )
        if self.top_k < 0:
            raise ValueError(f"top_k = {self.top_k} must not be negative; 0 keeps all tokens.")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p = {self.top_p} must be above 0 and at most 1, which keeps all tokens.")
        if self.seed < 0:
            raise ValueError(f"seed = {self.seed} must not be negative.")


@dataclass(frozen=True)
class SearchOptions:
    """All options of a search, constraints on the outputs included.

    The options without a default are settings of a model (`SearchConfig`). All others are off by default; `in_use`
    names those that are on, so that an engine can refuse an option that it does not support.

    Attributes:
        beam_size: number of open prefixes a sentence; 1 is greedy.
        length_penalty: score = log_probability / length ** length_penalty.
        max_length_ratio: maximum output length = max_length_ratio x source tokens + max_length_offset.
        max_length_offset: in tokens.
        batch_tokens: approximate number of source tokens x beam_size decoded at the same time; it does not change
            the results.
        n_best: number of outputs to return for each row, at most beam_size; when sampling, number of samples.
        min_length_ratio: minimum output length = min_length_ratio x source tokens, the end symbol not counted.
        coverage_penalty: weight of the penalty for source tokens without attention (beta in equation 14 of Wu et
            al. 2016); added to the score of every finished output.
        no_repeat_ngram: length in tokens of the n-grams that must not occur twice in an output; 0 is off.
        sampling: options of sampling, instead of a search; None is off.
        diverse_groups: number of diverse beam groups, each penalised for the tokens that earlier groups chose at
            the same step (Vijayakumar et al. 2018); 1 is off.
        diverse_strength: penalty in nats on such a token, for each prefix that chose it.
        rivals: number of likeliest other tokens to return for each token; 0 is off.
        attention: whether to return the attention on the source (mean of the heads of one layer) for each token.
        attention_layer: decoder layer of that attention and of the coverage penalty; 0 is the lowest, -1 the
            highest.
        token_scores: whether to return the log-probability of each token; if false, an engine that computes them
            separately may return none.
        prefixes: forced beginning of the output of each row; empty, or one entry a row.
        forbidden: for each row, sequences that must not occur after its prefix; empty, or one entry a row.
        required: for each row, sequences that must occur; empty, or one entry a row.
    """

    beam_size: int
    length_penalty: float
    max_length_ratio: float
    max_length_offset: int
    batch_tokens: int
    n_best: int = 1
    min_length_ratio: float = 0.0
    coverage_penalty: float = 0.0
    no_repeat_ngram: int = 0
    sampling: Sampling | None = None
    diverse_groups: int = 1
    diverse_strength: float = 0.5
    rivals: int = 0
    attention: bool = False
    attention_layer: int = -1
    token_scores: bool = True
    prefixes: tuple[Ids, ...] = ()
    forbidden: tuple[tuple[Ids, ...], ...] = ()
    required: tuple[tuple[Ids, ...], ...] = ()

    def __post_init__(self) -> None:
        for name in ("beam_size", "n_best", "diverse_groups", "batch_tokens"):
            if vars(self)[name] < 1:
                raise ValueError(f"{name} = {vars(self)[name]} must be at least 1.")
        for name in (
            "length_penalty",
            "max_length_ratio",
            "max_length_offset",
            "min_length_ratio",
            "coverage_penalty",
            "no_repeat_ngram",
            "diverse_strength",
            "rivals",
        ):
            if not 0 <= vars(self)[name] < float("inf"):
                raise ValueError(f"{name} = {vars(self)[name]} must be 0 or more, and finite.")
        if self.sampling is None and self.n_best > self.beam_size:
            raise ValueError(f"n_best = {self.n_best} must not be above beam_size = {self.beam_size}.")
        if self.beam_size % self.diverse_groups:
            raise ValueError(
                f"beam_size = {self.beam_size} cannot be shared out among diverse_groups = {self.diverse_groups}."
            )
        if self.required and (self.sampling or self.diverse_groups > 1):
            raise ValueError(
                "required sequences are searched for by a beam: not by sampling, not in diverse groups."
            )
        if self.sampling and self.diverse_groups > 1:
            raise ValueError("sampling has no beam that could fall into diverse groups.")
        if any(not sequence for row in (*self.forbidden, *self.required) for sequence in row):
            raise ValueError("a forbidden or required sequence of tokens is empty.")

    def in_use(self) -> list[str]:
        """Return the names of the options that are on, except the first six, which every engine supports."""
        names = [field.name for field in fields(self)[6:] if vars(self)[field.name] != field.default]
        if self.diverse_groups == 1:
            names = [name for name in names if name != "diverse_strength"]
        names = [name for name in names if name != "token_scores"]
        if not (self.attention or self.coverage_penalty):
            names = [name for name in names if name != "attention_layer"]
        return names

    def select_rows(self, rows: Sequence[int]) -> Self:
        """Return the options of some of the rows, given by their indices."""
        return replace(
            self,
            prefixes=select_entries(self.prefixes, rows),
            forbidden=select_entries(self.forbidden, rows),
            required=select_entries(self.required, rows),
        )

    def longest(self, rows: Sequence[Sequence[int]], most: int) -> list[int]:
        """Return the maximum output length of each row in tokens, the end symbol not counted; at most `most`."""
        limits = [int(self.max_length_ratio * len(row)) + self.max_length_offset for row in rows]
        constrained = self.constrained_lengths(len(rows))
        return [min(max(limit, least), most) for limit, least in zip(limits, constrained, strict=True)]

    def shortest(self, rows: Sequence[Sequence[int]]) -> list[int]:
        """Return the minimum output length of each row in tokens, the end symbol not counted."""
        return [int(self.min_length_ratio * len(row)) for row in rows]

    def constrained_lengths(self, count: int) -> list[int]:
        """Return the number of tokens in the prefix and the required sequences of each of `count` rows."""
        prefixes = self.prefixes or ((),) * count
        required = self.required or ((),) * count
        return [
            len(prefix) + sum(map(len, sequences)) for prefix, sequences in zip(prefixes, required, strict=True)
        ]


def select_entries(entries: tuple[Entry, ...], rows: Sequence[int]) -> tuple[Entry, ...]:
    """Return the entries of some of the rows; no entries stay none."""
    return tuple(entries[row] for row in rows) if entries else ()
