"""Recognise which of two languages a line is in, by its script or by frequent words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from bitext.scripts import SCRIPTS, frequent_words, scripts_of

Side = Literal["source", "target"]
Classifier = Callable[[str], Side | None]  # the side whose language a line looks like, None if neither

WORD = re.compile(r"[^\W\d_]+")
_MOSTLY = 0.5  # of a line's letters in a script, from where on the line is in that script
_AT_LEAST = 2  # frequent words of one language, and none of the other, from where on a line is in that language


def language_classifier(source: str, target: str) -> Classifier | None:
    """Return a function that tells two languages apart (codes such as de, ko or pt-BR); None for unknown ones."""
    scripts = [scripts_of(code) for code in (source, target)]
    if not all(scripts):
        return None
    if not set(scripts[0]) & set(scripts[1]):
        return _by_script(*scripts)
    words = [frequent_words(code) for code in (source, target)]
    return _by_words(*words) if all(words) and words[0] != words[1] else None


def _by_script(source: Iterable[str], target: Iterable[str]) -> Classifier:
    """Return a function that tells languages apart by their letters."""
    own, other = (tuple(SCRIPTS[name] for name in names) for names in (source, target))

    def classify(text: str) -> Side | None:
        counts = [sum(len(script.findall(text)) for script in scripts) for scripts in (own, other)]
        letters = sum(map(str.isalpha, text))
        if letters < _AT_LEAST or max(counts) <= _MOSTLY * letters:
            return None
        return "source" if counts[0] > counts[1] else "target"

    return classify


def _by_words(source: Iterable[str], target: Iterable[str]) -> Classifier:
    """Return a function that tells languages apart by frequent words."""
    own, other = set(source), set(target)
    own, other = own - other, other - own

    def classify(text: str) -> Side | None:
        words = WORD.findall(text.casefold())
        counts = sum(map(own.__contains__, words)), sum(map(other.__contains__, words))
        if min(counts) > 0 or max(counts) < _AT_LEAST:
            return None
        return "source" if counts[0] else "target"

    return classify


def likeness(words: Mapping[str, int], known: Mapping[str, int]) -> float:
    """Return the share of running words that are known, 0 to 1."""
    total = sum(words.values())
    return sum(count for word, count in words.items() if word in known) / total if total else 0.0
