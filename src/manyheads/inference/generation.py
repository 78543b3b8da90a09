"""Options, results and stop texts of text generation with a language model.

A generated text ends before the first stop text that occurs in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from manyheads.errors import UsageError
from manyheads.search.arrays import ChooseTokens, FloatArray, IntArray
from manyheads.search.interface import Cancelled, never_cancelled
from manyheads.search.options import Sampling
from manyheads.text.interface import Tokenizer

_DEFAULT_SAMPLING = Sampling()

Ended = Literal["end", "stop", "length"]


@dataclass(frozen=True)
class GenerateOptions:
    """Options of generation.

    Attributes:
        sampling: options of sampling; None is greedy search.
        samples: number of texts to generate for each prompt.
        max_tokens: maximum length of a text in tokens.
        stop: stop texts; a generated text ends before the first one that occurs in it.
    """

    sampling: Sampling | None = _DEFAULT_SAMPLING
    samples: int = 1
    max_tokens: int = 256
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, most in (("samples", 10_000), ("max_tokens", 1_000_000)):
            if not 1 <= vars(self)[name] <= most:
                raise UsageError(f"{name} = {vars(self)[name]} must be at least 1, and at most {most:,}.")
        if isinstance(self.stop, str) or not all(self.stop):
            raise UsageError(f"stop = {self.stop!r} must be a tuple of texts, none of them empty.")


@dataclass(frozen=True)
class Generation:
    """One generated text.

    Attributes:
        text: the text after the prompt, up to the stop text.
        tokens: all generated pieces, those of the stop text and the end mark included.
        token_scores: the model's own log-probability of each piece in nats, independent of the temperature.
        log_probability: sum of the token_scores.
        ended: "end" by the end mark, "stop" before a stop text, or "length" at the maximum length.
        warnings: "broken-character" if bytes that form no character were left out.
    """

    text: str
    tokens: list[str]
    token_scores: list[float]
    log_probability: float
    ended: Ended
    warnings: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document that `generate --json` prints."""
        return dict(vars(self))


@dataclass(frozen=True)
class Continuation:
    """The generated texts of one prompt.

    Attributes:
        prompt: the input text.
        samples: the generated texts in the order in which they were drawn; some may be equal.
        truncated: whether the prompt is longer than the model's window, so that only its end was used.
        unknown: number of tokens of the prompt that are not in the vocabulary.
    """

    prompt: str
    samples: list[Generation]
    truncated: bool
    unknown: int

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document that `generate --json` prints."""
        return {**vars(self), "samples": [sample.to_json() for sample in self.samples]}


def text_before_stop(text: str, stops: Sequence[str]) -> str | None:
    """Return the text before the first stop text in it; None if there is no stop text."""
    starts = [start for stop in stops if (start := text.find(stop)) >= 0]
    return text[: min(starts)] if starts else None


def stream_before_stop(pieces: Iterable[str], stops: Sequence[str]) -> Iterator[str]:
    """Yield the pieces of a text up to the first stop text; a possible beginning of a stop text is held back."""
    held = ""
    for piece in pieces:
        held += piece
        rest = text_before_stop(held, stops)
        if rest is not None:
            yield from filter(None, [rest])
            return
        safe = len(held) - max((_overlap(held, stop) for stop in stops), default=0)
        yield from filter(None, [held[:safe]])
        held = held[safe:]
    yield from filter(None, [held])


def _overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of a text that is a beginning of a stop text, but not all of it."""
    lengths = range(min(len(text), len(stop) - 1), 0, -1)
    return next((length for length in lengths if text.endswith(stop[:length])), 0)


def end_after_stop(choose: ChooseTokens, tokenizer: Tokenizer, stops: Sequence[str]) -> ChooseTokens:
    """Return a function that chooses like `choose`, and ends a row (value -inf) once it contains a stop text."""
    if not stops:
        return choose
    written: dict[int, list[int]] = defaultdict(list)
    # A token spells at least one byte, so that this many last tokens contain a stop text that has just ended.
    num_last_tokens = max(len(stop.encode()) for stop in stops)

    def choose_or_end(log_probs: FloatArray, rows: IntArray) -> tuple[IntArray, FloatArray]:
        tokens, values = choose(log_probs, rows)
        for index, row in enumerate(rows.tolist()):
            if text_before_stop(tokenizer.decode(written[row][-num_last_tokens:]), stops) is not None:
                values[index] = -float("inf")
            written[row].append(int(tokens[index]))
        return tokens, values

    return choose_or_end


def end_cancelled(choose: ChooseTokens, cancelled: Cancelled) -> ChooseTokens:
    """Return a function that chooses like `choose`, and ends the cancelled rows (value -inf)."""
    if cancelled is never_cancelled:
        return choose

    def choose_or_end(log_probs: FloatArray, rows: IntArray) -> tuple[IntArray, FloatArray]:
        tokens, values = choose(log_probs, rows)
        ending = cancelled()
        values[[row in ending for row in rows.tolist()]] = -float("inf")
        return tokens, values

    return choose_or_end
