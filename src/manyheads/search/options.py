"""The options of a search, and constraints on the output of a row. A "row" is a source sentence as token ids."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from manyheads.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Ids = tuple[int, ...]
Split = Literal["auto", "sentences", "none"]
_OF_RUN: Any = None  # until `SearchOptions.complete`
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

    Raises:
        UsageError: an option is out of its range.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.temperature < float("inf"):
            raise UsageError(
                f"temperature = {self.temperature} must be above 0. For the likeliest, search greedily."
            )
        if self.top_k < 0:
            raise UsageError(f"top_k = {self.top_k} must not be negative; 0 keeps all tokens.")
        if not 0 < self.top_p <= 1:
            raise UsageError(f"top_p = {self.top_p} must be above 0 and at most 1, which keeps all tokens.")
        if self.seed < 0:
            raise UsageError(f"seed = {self.seed} must not be negative.")

    def make_rng(self, sample: int, row: Sequence[int]) -> np.random.Generator:
        """Return the random number generator of the sample with this index of a row: one number for each token."""
        import numpy as np  # not needed to read options

        key = hashlib.sha256(repr((self.seed, sample, [int(token) for token in row])).encode()).digest()
        return np.random.default_rng(int.from_bytes(key, "big"))


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options of a search, the same for all lines; None means the setting of the run.

    The command line makes this object from its options and the server from JSON. `Translator.translate` takes it,
    completes it by the settings of the run, and passes it to the engine.

    Attributes:
        beam_size: number of open prefixes a sentence; 1 is greedy.
        n_best: number of outputs to return for each line; when sampling, number of samples.
        length_penalty: exponent of the length in score = log-probability / length ** length_penalty; 0 favours
            short outputs.
        max_length_ratio: maximum output length: max_length_ratio x source tokens + search.max_length_offset.
        max_length_offset: number of tokens added to the maximum output length. The end symbol is not counted.
        min_length_ratio: minimum output length: min_length_ratio x source tokens.
        no_repeat_ngram: never repeat an n-gram of no_repeat_ngram tokens within an output; 0 allows repetitions.
        batch_tokens: approximate number of source tokens x beam_size decoded at the same time; it does not change
            the results.
        sampling: draw outputs by random sampling instead of beam search; None is off.
        alternatives: number of alternative tokens to report for each output token, the likeliest first.
        alignment: report the word alignment, from the attention on the source (mean of the heads of one layer).
        attention_layer: decoder layer whose attention gives the alignment, from 0; -1 is the last layer.
        token_scores: report the log-probability of each token; an engine that computes them separately is faster
            without.
        split: split lines into sentences and translate each by itself: every line (sentences); only lines longer
            than any training example, but every line where nearly all training sources are single sentences
            (auto); or no line (none), which cuts a line at the model's limit.
        match_source: write the end mark of the source at the end of its translation, such as a question mark or
            none, begin with a small letter where the source does, and put quotation marks around it where the
            source has them around it.
        min_confidence: leave a line empty if the confidence in its translation, from 0 to 1, is below
            min_confidence; a warning names the line.

    Raises:
        UsageError: an option is out of its range.
    """

    beam_size: int = _OF_RUN
    n_best: int = 1
    length_penalty: float = _OF_RUN
    max_length_ratio: float = _OF_RUN
    max_length_offset: int = _OF_RUN
    min_length_ratio: float = 0.0
    no_repeat_ngram: int = _OF_RUN
    batch_tokens: int = _OF_RUN
    sampling: Sampling | None = None
    alternatives: int = 0
    alignment: bool = False
    attention_layer: int = -1
    token_scores: bool = True
    split: Split = "auto"
    match_source: bool = False
    min_confidence: float = 0.0

    def __post_init__(self) -> None:
        for name, most in _MAX_VALUES.items():
            value, least = vars(self)[name], int(name in ("beam_size", "n_best", "batch_tokens"))
            if value is not None and not least <= value <= most:
                raise UsageError(f"{name} = {value} must be {least} or more, and at most {most:,}.")
        if not 0 <= self.min_confidence <= 1:
            raise UsageError(f"min_confidence = {self.min_confidence} must be from 0 to 1.")
        if self.split not in get_args(Split):
            raise UsageError(f'split = "{self.split}" is none of "auto", "sentences", "none".')

    def complete(self, settings: Mapping[str, Any]) -> Self:
        """Return the options with the settings of a run, `vars(config.search)`, where none is given.

        The beam has room for n_best outputs.
        """
        missing = {name for name, value in vars(self).items() if value is None}
        completed = replace(self, **{name: value for name, value in settings.items() if name in missing})
        beam_size = completed.beam_size if self.sampling else max(completed.beam_size, self.n_best)
        return replace(completed, beam_size=beam_size)

    @property
    def plain(self) -> bool:
        """Whether the search is greedy or with a beam, without rules and without a second pass."""
        ruled = self.sampling or self.min_length_ratio or self.no_repeat_ngram
        return not (ruled or self.alternatives or self.alignment)

    def longest(
        self, rows: Sequence[Sequence[int]], most: int, constraints: Sequence[Constraints] = ()
    ) -> list[int]:
        """Return the maximum output length of each row in tokens, the end symbol not counted; at most `most`."""
        limits = [int(self.max_length_ratio * len(row)) + self.max_length_offset for row in rows]
        needed = [constraint.num_tokens for constraint in constraints] or [0] * len(rows)
        return [min(max(limit, least), most) for limit, least in zip(limits, needed, strict=True)]

    def shortest(self, rows: Sequence[Sequence[int]]) -> list[int]:
        """Return the minimum output length of each row in tokens, the end symbol not counted."""
        return [int(self.min_length_ratio * len(row)) for row in rows]


@dataclass(frozen=True, eq=False)
class WordTokens:
    """Properties of the tokens of a vocabulary in words and sentences; arrays (V,) of bool.

    Attributes:
        ends_open: the token ends in a letter, so that a further token may go on with its word.
        goes_on: the token goes on with the word of a token that `ends_open`.
        has_letters: the token has letters or digits.
        ends_sentence: the token ends with a mark that ends a sentence.
    """

    ends_open: NDArray[np.bool_]
    goes_on: NDArray[np.bool_]
    has_letters: NDArray[np.bool_]
    ends_sentence: NDArray[np.bool_]


@dataclass(frozen=True)
class Constraints:
    """Constraints on the output of one row.

    Attributes:
        prefix: forced beginning.
        forbidden: sequences of at least one token that must not occur after the prefix.
        required: sequences of at least one token that must occur.
        words: vocabulary whose words the required sequences must not break; None if they may be anywhere.
        sentences: number of marks that end a sentence, beside those of required sequences, after the last of which
            no word follows; 0 is any number.
    """

    prefix: Ids = ()
    forbidden: tuple[Ids, ...] = ()
    required: tuple[Ids, ...] = ()
    words: WordTokens | None = None
    sentences: int = 0

    def __post_init__(self) -> None:
        if not all((*self.forbidden, *self.required)):
            raise ValueError("a forbidden or required sequence of tokens is empty.")

    @property
    def num_tokens(self) -> int:
        """Number of tokens in the prefix and the required sequences, with a blank before each sequence."""
        blanks = len(self.required) if self.words is not None else 0
        return len(self.prefix) + sum(map(len, self.required)) + blanks


UNCONSTRAINED = Constraints()
