"""Sort suggested corrections into accepted, doubtful and rejected ones, each with its reasons.

The rules are those of a cleaning, learned from the sources and the outputs of the served model, further ones about
the output, and, if there is a model, its log-probabilities. Some reasons reject a correction, two of the others do
too, and one makes it doubtful: a person decides.

Shapes: N corrections.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bitext.cleaning.clean import OTHER_LANGUAGE, tsv_field
from bitext.cleaning.options import CleanOptions
from bitext.cleaning.report import MEANINGS
from bitext.cleaning.rules import REASONS, apply_rules, learn_profile
from bitext.defects import letters_of, repeats
from bitext.languages import SENTENCE_ENDS
from manyheads.data.suggestions import Suggestion

CORRECTION_MEANINGS = MEANINGS | {
    "unchanged": "the same as the output",
    "lines": "another number of lines than the source",
    "untranslated": "words of the source that the output translates",
    "letters": "far fewer different letters than the output",
    "far": "unlike the output",
    "unrelated": "hardly likelier for this source than for others",
    "unlikely": "far less likely for the model than its output",
    "contradicted": "another correction of this source came more often, or later",
}
CORRECTIONS_PAGE = resources.files(__package__) / "corrections.html"  # shows the doubtful ones
_CERTAIN = {"empty", "encoding", "copy", "unchanged", "repetition"}  # reasons that reject a correction alone
_COPY = 0.8  # similarity with the source from which on a correction is a copy, if the output is none
_FAR = 0.25  # similarity with the output below which a correction is far from it
_FEWER_LETTERS = 3  # times as many different letters in the output
_MOST_SOURCE_WORDS = 1 / 3  # share of the words of a correction
_MOST_NAMES = 2  # words of the source that a correction may keep, such as a name
_LONGER, _LENGTH_SLACK = 1.75, 15  # times as long as the output; characters added to both lengths
_LEAST_GAIN = 1.0  # nats a token, that the source adds to the log-probability
_MOST_LOSS = 6.0  # nats a token, by which a correction may be less likely than the output
_LEAST_END = -5.0  # log-probability of the end, below which a correction is cut if its source is a sentence

Verdict = Literal["accepted", "doubtful", "rejected"]


@dataclass
class Correction:
    """A correction of a line.

    Attributes:
        source, output, text: the source, the output of the served model, the suggested translation.
        time: time of its newest suggestion.
        senders: the keys that suggested it; without a key, each suggestion has a number of its own.
        reasons: the reasons against it, names in `CORRECTION_MEANINGS`.
    """

    source: str
    output: str
    text: str
    time: str
    senders: set[str] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        """Return the verdict of all reasons."""
        if len(self.reasons) > 1 or _CERTAIN.intersection(self.reasons):
            return "rejected"
        return "doubtful" if self.reasons else "accepted"


@dataclass(frozen=True)
class ModelScores:
    """Log-probabilities of corrections (N,), in nats a token; NaN where a text is too long for the model.

    Attributes:
        loss: how much less likely the correction is than the output.
        gain: how much likelier the correction is after its source than after other sources; NaN without others.
        end: log-probability of the end mark.
    """

    loss: NDArray[np.float64]
    gain: NDArray[np.float64]
    end: NDArray[np.float64]


def collect_corrections(suggestions: Sequence[Suggestion]) -> list[Correction]:
    """Return the different corrections of single lines, in the order in which they came first.

    A text of several lines is divided if source, output and correction have equally many; unchanged lines of it are
    left out.
    """
    found: dict[tuple[str, str], Correction] = {}
    for number, suggestion in enumerate(suggestions):
        for source, output, text in _lines_of(suggestion):
            correction = found.setdefault((source, text), Correction(source, output, text, suggestion.time))
            correction.senders.add(suggestion.key or f"#{number}")
            if suggestion.time > correction.time:
                correction.time, correction.output = suggestion.time, output
    return list(found.values())


def _lines_of(suggestion: Suggestion) -> list[tuple[str, ...]]:
    """Return source, output and correction of each changed line; of the whole text if it cannot be divided."""
    texts = [text.strip() for text in (suggestion.source, suggestion.output, suggestion.correction)]
    sides = [[line.strip() for line in text.split("\n")] for text in texts]
    if len(set(map(len, sides))) > 1:
        return [tuple(texts)]
    rows = list(zip(*sides, strict=True))
    return [row for row in rows if row[1] != row[2]] or rows[:1]


def judge_corrections(
    corrections: Sequence[Correction], languages: tuple[str, str], scores: ModelScores | None = None
) -> None:
    """Fill in the reasons against each correction (N)."""
    sources, outputs, texts = (
        [tsv_field(getattr(correction, name)) for correction in corrections]
        for name in ("source", "output", "text")
    )
    profile = learn_profile(sources, outputs, languages)
    rules, *_ = apply_rules(sources, texts, profile, CleanOptions.max_ratio, OTHER_LANGUAGE, set())
    for index, correction in enumerate(corrections):
        found = [REASONS[rules[index]]] if rules[index] else []
        found += _faults(correction)
        if scores is not None and np.isfinite(scores.loss[index]):
            found += _model_faults(correction, scores, index)
        elif _similarity(correction.output, correction.text) < _FAR:
            found.append("far")
        correction.reasons = list(dict.fromkeys(found))
    _mark_contradicted(corrections)


def _faults(correction: Correction) -> Iterator[str]:
    """Yield the reasons that the texts give, beside those of `rules`."""
    source, output, text = correction.source, correction.output, correction.text
    if text == output:
        yield "unchanged"
    if not letters_of(text) and letters_of(output):
        yield "empty"
    if "\n" in source or "\n" in text:
        yield "lines"
    if _similarity(source, text) > _COPY >= _similarity(source, output):
        yield "copy"
    if (repeats(text) and not repeats(source)) or (_is_double(text) and not _is_double(source)):
        yield "repetition"
    if _share_of_source_words(correction) > _MOST_SOURCE_WORDS:
        yield "untranslated"
    if _FEWER_LETTERS * len(set(letters_of(text))) < len(set(letters_of(output))):
        yield "letters"
    if len(text) + _LENGTH_SLACK > _LONGER * (len(output) + _LENGTH_SLACK):
        yield "length"


def _model_faults(correction: Correction, scores: ModelScores, index: int) -> Iterator[str]:
    """Yield the reasons that the scores of a correction give."""
    if scores.gain[index] < _LEAST_GAIN:
        yield "unrelated"
    if scores.loss[index] > _MOST_LOSS:
        yield "unlikely"
    if scores.end[index] < _LEAST_END and correction.source[-1:] in SENTENCE_ENDS:
        yield "cut"


def _similarity(first: str, second: str) -> float:
    """Return the share of equal runs of three characters of two texts, 0 to 1 (Dice coefficient)."""
    runs = [
        {text[start : start + 3] for start in range(len(text) - 2)}
        for text in (f" {first.casefold()} ", f" {second.casefold()} ")
    ]
    return 2 * len(runs[0] & runs[1]) / max(1, len(runs[0]) + len(runs[1]))


def _is_double(text: str) -> bool:
    """Return whether a text is the same words twice; a single word twice, such as "bye bye", does not count."""
    words = text.casefold().split()
    half = len(words) // 2
    return half > 1 and words == 2 * words[:half]


def _share_of_source_words(correction: Correction) -> float:
    """Return the share of the words that are those of the source and not of the output; 0 for one or two words."""
    source, output, words = (
        text.casefold().split() for text in (correction.source, correction.output, correction.text)
    )
    copied = sum(word in source and word not in output for word in words)
    return copied / len(words) if copied > _MOST_NAMES else 0.0


def _mark_contradicted(corrections: Sequence[Correction]) -> None:
    """Keep one accepted correction of each source, that of most senders, then the newest; mark the others."""
    best: dict[str, Correction] = {}
    accepted = [correction for correction in corrections if correction.verdict == "accepted"]
    for correction in sorted(accepted, key=lambda correction: (len(correction.senders), correction.time)):
        best[correction.source] = correction
    for correction in accepted:
        if best[correction.source] is not correction:
            correction.reasons.append("contradicted")
