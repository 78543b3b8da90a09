"""Identify the language of a text by character n-gram models.

The model of a language (Cavnar and Trenkle 1994) has the most frequent sequences of one to three characters. The
trigram probability of a character is interpolated with its bigram and unigram probability (Witten and Bell 1991).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from manyheads.text.normalize import normalize

_MAX_SEQUENCE = 3  # characters of a sequence
_KEPT = 4_000  # sequences kept for each language
_CHARACTERS = 2**17  # possible characters, equally likely before any text is seen
_MAX_LENGTH = 2_000  # characters of a text that are used
_SURE = 0.5  # confidence above which a text is in a language
_NO_LETTER = re.compile(r"[\W\d_]+")


def _plain(text: str) -> str:
    """Return the letters of a text in lower case; all characters between and around them become one blank."""
    return f" {_NO_LETTER.sub(' ', normalize(text).lower()).strip()} "


def _script(letter: str) -> str:
    """Return the first word of the Unicode name of a letter, which is its script: LATIN, HANGUL, CJK."""
    return unicodedata.name(letter, "").partition(" ")[0]


class LanguageProfile:
    """Character n-gram model of a language."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        """Take the counts of sequences of 1 to 3 characters."""
        self.counts = dict(counts)
        self.after: Counter[str] = Counter()  # occurrences of each history with a next character
        self.kinds: Counter[str] = Counter()  # different characters after each history
        for sequence, count in self.counts.items():
            self.after[sequence[:-1]] += count
            self.kinds[sequence[:-1]] += 1

    def probability(self, history: str, character: str) -> float:
        """Return the probability of a character after up to two others."""
        value = 1 / _CHARACTERS
        for length in range(len(history) + 1):
            context = history[len(history) - length :]
            kinds = self.kinds[context]
            if kinds:
                value = (self.counts.get(context + character, 0) + kinds * value) / (self.after[context] + kinds)
        return value

    def score(self, text: str) -> float:
        """Return the log-probability of a text prepared by `_plain`, in nats."""
        return sum(
            math.log(self.probability(text[max(0, start - _MAX_SEQUENCE + 1) : start], text[start]))
            for start in range(1, len(text))
        )

    @cached_property
    def scripts(self) -> frozenset[str]:
        """Scripts in which at least 1 % of the letters of the training text are written."""
        written = Counter[str]()
        for sequence, count in self.counts.items():
            if len(sequence) == 1 and sequence != " ":
                written[_script(sequence)] += count
        return frozenset(script for script, count in written.items() if 100 * count >= written.total())

    def coverage(self, text: str) -> float:
        """Return the share of the character pairs of a text that the model knows, 0 to 1.

        It is 0 for a text with most of its letters in other scripts than the language.
        """
        letters = text.replace(" ", "")
        if 2 * sum(_script(letter) in self.scripts for letter in letters) < len(letters):
            return 0.0
        pairs = [text[start : start + 2] for start in range(len(text) - 1)]
        return sum(pair in self.counts for pair in pairs) / max(1, len(pairs))

    def to_json(self) -> dict[str, int]:
        """Return the JSON form that is stored in a run directory."""
        return self.counts

    @classmethod
    def from_json(cls, content: Any) -> LanguageProfile:
        """Read the JSON form of `to_json`.

        Raises:
            ValueError: the content has another form.
        """
        if not isinstance(content, dict) or len(content) > 10 * _KEPT:
            raise ValueError("no profile of a language")
        for sequence, count in content.items():
            if not (1 <= len(sequence) <= _MAX_SEQUENCE and isinstance(count, int) and count > 0):
                raise ValueError("no profile of a language")
        return cls(content)


def make_profile(texts: Iterable[str]) -> LanguageProfile:
    """Count the character n-grams of texts."""
    counts: Counter[str] = Counter()
    for text in texts:
        line = _plain(text)
        for length in range(1, _MAX_SEQUENCE + 1):
            counts.update(line[start : start + length] for start in range(len(line) - length + 1))
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return LanguageProfile(dict(ranked[:_KEPT]))


def other_language(text: str, language: str, profiles: Mapping[str, LanguageProfile]) -> str:
    """Return the language of a text if it is another one than `language` with more than even odds, else ""."""
    found = confidences(text, profiles) if language in profiles else []
    return found[0][0] if found and found[0][0] != language and found[0][1] > _SURE else ""


def confidences(text: str, profiles: Mapping[str, LanguageProfile]) -> Sequence[tuple[str, float]]:
    """Return the confidence, 0 to 1, that a text is in each language, highest first.

    The confidence is the probability of a language, given that the text is in one of them, times the coverage of
    the text by its n-grams: text in another language or script gets a low confidence.
    """
    line = _plain(text)[:_MAX_LENGTH]
    if not profiles or not line.strip():
        return []
    scores = {language: profile.score(line) for language, profile in profiles.items()}
    best = max(scores.values())
    weights = {language: math.exp(score - best) for language, score in scores.items()}
    total = sum(weights.values())
    confidence = [
        (language, weight / total * profiles[language].coverage(line)) for language, weight in weights.items()
    ]
    return sorted(confidence, key=lambda pair: (-pair[1], -scores[pair[0]]))
