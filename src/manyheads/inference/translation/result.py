"""The results of a translator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Alternative = tuple[str, float]


@dataclass(frozen=True)
class Candidate:
    """One output of the search, as text.

    Attributes:
        text: the translation.
        score: log-probability / length ** length_penalty, in nats; ranks the candidates.
        tokens: subword pieces, the end mark last if the output has one; for a line of several sentences, the pieces
            of all of them.
        token_scores: log-probability of each piece, in nats.
        log_probability: sum of the token_scores.
        alternatives: for each piece the likeliest other tokens and their log-probabilities; None unless requested.
    """

    text: str
    score: float
    tokens: list[str]
    token_scores: list[float]
    log_probability: float
    alternatives: list[list[Alternative]] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document that `translate --json` prints."""
        document = vars(self) | {
            "alternatives": [
                [{"token": token, "score": score} for token, score in token_alternatives]
                for token_alternatives in self.alternatives or ()
            ]
        }
        return {
            key: value for key, value in document.items() if key != "alternatives" or self.alternatives is not None
        }


@dataclass(frozen=True)
class Translation:
    """The translation of one line.

    Attributes:
        source: the input line.
        hypotheses: the best candidates, best first (samples in the order in which they were drawn); none for an
            empty line.
        truncated: whether the source was cut at the model's limit or the output at its length limit.
        alignment: word alignment of the best candidate as pairs "source-target" of word indices from 0, where words
            are separated by blanks; None unless requested.
        sentences: number of parts of the line that were translated separately.
        warnings: names of the warnings about the best candidate (`translator.WARNINGS`).
        confidence: estimated chrF of the best candidate, from 0 to 1 (`ConfidenceModel`); None for a line that is
            copied, and for a run without the model.
        confidence_level: word for the confidence: "low" as in the lowest fifth of the validation text, "high" as in
            its upper half, else "medium".
    """

    source: str
    hypotheses: list[Candidate]
    truncated: bool
    alignment: str | None = None
    sentences: int = 1
    warnings: list[str] = field(default_factory=list)
    confidence: float | None = None
    confidence_level: str | None = None

    @property
    def translation(self) -> str:
        """Text of the best candidate; empty for an empty line."""
        return self.hypotheses[0].text if self.hypotheses else ""

    @property
    def score(self) -> float:
        """Score of the best candidate; 0 for an empty line."""
        return self.hypotheses[0].score if self.hypotheses else 0.0

    def with_warnings(self, signs: Mapping[str, bool]) -> Translation:
        """Return the translation with a warning for each sign that is present."""
        names = [name for name, present in signs.items() if present]
        return replace(self, warnings=[*self.warnings, *names]) if names else self

    def to_json(self) -> dict[str, Any]:
        """Return the JSON document that `translate --json` prints."""
        return {
            "source": self.source,
            "translation": self.translation,
            "score": self.score,
            "hypotheses": [candidate.to_json() for candidate in self.hypotheses],
            "alignment": self.alignment,
            "truncated": self.truncated,
            "sentences": self.sentences,
            "warnings": self.warnings,
            "confidence": self.confidence,
            "confidence_level": self.confidence_level,
        }
