"""Checks of a translation that need no reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

__all__ = ["WARNINGS", "max_repetitions", "repeats_itself", "unusual_length"]

# Names that `Translation.warnings` may hold -> their meaning.
WARNINGS = {
    "sentence-cut": "a sentence longer than any in training was cut into pieces",
    "repetition": "the translation repeats itself",
    "length-ratio": "the translation is much longer or shorter than its source",
    "forbidden-phrase": "a forbidden phrase came out, spelled in an unusual way",
    "missing-phrase": "a required phrase did not come out",
}

MAX_PERIOD = 16  # tokens of a repeated passage
MIN_REPETITIONS = 4
MIN_LOOP_LENGTH = 8  # tokens of all repetitions together


def max_repetitions(tokens: Sequence[int]) -> int:
    """Return the largest number of times that a passage of at most 16 tokens occurs in a row; 1 is no repetition.

    Only repetitions of at least 8 tokens in all count: "ha ha ha ha" does not.
    """
    most = 1
    for period in range(1, min(MAX_PERIOD, len(tokens) // 2) + 1):
        run = 0
        for index in range(period, len(tokens)):
            run = run + 1 if tokens[index] == tokens[index - period] else 0
            if run + period >= MIN_LOOP_LENGTH:
                most = max(most, run // period + 1)
    return most


def repeats_itself(source: Sequence[int], output: Sequence[int]) -> bool:
    """Return whether an output repeats itself more often than its source does."""
    if max(Counter(output).values(), default=0) < MIN_REPETITIONS:  # fast exit for most outputs
        return False
    repetitions = max_repetitions(output)
    return repetitions >= MIN_REPETITIONS and repetitions > max_repetitions(source) + 1


def unusual_length(source: int, output: int) -> bool:
    """Return whether the longer of two lengths exceeds 3 times the shorter by more than 10 tokens."""
    return max(source, output) > 3 * min(source, output) + 10
