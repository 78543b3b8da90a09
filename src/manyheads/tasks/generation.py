"""The options and the results of text generation with a language model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from manyheads.errors import UsageError
from manyheads.search.options import Sampling

__all__ = ["Continuation", "Ended", "GenerateOptions", "Generation"]

DEFAULT_SAMPLING = Sampling()

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

    sampling: Sampling | None = DEFAULT_SAMPLING
    samples: int = 1
    max_tokens: int = 256
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.samples < 1 or self.max_tokens < 1:
            name = "samples" if self.samples < 1 else "max_tokens"
            raise UsageError(f"{name} = {vars(self)[name]} must be at least 1.")
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
    """

    text: str
    tokens: list[str]
    token_scores: list[float]
    log_probability: float
    ended: Ended

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
