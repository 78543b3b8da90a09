"""Signs that a translation went wrong, seen without a reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

__all__ = ["WARNINGS", "loops", "odd_length", "repetitions"]

# What `Translation.warnings` may hold, and what that means.
WARNINGS = {
    "sentence-cut": "a sentence longer than any in training was cut into pieces",
    "repetition": "the translation repeats itself",
    "length-ratio": "the translation is much longer or shorter than its source",
    "forbidden-phrase": "a forbidden phrase came out, spelled in an unusual way",
    "missing-phrase": "a required phrase did not come out",
}

LONGEST_PERIOD = 16  # tokens
FEWEST_TIMES = 4
SHORTEST_LOOP = 8  # tokens in a loop


def repetitions(tokens: Sequence[int]) -> int:
    """How often in a row a passage of at most 16 tokens comes, where that is most often; 1 is once.

    A loop has at least 8 tokens: "ha ha ha ha" is none.
    """
    most = 1
    for period in range(1, min(LONGEST_PERIOD, len(tokens) // 2) + 1):
        run = 0
        for place in range(period, len(tokens)):
            run = run + 1 if tokens[place] == tokens[place - period] else 0
            if run + period >= SHORTEST_LOOP:
                most = max(most, run // period + 1)
    return most


def loops(source: Sequence[int], output: Sequence[int]) -> bool:
    """Whether an output repeats itself, more often than its source does."""
    if max(Counter(output).values(), default=0) < FEWEST_TIMES:  # soon seen of nearly all
        return False
    times = repetitions(output)
    return times >= FEWEST_TIMES and times > repetitions(source) + 1


def odd_length(source: int, output: int) -> bool:
    """Whether one of the two is more than 3 times as long as the other, and 10 tokens beyond that."""
    return max(source, output) > 3 * min(source, output) + 10
