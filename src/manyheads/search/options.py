"""All that may be asked of a search, whichever engine does it.

"Row" means here a source sentence as token ids.
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
    """Outputs drawn by chance from what the model says.

    Each token is drawn from the model's distribution p ** (1 / temperature), of which the top_k most likely tokens
    are kept, and of these the fewest whose probabilities add up to top_p (nucleus sampling, Holtzman et al. 2020).

    Attributes:
        temperature: above 0; 1 is the model's own distribution, less is bolder likelihood, more is wilder.
        top_k: 0 keeps all.
        top_p: above 0, at most 1, which keeps all.
        seed: what is drawn for a row depends on the seed, the row and the number of the draw alone.
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
    """How to search, and what must and must not come out.

    The four options without a default, and batch_tokens, are settings of a model (`SearchConfig`). All others are
    off unless given; `in_use` names those that are on, so that an engine can refuse what it cannot do.

    Attributes:
        beam_size: open prefixes a sentence; 1 is greedy.
        length_penalty: score = log_probability / length ** length_penalty.
        max_length_ratio: the longest output is this x the source's tokens + max_length_offset.
        max_length_offset: in tokens.
        batch_tokens: source tokens x beam_size decoded at the same time, about; no result depends on it.
        n_best: outputs wanted of each row, at most beam_size; when sampling, how many are drawn.
        min_length_ratio: the shortest output is this x the source's tokens, the end symbol not counted.
        coverage_penalty: weight of how much of the source was never looked at (Wu et al. 2016, equation 14, beta);
            added to the score of every output that the beam has found.
        no_repeat_ngram: no n-gram of so many tokens comes twice in an output; 0 is off.
        sampling: draw instead of searching.
        diverse_groups: the beam falls into so many groups, each led away from the tokens that earlier groups took
            at the same step (Vijayakumar et al. 2018); 1 is off.
        diverse_strength: how much the log-probability of such a token is lowered, for each prefix that took it.
        rivals: so many likeliest other tokens are reported beside each token.
        attention: beside each token, where the decoder looked (mean of the heads of one layer) is reported.
        attention_layer: which layer that is, and which the coverage penalty sees; 0 the lowest, -1 the highest.
        token_scores: whether the log-probability of each token is wanted; without, an engine that would have to
            compute them apart may give none.
        prefixes: what the output of each row begins with; none at all, or one a row.
        forbidden: for each row, sequences that do not come out after its prefix; none at all, or one entry a row.
        required: for each row, sequences that come out; none at all, or one entry a row.
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
        """Names of the options that are on, but for those that every engine knows: the first six."""
        names = [one.name for one in fields(self)[6:] if vars(self)[one.name] != one.default]
        if self.diverse_groups == 1:
            names = [name for name in names if name != "diverse_strength"]
        names = [name for name in names if name != "token_scores"]
        if not (self.attention or self.coverage_penalty):
            names = [name for name in names if name != "attention_layer"]
        return names

    def part(self, places: Sequence[int]) -> Self:
        """The options of some of the rows."""
        return replace(
            self,
            prefixes=chosen(self.prefixes, places),
            forbidden=chosen(self.forbidden, places),
            required=chosen(self.required, places),
        )

    def longest(self, rows: Sequence[Sequence[int]], most: int) -> list[int]:
        """The longest output of each row in tokens, the end symbol not counted; `most` is what the model can do."""
        limits = [int(self.max_length_ratio * len(row)) + self.max_length_offset for row in rows]
        needed = self.needed(len(rows))
        return [min(max(limit, least), most) for limit, least in zip(limits, needed, strict=True)]

    def shortest(self, rows: Sequence[Sequence[int]]) -> list[int]:
        """The shortest output of each row in tokens, the end symbol not counted."""
        return [int(self.min_length_ratio * len(row)) for row in rows]

    def needed(self, count: int) -> list[int]:
        """How many tokens the output of each row must have room for: its prefix and what is required."""
        prefixes = self.prefixes or ((),) * count
        required = self.required or ((),) * count
        return [
            len(prefix) + sum(map(len, sequences)) for prefix, sequences in zip(prefixes, required, strict=True)
        ]


def chosen(entries: tuple[Entry, ...], places: Sequence[int]) -> tuple[Entry, ...]:
    """Some of the entries, one a row, or none where there are none."""
    return tuple(entries[place] for place in places) if entries else ()
