"""How a language model goes on, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from manyheads.errors import UsageError
from manyheads.search.options import Sampling

__all__ = ["Continuation", "Ended", "GenerateOptions", "Generation"]

PLAIN = Sampling()

Ended = Literal["end", "stop", "length"]


@dataclass(frozen=True)
class GenerateOptions:
    """How to go on.

    Attributes:
        sampling: how tokens are drawn; None takes the most likely one at every step.
        samples: texts drawn for each beginning.
        max_tokens: the longest text, in tokens.
        stop: a text ends before the first of these that comes out.
    """

    sampling: Sampling | None = PLAIN
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
    """One text that was written.

    Attributes:
        text: what comes after the beginning, up to the stop text.
        tokens: its pieces as they were written, a stop text's and the end mark's too.
        token_scores: the model's own log-probability of each, in nats, whatever the temperature.
        log_probability: their sum.
        ended: by the end mark, before a stop text, or at the greatest length.
    """

    text: str
    tokens: list[str]
    token_scores: list[float]
    log_probability: float
    ended: Ended

    def to_json(self) -> dict[str, Any]:
        """The shape that `generate --json` prints."""
        return dict(vars(self))


@dataclass(frozen=True)
class Continuation:
    """What became of one beginning.

    Attributes:
        prompt: the beginning as it was given.
        samples: the texts in the order in which they were drawn; equal ones may be among them.
        truncated: whether the beginning is longer than what the model looks at, which is its end then.
        unknown: tokens of the beginning that are not in the vocabulary.
    """

    prompt: str
    samples: list[Generation]
    truncated: bool
    unknown: int

    def to_json(self) -> dict[str, Any]:
        """The shape that `generate --json` prints."""
        return {**vars(self), "samples": [one.to_json() for one in self.samples]}
