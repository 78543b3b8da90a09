"""The options of a search, from the caller to the engine. A "row" is a source sentence as token ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Literal, Self, TypeVar

Ids = tuple[int, ...]
_MAX_VALUES = {  # of each number; those of `SearchConfig` are its limits
    "beam_size": 1_000,
    "length_penalty": 10,
    "max_length_ratio": 1_000,
    "max_length_offset": 1_000_000,
    "no_repeat_ngram": 1_000_000,
    "batch_tokens": 1_000_000_000,
    "n_best": 10_000,
    "min_length_ratio": 1_000,
    "alternatives": 10_000,
}
_Entry = TypeVar("_Entry")


@dataclass(frozen=True)
class Sampling:
    """Options of sampling: draw each token from the model's distribution.

    Each token is drawn from p ** (1 / temperature), normalised, of which the top_k most likely tokens are kept, and
    of these the fewest whose probabilities add up to top_p (nucleus sampling, Holtzman et al. 2020). The samples of
    a row depend on the seed, the row and their index alone.

    Attributes:
        temperature: sampling temperature: below 1 makes likely tokens likelier.
        top_k: sample from the top_k likeliest tokens only; 0 means all tokens.
        top_p: sample from the smallest set of likeliest tokens with total probability top_p.
        seed: random seed of the sampling.
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
class TranslateOptions:
    """Options of a translation, the same for all lines; None means the setting of the run.

    The command line makes this object from its options and the server from JSON. `Translator.translate` takes it,
    and passes it to the engine as `SearchOptions`. All options are off by default.

    Attributes:
        length_penalty: exponent of the length in score = log-probability / length ** length_penalty; 0 favours
            short outputs.
        max_length_ratio: maximum output length: max_length_ratio x source tokens + search.max_length_offset.
        min_length_ratio: minimum output length: min_length_ratio x source tokens.
        no_repeat_ngram: never repeat an n-gram of no_repeat_ngram tokens within an output; 0 allows repetitions.
        sampling: draw outputs by random sampling instead of beam search; None is off.
        alternatives: number of alternative tokens to report for each output token, the likeliest first.
        alignment: report the word alignment, from the attention on the source (mean of the heads of one layer).
        attention_layer: decoder layer whose attention gives the alignment, from 0; -1 is the last layer.
        token_scores: report the log-probability of each token; an engine that computes them separately is faster
            without.
        split: split lines into sentences and translate each by itself: every line (sentences), only lines longer
            than any training example (auto), or no line (none), which cuts a line at the model's limit.
    """

    length_penalty: float | None = None
    max_length_ratio: float | None = None
    min_length_ratio: float = 0.0
    no_repeat_ngram: int | None = None
    sampling: Sampling | None = None
    alternatives: int = 0
    alignment: bool = False
    attention_layer: int = -1
    token_scores: bool = True
    split: Literal["auto", "sentences", "none"] = "auto"


@dataclass(frozen=True, kw_only=True)
class SearchOptions(TranslateOptions):
    """The options of one call of an engine: the caller's options, completed by the settings of the run.

    `in_use` names the options that are on, so that an engine can refuse an option that it does not support.

    Attributes:
        beam_size: number of open prefixes a sentence; 1 is greedy.
        max_length_offset: number of tokens added to the maximum output length (see `max_length_ratio`). The end
            symbol is not counted.
        batch_tokens: approximate number of source tokens x beam_size decoded at the same time; it does not change
            the results.
        n_best: number of outputs to return for each row, at most beam_size; when sampling, number of samples.
        prefixes: forced beginning of the output of each row; empty, or one entry a row.
        forbidden: for each row, sequences that must not occur after its prefix; empty, or one entry a row.
        required: for each row, sequences that must occur; empty, or one entry a row.
    """

    beam_size: int
    length_penalty: float = field()  # required: without field(), None would be inherited as the default
    max_length_ratio: float = field()
    max_length_offset: int
    batch_tokens: int
    n_best: int = 1
    no_repeat_ngram: int = 0
    prefixes: tuple[Ids, ...] = ()
    forbidden: tuple[tuple[Ids, ...], ...] = ()
    required: tuple[tuple[Ids, ...], ...] = ()

    def __post_init__(self) -> None:
        for name in ("beam_size", "n_best", "batch_tokens"):
            if not 1 <= vars(self)[name] <= _MAX_VALUES[name]:
                raise ValueError(
                    f"{name} = {vars(self)[name]} must be at least 1, and at most {_MAX_VALUES[name]:,}."
                )
        for name in (
            "length_penalty",
            "max_length_ratio",
            "max_length_offset",
            "min_length_ratio",
            "no_repeat_ngram",
            "alternatives",
        ):
            if not 0 <= vars(self)[name] <= _MAX_VALUES[name]:
                raise ValueError(
                    f"{name} = {vars(self)[name]} must be 0 or more, and at most {_MAX_VALUES[name]:,}."
                )
        if self.sampling is None and self.n_best > self.beam_size:
            raise ValueError(f"n_best = {self.n_best} must not be above beam_size = {self.beam_size}.")
        if self.required and self.sampling:
            raise ValueError("required sequences are searched for by a beam, not by sampling.")
        if any(not sequence for row in (*self.forbidden, *self.required) for sequence in row):
            raise ValueError("a forbidden or required sequence of tokens is empty.")

    def in_use(self) -> list[str]:
        """Return the names of the options that are on, except those that every engine supports."""
        skipped = {"n_best", "token_scores", "split"}
        if not self.alignment:
            skipped.add("attention_layer")
        defaults = {option.name: option.default for option in fields(self) if option.default is not MISSING}
        return [name for name in defaults if name not in skipped and vars(self)[name] != defaults[name]]

    def select_rows(self, rows: Sequence[int]) -> Self:
        """Return the options of some of the rows, given by their indices."""
        return replace(
            self,
            prefixes=_select_entries(self.prefixes, rows),
            forbidden=_select_entries(self.forbidden, rows),
            required=_select_entries(self.required, rows),
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


def _select_entries(entries: tuple[_Entry, ...], rows: Sequence[int]) -> tuple[_Entry, ...]:
    """Return the entries of some of the rows; an empty tuple stays empty."""
    return tuple(entries[row] for row in rows) if entries else ()
