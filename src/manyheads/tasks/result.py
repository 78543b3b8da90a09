"""What a translator returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Candidate", "Rival", "Translation"]

Rival = tuple[str, float]


@dataclass(frozen=True)
class Candidate:
    """One output of the search, as text.

    Attributes:
        text: the translation.
        score: log-probability / length ** length_penalty, in nats; what candidates are ranked by. With a coverage
            penalty, that is added.
        tokens: its subword pieces, the end mark last when it ended by itself. Of a line of several sentences,
            those of all of them.
        token_scores: log-probability of each of them, in nats.
        log_probability: their sum.
        rivals: beside each of them the likeliest others, and their log-probabilities; None unless asked for.
    """

    text: str
    score: float
    tokens: list[str]
    token_scores: list[float]
    log_probability: float
    rivals: list[list[Rival]] | None = None

    def to_json(self) -> dict[str, Any]:
        """The shape that `translate --json` prints."""
        document = vars(self) | {
            "rivals": [
                [{"token": token, "score": score} for token, score in beside] for beside in self.rivals or ()
            ]
        }
        return {key: value for key, value in document.items() if key != "rivals" or self.rivals is not None}


@dataclass(frozen=True)
class Translation:
    """What became of one line.

    Attributes:
        source: the line as it was given.
        hypotheses: the best candidates, best first (samples as they were drawn); none for an empty line.
        truncated: whether the source was cut at the model's limit or the output at its length limit.
        alignment: which word of the best candidate comes from which of the source, as pairs "source-target" from
            0, words being what stands between blanks; None unless asked for.
        sentences: how many parts of the line were translated one by one.
        warnings: what looks wrong about the best candidate, a phrase each.
    """

    source: str
    hypotheses: list[Candidate]
    truncated: bool
    alignment: str | None = None
    sentences: int = 1
    warnings: list[str] = field(default_factory=list)

    @property
    def translation(self) -> str:
        """The best candidate's text; empty for an empty line."""
        return self.hypotheses[0].text if self.hypotheses else ""

    @property
    def score(self) -> float:
        """The best candidate's score; 0 for an empty line."""
        return self.hypotheses[0].score if self.hypotheses else 0.0

    def to_json(self) -> dict[str, Any]:
        """The shape that `translate --json` prints."""
        return {
            "source": self.source,
            "translation": self.translation,
            "score": self.score,
            "hypotheses": [candidate.to_json() for candidate in self.hypotheses],
            "alignment": self.alignment,
            "truncated": self.truncated,
            "sentences": self.sentences,
            "warnings": self.warnings,
        }
