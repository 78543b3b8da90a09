"""Checks of an output that need no reference: cut sentences, repetitions, unusual lengths, broken characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from manyheads.inference.translation.result import Translation
from manyheads.inference.translation.stages import Draft, Stage

_MAX_PERIOD = 16  # tokens of a repeated passage
_MIN_REPETITIONS = 4
_MIN_LOOP_LENGTH = 8  # tokens of all repetitions together


class LineChecks(Stage):
    """Warnings about a line that was cut, and outputs that repeat themselves or have an unusual length."""

    warnings: ClassVar = {
        "sentence-cut": "a sentence longer than any in training was cut into pieces",
        "repetition": "the translation repeats itself",
        "length-ratio": "the translation is much longer or shorter than its source",
    }
    columns: ClassVar = {"repeated": lambda translation: int("repetition" in translation.warnings)}

    def after(self, draft: Draft, translation: Translation) -> Translation:
        """Add the warnings."""
        pairs = [(ids, output.tokens) for ids, output in zip(draft.line.parts, draft.best, strict=True)]
        signs = {
            "sentence-cut": draft.line.cut_sentences > 0,
            "repetition": any(_repeats_itself(source, output) for source, output in pairs),
            "length-ratio": any(_unusual_length(len(source), len(output)) for source, output in pairs),
        }
        return translation.with_warnings(signs)


class BrokenCharacters(Stage):
    """The warning about bytes that form no character."""

    warnings: ClassVar = {
        "broken-character": "bytes that form no character were left out, or completed to a character of the source"
    }

    def after(self, draft: Draft, translation: Translation) -> Translation:
        """Add the warning."""
        whole_characters = self.translator.tokenizers.target.whole_characters
        texts = map(draft.line.part_text, range(len(draft.parts)))
        broken = (whole_characters(output.tokens, text)[1] for output, text in zip(draft.best, texts, strict=True))
        return translation.with_warnings({"broken-character": any(broken)})


def _max_repetitions(tokens: Sequence[int]) -> int:
    """Return the largest number of times that a passage of at most 16 tokens occurs in a row; 1 is no repetition.

    Only repetitions of at least 8 tokens in all count: "ha ha ha ha" does not.
    """
    most = 1
    for period in range(1, min(_MAX_PERIOD, len(tokens) // 2) + 1):
        run = 0
        for index in range(period, len(tokens)):
            run = run + 1 if tokens[index] == tokens[index - period] else 0
            if run + period >= _MIN_LOOP_LENGTH:
                most = max(most, run // period + 1)
    return most


def _repeats_itself(source: Sequence[int], output: Sequence[int]) -> bool:
    """Return whether an output repeats itself more often than its source does."""
    if max(Counter(output).values(), default=0) < _MIN_REPETITIONS:  # fast exit for most outputs
        return False
    repetitions = _max_repetitions(output)
    return repetitions >= _MIN_REPETITIONS and repetitions > _max_repetitions(source) + 1


def _unusual_length(source: int, output: int) -> bool:
    """Return whether the longer of two lengths exceeds 3 times the shorter by more than 10 tokens."""
    return max(source, output) > 3 * min(source, output) + 10
